/** For operators: whether the service is well, and what to do if it is not. It looks again every few seconds. */

import { AsyncResult } from "effect/reactivity"
import { useRef } from "react"
import { version } from "../../../contract/Version.ts"
import { countOf } from "../parts/Format.ts"
import { Facts, Heading, Loaded, Section, Time } from "../parts/Show.tsx"
import { tell } from "../service/Failures.ts"
import { askAgain, causeOf, useAsk } from "../service/Hooks.ts"
import { usePolling } from "../service/Polling.ts"
import { DocsLink } from "./Docs.tsx"
import { Endpoints } from "./Endpoints.tsx"
import { Errors } from "./Errors.tsx"
import { Mails } from "./Mails.tsx"
import type { NodeState, Rates } from "./Metrics.ts"
import { Nodes } from "./Nodes.tsx"
import { type Metrics, useMetrics } from "./UseMetrics.ts"
import { Workers } from "./Workers.tsx"

const asked = [
  ["getOpsSummary", {}],
  ["getOpsErrors", {}],
  ["getWebhookHealth", {}],
  ["getMailHealth", {}],
  ["getOpsNodes", {}],
  ["getReadiness", {}]
] as const

export const OperationsPage = () => {
  const summary = useAsk("getOpsSummary", {})
  const errors = useAsk("getOpsErrors", {})
  const health = useAsk("getWebhookHealth", {})
  const mail = useAsk("getMailHealth", {})
  const nodes = useAsk("getOpsNodes", {})
  const metrics = useMetrics()
  usePolling("5 seconds", true, () => {
    for (const [id, request] of asked) askAgain(id, request)
  })
  return (
    <>
      <Heading title="Operations" />
      <Readiness />
      <Section id="errors" title="Errors of this node">
        <Loaded of={errors}>{(errors) => <Errors of={errors} />}</Loaded>
      </Section>
      <Section id="deliveries" title="Webhook deliveries">
        <Loaded of={health}>{(health) => <Endpoints of={health} />}</Loaded>
      </Section>
      <Section id="mails" title="Mail">
        <Loaded of={mail}>{(mail) => <Mails of={mail} />}</Loaded>
      </Section>
      <Section id="nodes" title="Nodes">
        <Loaded of={nodes}>{({ nodes }) => <Nodes nodes={nodes} />}</Loaded>
      </Section>
      <Section id="workers" title="Background workers">
        <Loaded of={summary}>{({ workers }) => <Workers workers={workers} />}</Loaded>
      </Section>
      <Section id="records" title="Records">
        <Loaded of={summary}>
          {({ customers, devices, event_sequence, leases, licenses, products }) => (
            <Facts
              of={[
                ["Licenses", countOf(licenses.total)],
                ["Devices", countOf(devices.total)],
                ["Seats in use", countOf(leases.live)],
                ["Products", countOf(products)],
                ["Customers", countOf(customers)],
                ["Newest event", countOf(event_sequence)]
              ]}
            />
          )}
        </Loaded>
      </Section>
      {/* Its rates come later than all else, and move nothing here. */}
      <Section id="node" title="This node">
        <p className="quiet">The node that responds; behind a balancer it may be another one each time.</p>
        <Loaded of={errors}>
          {({ since }) => (
            <Facts
              of={[
                ["Version of this console", version],
                ["Runs since", <Time key="since" at={since} />],
                ...nodeFacts(metrics)
              ]}
            />
          )}
        </Loaded>
        {metrics.isFailed && (
          <p role="status" className="failed">
            Its metrics could not be read, and are read again in a few seconds.
          </p>
        )}
        {metrics.isClosed && (
          <p className="quiet">Its metrics need a token of their own: rates are in your monitoring.</p>
        )}
      </Section>
    </>
  )
}

/** Asked again and again, it says only what has changed. */
const Readiness = () => {
  const readiness = useAsk("getReadiness", {})
  const known = useRef(false)
  const cause = causeOf(readiness)
  if (AsyncResult.isSuccess(readiness)) known.current = true
  if (cause === undefined)
    return (
      <p role="status" className={known.current ? "admitted" : "waiting"}>
        {known.current
          ? "The service is ready: its database, migrations, signing key and workers are well."
          : "Checking…"}
      </p>
    )
  return (
    <p role="alert" className="failed">
      {tell(cause).message} See{" "}
      <DocsLink page="operations" part="first-checks">
        “First checks” of the operations guide
      </DocsLink>
      .
    </p>
  )
}

type Fact = readonly [name: string, value: string]

const nodeFacts = ({ latest }: Metrics): ReadonlyArray<Fact> =>
  latest === undefined ? [] : [...rateFacts(latest.rates), ...stateFacts(latest.node)]

const decimal = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const rateOf = (rate: number | undefined) => (rate === undefined ? "…" : decimal.format(rate))

const rateFacts = (rates: Rates | undefined): ReadonlyArray<Fact> => [
  ["Requests a second", rateOf(rates?.all)],
  ["Refused a second", rateOf(rates?.refused)],
  ["Failed a second", rateOf(rates?.failed)]
]

const stateFacts = (node: NodeState): ReadonlyArray<Fact> => {
  const { connections, databaseUp, delaySeconds, memoryBytes, peers, queues } = node
  return [
    ["Database", databaseUp ? "responds" : "does not respond"],
    [
      "Database connections",
      `${countOf(connections.inUse)} of ${countOf(connections.max)} in use, ${countOf(connections.waiting)} waiting`
    ],
    ["Memory", `${countOf(Math.round(memoryBytes / 1e6))} MB`],
    ["Delay of the event loop", `${decimal.format(delaySeconds * 1_000)} ms`],
    ...(peers === undefined ? [] : [["Other nodes", countOf(peers)] as const]),
    ...queues.map(
      ([queue, seconds]) =>
        [
          `Oldest waiting: ${queue.replaceAll("-", " ")}`,
          seconds === 0 ? "none" : `${decimal.format(seconds)} s`
        ] as const
    )
  ]
}
