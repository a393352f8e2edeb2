/** Why a license does not work: what was refused lately, and what the service would answer a machine now, check by check. */
import { Link } from "@tanstack/react-router"
import { useRef, useState } from "react"
import type { Activity } from "../../../insight/activities/Activity.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { LicenseFeature } from "../../../licensing/model/LicenseFeature.ts"
import type { Success } from "../../client/Client.ts"
import { namesOf } from "../parts/FeatureNames.ts"
import { useFew } from "../parts/Few.tsx"
import { choice, choicesOf, type Field, type FieldsOf, text } from "../parts/Fields.tsx"
import { Form } from "../parts/Form.tsx"
import { sentenceOf } from "../parts/Format.ts"
import { Section, Status, Table, Waiting } from "../parts/Show.tsx"
import { causeOf, lastOf, run, useAsk } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { groupsOf } from "./RefusalWords.ts"
import { Refused } from "./Refused.tsx"

type Question = Payload<"diagnoseLicense">

const fields: FieldsOf<Question> = {
  operation: choice("Operation", choicesOf(["validate", "activate", "check", "consume", "checkout", "offline"])),
  fingerprint: text("Machine’s fingerprint"),
  app_version: text("Application’s version")
}

/** One of the license's features by its name, or any other by its code. */
const featureField = (features: ReadonlyArray<LicenseFeature>): Field<string> => {
  const { choices, nameOf } = namesOf(features.map(({ feature_code: code, feature_name: name }) => ({ code, name })))
  return {
    label: "Feature",
    control: {
      kind: "own",
      show: ({ id, state, texts: [value] }) => (
        <>
          {/* With another default an input would keep its text. */}
          <input key={value} id={id} {...state} list={`${id}-features`} defaultValue={value} autoComplete="off" />
          <datalist id={`${id}-features`}>
            {choices.map(({ id: code, name }) => (
              <option key={code} value={name} />
            ))}
          </datalist>
        </>
      )
    },
    read: ([text = ""]) => {
      const given = text.trim()
      return choices.find(({ name }) => name === given)?.id ?? (given === "" ? undefined : given)
    },
    write: (code) => [nameOf(code)]
  }
}

/** The operations whose refusals have another name in the feed. */
const operations: Readonly<Record<string, NonNullable<Question["operation"]>>> = {
  "license.activate": "activate",
  "license.check": "check",
  "usage.consume": "consume",
  "lease.check_out": "checkout",
  "license.issue_offline": "offline"
}

interface Props {
  readonly license: License
  readonly mayChange: boolean
  /** The refused calls of the last days, the newest first; undefined: they cannot be read. */
  readonly refused: ReadonlyArray<Activity> | undefined
}

/** So many reasons of the list have the class `few`. */
const fewMax = 2

export const Diagnosis = ({ license, mayChange, refused }: Props) => {
  const latest = refused?.[0]
  const { isFew, toggle } = useFew("diagnosis", groupsOf(refused ?? []).length, fewMax)
  return (
    <Section
      id="diagnosis"
      title="Why does it not work?"
      actions={
        latest !== undefined && (
          <>
            {toggle}
            <Link to="/activity" search={{ license_id: license.id, result_class: "refused" }} className="button quiet">
              All refusals
            </Link>
          </>
        )
      }
    >
      {refused?.length === 0 && <p className="quiet">No application was refused in the last 30 days.</p>}
      {refused !== undefined && refused.length > 0 && (
        <Refused license={license} refused={refused} mayChange={mayChange} isFew={isFew} />
      )}
      {latest?.device_id === undefined ? (
        <Ask key={latest?.sequence} license={license} initial={questionOf(latest)} />
      ) : (
        <AskForDevice key={latest.sequence} license={license} latest={latest} device={latest.device_id} />
      )}
    </Section>
  )
}

/** The feed does not tell machines that never were a device of the license: another new one gets the same answer. */
const anyMachine = "any new machine"

const questionOf = (latest: Activity | undefined): Question =>
  latest === undefined
    ? { operation: "validate" }
    : {
        operation: operations[latest.action] ?? "validate",
        ...(latest.device_id === undefined ? { fingerprint: anyMachine } : {}),
        ...(latest.feature_code === undefined ? {} : { feature_code: latest.feature_code })
      }

interface OfDevice {
  readonly license: License
  readonly latest: Activity
  readonly device: string
}

/** The form begins with the machine that was refused last. */
const AskForDevice = ({ device, latest, license }: OfDevice) => {
  const asked = useAsk("getDevice", { params: { id: license.id, device_id: device } })
  const known = lastOf(asked)
  if (known === undefined && causeOf(asked) === undefined) return <Waiting />
  const { fingerprint } = known ?? {}
  return (
    <Ask license={license} initial={{ ...questionOf(latest), ...(fingerprint === undefined ? {} : { fingerprint }) }} />
  )
}

const Ask = ({ initial, license: { id } }: { readonly initial: Question; readonly license: License }) => {
  const [result, setResult] = useState<Success<"diagnoseLicense">>()
  const isOfOtherQuestion = useRef(false)
  const features = lastOf(useAsk("listLicenseFeatures", { params: { id }, query: { limit: 200 } }))?.items ?? []
  return (
    <div
      className="asking"
      onInput={() => {
        isOfOtherQuestion.current = true
        setResult(undefined)
      }}
    >
      <Form
        fields={{ ...fields, feature_code: featureField(features) }}
        initial={initial}
        send="Check"
        run={(payload: Question) => {
          isOfOtherQuestion.current = false
          setResult(undefined)
          return run("diagnoseLicense", { params: { id }, payload })
        }}
        done={(answer) => !isOfOtherQuestion.current && setResult(answer)}
      />
      <p role="status" className={result && (result.admitted ? "admitted" : "failed")}>
        {result && (result.admitted ? "It works: every check passes." : `The application gets: ${result.message}`)}
      </p>
      {result !== undefined && <Checks of={result} />}
    </div>
  )
}

const Checks = ({ of: { checks } }: { readonly of: Success<"diagnoseLicense"> }) => (
  <Table
    caption="Checks"
    rows={checks}
    keyOf={({ name }) => name}
    empty="Nothing was checked."
    columns={[
      { title: "Check", show: ({ name }) => sentenceOf(name) },
      { title: "Result", show: ({ passed }) => <Status of={passed ? "passed" : "failed"} /> },
      { title: "Why", wraps: true, goes: "last", show: ({ detail }) => detail ?? "" }
    ]}
  />
)
