/** The facts of entries, with links to what they are about. */
import { Link } from "@tanstack/react-router"
import { AsyncResult } from "effect/reactivity"
import { Fragment, type ReactNode } from "react"
import type { Activity } from "../../../insight/activities/Activity.ts"
import type { Event } from "../../../ledger/events/Event.ts"
import { wordsOfRefusal } from "../licenses/RefusalWords.ts"
import { wordsOf } from "../parts/Format.ts"
import { DeviceName, RecordName } from "../parts/Names.tsx"
import { Facts, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { changed } from "../tables/List.tsx"
import { EventRecord, nounOf } from "./EventRecord.tsx"

type Fact = readonly [name: string, value: ReactNode]

const actorNames = {
  api_key: "an API key",
  license: "an application with the license’s key",
  oidc_subject: "a person of the identity provider",
  system: "the service"
} as const

const records = ["license_id", "product_id", "customer_id", "order_id", "subscription_id"] as const

const recordName = (field: string) => wordsOf(field.replace(/_id$/, "")).replace(/^./, (letter) => letter.toUpperCase())

const textFact = (name: string, text: string | undefined): ReadonlyArray<Fact> =>
  text === undefined ? [] : [[name, <code key={name}>{text}</code>]]

export const ActivityDetails = ({ of }: { readonly of: Activity }) => {
  const may = useMay()
  return (
    <>
      <Facts
        of={[
          ["When", <Time key="when" at={of.occurred_at} />],
          ["By", of.actor_name ?? actorNames[of.actor_type]],
          ...textFact("Actor", of.actor_id),
          ...records.flatMap((field): ReadonlyArray<Fact> => {
            const id = of[field]
            return id === undefined
              ? []
              : [[recordName(field), <RecordName key={field} field={field} id={id} withId />]]
          }),
          ...(of.device_id === undefined
            ? []
            : [["Device", <DeviceLink key="device" id={of.device_id} license={of.license_id} />] as const]),
          ...textFact("Feature", of.feature_code),
          ...(of.code === undefined
            ? []
            : ([["Refusal", <Refusal key="refusal" code={of.code} />]] as ReadonlyArray<Fact>)),
          ...textFact("HTTP status", of.status_code?.toString()),
          ...textFact("Address", of.ip_address),
          ...textFact("Request", of.request_id),
          ["Number", <Permalink key="number" sequence={of.sequence} />]
        ]}
      />
      {of.event_sequence !== undefined && may("event:read") && <Recorded sequence={of.event_sequence} />}
    </>
  )
}

const Refusal = ({ code }: { readonly code: string }) => (
  <>
    {wordsOfRefusal(code)}
    <small>
      <code>{code}</code>
    </small>
  </>
)

interface DeviceLinkProps {
  readonly id: string
  readonly license: string | undefined
}

const DeviceLink = ({ id, license }: DeviceLinkProps) => (
  <>
    {license !== undefined && (
      <Link to="/licenses/$id" params={{ id: license }} hash="devices">
        <DeviceName id={id} license={license} />
      </Link>
    )}
    <small>
      <code>{id}</code>
    </small>
  </>
)

/** An entry's own address: the feed from this entry on. */
const Permalink = ({ sequence }: { readonly sequence: number }) => (
  <Link to="." search={changed({ cursor: sequence + 1, open: sequence })}>
    {sequence}
  </Link>
)

/** What the event of an activity has recorded. */
const Recorded = ({ sequence }: { readonly sequence: number }) => {
  const events = useAsk("listEvents", { query: { cursor: sequence + 1, limit: 1 } })
  const event = AsyncResult.isSuccess(events) ? events.value.items[0] : undefined
  return event === undefined || event.sequence !== sequence ? null : <Metadata of={event} />
}

export const EventDetails = ({ of }: { readonly of: Event }) => (
  <>
    <Facts
      of={[
        ["When", <Time key="when" at={of.created_at} />],
        ["By", of.actor_name ?? actorNames[of.actor_type]],
        ...textFact("Actor", of.actor_id),
        [
          nounOf(of),
          <Fragment key="resource">
            <EventRecord of={of} />
            {of.resource_id !== undefined && (
              <small>
                <code>{of.resource_id}</code>
              </small>
            )}
          </Fragment>
        ],
        ...textFact("Address", of.ip_address),
        ["Number", <Permalink key="number" sequence={of.sequence} />]
      ]}
    />
    <Metadata of={of} />
  </>
)

/** What was recorded, by name: ids as links, changes with what was there before. */
const Metadata = ({ of: { metadata } }: { readonly of: Event }) => {
  const { changes, ...others } = metadata
  const license = others["license_id"]
  const entries = [...Object.entries(others), ...(isRecord(changes) ? Object.entries(changes) : [])]
  if (entries.length === 0) return null
  return (
    <dl className="facts recorded">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name.endsWith("_id") ? recordName(name) : wordsOf(name)}</dt>
          <dd>
            {name === "device_id" && typeof value === "string" && typeof license === "string" ? (
              <DeviceName id={value} license={license} />
            ) : (
              <Recording name={name} value={value} />
            )}
          </dd>
        </div>
      ))}
    </dl>
  )
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const textOf = (value: unknown): string =>
  value === null ? "none" : typeof value === "string" ? value : JSON.stringify(value)

const Recording = ({ name, value }: { readonly name: string; readonly value: unknown }) => {
  if (typeof value === "string") return <RecordName field={name} id={value} />
  if (isRecord(value) && "old" in value && "new" in value)
    return (
      <>
        <code>{textOf(value["old"])}</code> → <code>{textOf(value["new"])}</code>
      </>
    )
  return <code>{textOf(value)}</code>
}
