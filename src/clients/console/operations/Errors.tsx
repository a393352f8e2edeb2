/** What a node refused and where it failed since its start, and what to do about each code. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { OpsErrors } from "../../../insight/ops/Ops.ts"
import { wordsOfRefusal } from "../licenses/RefusalWords.ts"
import { countOf } from "../parts/Format.ts"
import { Table, Time } from "../parts/Show.tsx"
import { useMay } from "../service/Hooks.ts"
import { DocsLink } from "./Docs.tsx"
import { adviceOn } from "./Remedies.ts"

export const Errors = ({ of: { counts, recent, since } }: { readonly of: OpsErrors }) => (
  <>
    <h3>Requests that failed inside the service</h3>
    <Table
      caption="Failed requests"
      rows={recent}
      keyOf={({ request_id }) => request_id}
      empty="None since the node started."
      columns={[
        { title: "Request", show: ({ method, route }) => `${method} ${route ?? "an unknown path"}` },
        { title: "When", show: ({ occurred_at }) => <Time at={occurred_at} /> },
        {
          title: "What to do",
          wraps: true,
          goes: "last",
          show: ({ code, request_id }) => (
            <Remedy code={code} request={request_id}>
              Look into the log for the request’s id: its record has the cause.
            </Remedy>
          )
        }
      ]}
    />
    <h3>Refused requests</h3>
    <Table
      caption="Refused requests"
      rows={Object.entries(counts).sort(([, one], [, other]) => other - one)}
      keyOf={([code]) => code}
      empty="None since the node started."
      columns={[
        { title: "Refusal", show: ([code]) => <CodeName code={code} /> },
        { title: "Count", number: true, show: ([, count]) => countOf(count) },
        { title: "When, and what to do", wraps: true, goes: "last", show: ([code]) => <Remedy code={code} /> }
      ]}
    />
    <p className="quiet">
      Counted since <Time at={since} />. Wrong requests are refused, too: a refusal is no fault of the service.
    </p>
  </>
)

/** What was done under a request's id. */
const RequestLink = ({ id }: { readonly id: string }) => {
  const may = useMay()
  return may("report:read") ? (
    <Link to="/activity" search={{ request_id: id }}>
      <code>{id}</code>
    </Link>
  ) : (
    <code>{id}</code>
  )
}

const CodeName = ({ code }: { readonly code: string }) => (
  <DocsLink page="errors" part={code.toLowerCase().replaceAll("_", "-")}>
    {wordsOfRefusal(code)}
  </DocsLink>
)

interface RemedyProps {
  readonly code: string
  /** The id of the request that failed. */
  readonly request?: string
  readonly children?: ReactNode
}

const Remedy = ({ children, code, request }: RemedyProps) => {
  const advice = adviceOn(code)
  return (
    <span className="remedy">
      {children ?? (advice !== undefined && `${advice.when} ${advice.remedy}`)}{" "}
      {request !== undefined && (
        <small>
          <RequestLink id={request} />{" "}
        </small>
      )}
      <small>
        <code>{code}</code>
      </small>
    </span>
  )
}
