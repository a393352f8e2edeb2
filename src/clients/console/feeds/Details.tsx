/** The facts of entries, with links to what they are about. */
import { Link } from "@tanstack/react-router"
import type { Schema } from "effect"
import { AsyncResult } from "effect/reactivity"
import { Fragment, type ReactNode } from "react"
import type { Activity } from "../../../insight/activities/Activity.ts"
import type { Event } from "../../../ledger/events/Event.ts"
import { Member } from "../audit/Changes.tsx"
import { featureIn, recordedIn } from "../audit/Differences.ts"
import { wordsOfRefusal } from "../licenses/RefusalWords.ts"
import { capital, wordsOf } from "../parts/Format.ts"
import { DeviceName, FeatureOf, RecordName } from "../parts/Names.tsx"
import { Facts, Time } from "../parts/Show.tsx"
import { lastOf, useAsk, useAskEach, useMay } from "../service/Hooks.ts"
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

const recordName = (field: string) => capital(wordsOf(field.replace(/_(?:id|code)$/, "")))

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
          ...(of.feature_code === undefined
            ? []
            : [["Feature", <FeatureOf key="feature" code={of.feature_code} product={of.product_id} />] as const]),
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
const Metadata = ({ of }: { readonly of: Event }) => {
  // The code names a feature, too.
  const shown = recordedIn(of.metadata).filter(
    ([name]) => name !== "feature_id" || of.metadata["feature_code"] === undefined
  )
  if (shown.length === 0) return null
  return (
    <dl className="facts recorded">
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Title name={name} of={of} />
          </dt>
          <dd>
            <Recording name={name} value={value} of={of} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

interface MemberProps {
  readonly name: string
  readonly of: Event
}

const Title = ({ name, of }: MemberProps) => {
  const code = featureIn(name)
  if (code !== undefined) return <RecordedFeature code={code} of={of} />
  return /_id$|^feature_code$/.test(name) ? recordName(name) : wordsOf(name)
}

const licenseOf = ({ metadata: { license_id }, resource_id, resource_type }: Event): string | undefined =>
  typeof license_id === "string" ? license_id : resource_type === "license" ? resource_id : undefined

const Recording = ({ name, of, value }: MemberProps & { readonly value: Schema.Json }) => {
  const license = licenseOf(of)
  if (name === "feature_code" && typeof value === "string") return <RecordedFeature code={value} of={of} />
  if (name === "device_id" && typeof value === "string" && license !== undefined)
    return <DeviceName id={value} license={license} />
  return <Member name={name} of={value} isExact />
}

/** A feature of the event's license or policy. */
const RecordedFeature = ({ code, of }: { readonly code: string; readonly of: Event }) => {
  const may = useMay()
  const isOfPolicy = of.resource_type === "policy"
  const id = isOfPolicy ? of.resource_id : licenseOf(of)
  const mayRead = may(isOfPolicy ? "product:read" : "license:read")
  const [owner] = useAskEach(
    // Both have a product.
    (isOfPolicy ? "getPolicy" : "getLicense") as "getLicense",
    id === undefined || !mayRead ? [] : [{ params: { id } }]
  )
  const product = owner && lastOf(owner)?.product_id
  return product === undefined ? <code>{code}</code> : <FeatureOf code={code} product={product} />
}
