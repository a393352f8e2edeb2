/** Why a license does not work: what the service would answer a machine now, check by check. */
import { useState } from "react"
import type { License } from "../../../licensing/model/License.ts"
import type { Success } from "../../client/Client.ts"
import { choice, choicesOf, type FieldsOf, text } from "../parts/Fields.tsx"
import { Form } from "../parts/Form.tsx"
import { wordsOf } from "../parts/Format.ts"
import { Section, Status, Table } from "../parts/Show.tsx"
import { run } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"

type Question = Payload<"diagnoseLicense">

const fields: FieldsOf<Question> = {
  operation: choice("Operation", choicesOf(["validate", "activate", "check", "consume", "checkout", "offline"])),
  fingerprint: text("Machine’s fingerprint", { hint: "Empty: only the license itself is checked." }),
  app_version: text("Version of the application"),
  feature_code: text("Code of a feature")
}

export const Diagnosis = ({ license: { id } }: { readonly license: License }) => {
  const [result, setResult] = useState<Success<"diagnoseLicense">>()
  return (
    <Section id="diagnosis" title="Why does it not work?">
      <Form
        fields={fields}
        send="Check"
        run={(payload: Question) => run("diagnoseLicense", { params: { id }, payload })}
        done={setResult}
      />
      {result !== undefined && <Answer of={result} />}
    </Section>
  )
}

const Answer = ({ of: { admitted, checks, message } }: { readonly of: Success<"diagnoseLicense"> }) => (
  <>
    <p role="status" className={admitted ? "admitted" : "failed"}>
      {admitted ? "It works: every check passes." : `The application gets: ${message}`}
    </p>
    <Table
      caption="Checks"
      rows={checks}
      keyOf={({ name }) => name}
      empty="Nothing was checked."
      columns={[
        { title: "Check", show: ({ name }) => wordsOf(name) },
        { title: "Result", show: ({ passed }) => <Status of={passed ? "passed" : "failed"} /> },
        { title: "Why", wraps: true, show: ({ detail }) => detail ?? "" }
      ]}
    />
  </>
)
