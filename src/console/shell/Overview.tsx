/** The overview: how many licenses are in which state, which expire soon, and whether webhooks are delivered. */
import { Link } from "@tanstack/react-router"
import { AsyncResult } from "effect/reactivity"
import type { ReactNode } from "react"
import { LicenseStatus } from "../../licenses/model/License.ts"
import { periodOf } from "../licenses/Periods.ts"
import { countOf, wordsOf } from "../parts/Format.ts"
import { Facts, Heading, Loaded, Section, Status } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"

export const Overview = () => {
  const may = useMay()
  return (
    <>
      <Heading title="Overview">
        {may("license:write") && may("product:read") && (
          <Link to="/licenses/new" className="button primary">
            Issue a license
          </Link>
        )}
      </Heading>
      {may("license:read") ? (
        <Licenses />
      ) : (
        <p className="empty">Choose an area above: this token may not read licenses.</p>
      )}
      {may("ops:read") && <Webhooks />}
    </>
  )
}

const Licenses = () => (
  <Section id="licenses" title="Licenses">
    <ul className="tiles">
      {LicenseStatus.literals.map((status) => (
        <li key={status}>
          <Count status={status} />
        </li>
      ))}
      <li>
        <Expiring />
      </li>
    </ul>
  </Section>
)

const one = { limit: 1, include_total: "true" } as const

const Count = ({ status }: { readonly status: LicenseStatus }) => {
  const page = useAsk("listLicenses", { query: { ...one, status } })
  return (
    <Link to="/licenses" search={{ status }}>
      <TileTotal of={page} />
      {wordsOf(status)}
    </Link>
  )
}

const Expiring = () => {
  const page = useAsk("listLicenses", { query: { ...one, status: "active", ...periodOf("this_month") } })
  return (
    <Link to="/licenses" search={{ status: "active", expires: "this_month" }}>
      <TileTotal of={page} />
      expire this month
    </Link>
  )
}

type Total = AsyncResult.AsyncResult<{ readonly total?: number; readonly total_is_capped?: boolean }, unknown>

const TileTotal = ({ of }: { readonly of: Total }): ReactNode => (
  <strong>
    {AsyncResult.isSuccess(of) ? `${countOf(of.value.total ?? 0)}${of.value.total_is_capped ? "+" : ""}` : "…"}
  </strong>
)

const Webhooks = () => {
  const health = useAsk("getWebhookHealth", {})
  return (
    <Section id="webhooks" title="Webhook deliveries">
      <Loaded of={health}>
        {({ deliveries, status }) => (
          <Facts
            of={[
              ["State", <Status key="status" of={status} />],
              ["Waiting", countOf(deliveries.pending)],
              ["Retrying", countOf(deliveries.retrying)],
              ["Delivered in 24 hours", countOf(deliveries.delivered_24h)],
              ["Given up in 24 hours", countOf(deliveries.exhausted_24h)]
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
