/** What needs attention, before any figure: for a person who comes once a week. Each line leads to what can be done. */
import { Link } from "@tanstack/react-router"
import type { AsyncResult } from "effect/reactivity"
import { type ReactNode, useState } from "react"
import type { WebhookEndpointHealth } from "../../../ledger/webhooks/WebhookHealth.ts"
import { maintenanceIn, periodOf } from "../licenses/Periods.ts"
import { wordsOfRefusal } from "../licenses/RefusalWords.ts"
import { Icon } from "../look/Icon.tsx"
import { countOf } from "../parts/Format.ts"
import { licenseName } from "../parts/LicenseName.ts"
import { useNamed } from "../parts/Names.tsx"
import { Section, Time } from "../parts/Show.tsx"
import { causeOf, lastOf, useAsk, useMay } from "../service/Hooks.ts"

interface OfProduct {
  readonly product: string | undefined
}

const filterOf = ({ product }: OfProduct) => (product === undefined ? {} : { product_id: product })
const one = { limit: 1, include_total: "true" } as const

interface Total {
  readonly total?: number
  readonly total_is_capped?: boolean
}

const totalOf = ({ total = 0, total_is_capped }: Total) => `${countOf(total)}${total_is_capped ? "+" : ""}`

export const Attention = ({ product }: OfProduct) => {
  const may = useMay()
  if (!may("ops:read") && !may("report:read") && !may("license:read")) return null
  return (
    <Section id="attention" title="Needs attention">
      <ul className="attention">
        {may("ops:read") && product === undefined && <FailingWebhooks />}
        {may("ops:read") && product === undefined && <FailingMail />}
        {may("report:read") && <OftenRefused product={product} />}
        {may("report:read") && <NearQuotas product={product} />}
        {may("license:read") && <InGrace product={product} />}
        {may("license:read") && <Expiring product={product} />}
        {may("license:read") && <MaintenanceEnds product={product} />}
        <li className="calm quiet">Nothing else needs you now.</li>
      </ul>
    </Section>
  )
}

const Line = (props: { readonly level: "failed" | "soon"; readonly children: ReactNode }) => (
  <li>
    <span className={`status ${props.level}`} />
    {props.children}
    <Icon name="next" />
  </li>
)

type Asked<A> = AsyncResult.AsyncResult<A, unknown>

/** Lines of what was read. What could not be read may need attention, too. */
const linesOf = <A,>(what: string, asked: Asked<A>, show: (read: A) => ReactNode): ReactNode => {
  const last = lastOf(asked)
  if (last !== undefined) return show(last)
  return causeOf(asked) === undefined ? null : <li className="calm failed">{what} could not be read.</li>
}

const failureOf = ({ failed_24h, is_active, pending }: WebhookEndpointHealth): string =>
  is_active
    ? `${countOf(failed_24h)} attempts failed in 24 hours, ${countOf(pending)} deliveries wait`
    : `the service has switched it off, and ${countOf(pending)} deliveries wait`

const FailingWebhooks = () =>
  linesOf("The health of webhooks", useAsk("getWebhookHealth", {}), ({ per_endpoint }) =>
    per_endpoint
      .filter(({ disabled_reason, success_rate_24h = 1 }) => disabled_reason !== undefined || success_rate_24h < 0.5)
      .slice(0, 3)
      .map((health) => (
        <Line key={health.webhook_id} level="failed">
          <Link to="/webhooks/$id" params={{ id: health.webhook_id }}>
            The webhook {health.name} fails
          </Link>
          <small>{failureOf(health)}</small>
        </Line>
      ))
  )

const FailingMail = () =>
  linesOf("The health of mail", useAsk("getMailHealth", {}), ({ mails, status }) =>
    status !== "failing" && status !== "degraded" ? null : (
      <Line level="failed">
        <Link to="/operations">{status === "failing" ? "Mail is not sent" : "Some mails are not sent"}</Link>
        <small>
          {countOf(mails.failed_24h)} attempts failed and {countOf(mails.given_up_24h)} mails were given up in 24 hours,{" "}
          {countOf(mails.pending)} wait
        </small>
      </Line>
    )
  )

/** An application that is refused again and again has a customer who waits. */
const OftenRefused = (of: OfProduct) =>
  linesOf("Refusals and quotas", useAsk("getAttention", { query: filterOf(of) }), (attention) => (
    <Some of={attention.refused_licenses}>
      {({ code, license_id, refusals }) => (
        <Line key={license_id} level="failed">
          <Link to="/licenses/$id" params={{ id: license_id }}>
            Refused {countOf(refusals)} times: <NameOf id={license_id} />
          </Link>
          <small>
            {wordsOfRefusal(code)}, since <Time at={attention.refusals_from} only="day" />
          </small>
        </Line>
      )}
    </Some>
  ))

const NearQuotas = (of: OfProduct) => {
  const { near_quotas = [] } = lastOf(useAsk("getAttention", { query: filterOf(of) })) ?? {}
  return (
    <Some of={near_quotas}>
      {({ feature_id, feature_name, license_id, quota, remaining, resets_at }) => (
        <Line key={`${license_id} ${feature_id}`} level={remaining === 0 ? "failed" : "soon"}>
          <Link to="/licenses/$id" params={{ id: license_id }}>
            {remaining === 0 ? "None" : countOf(remaining)} of {countOf(quota)} {feature_name} left:{" "}
            <NameOf id={license_id} />
          </Link>
          <small>
            {resets_at === undefined ? (
              "add credits"
            ) : (
              <>
                begins anew on <Time at={resets_at} only="day" />
              </>
            )}
          </small>
        </Line>
      )}
    </Some>
  )
}

const shownMax = 3

/** The first ones; the others after a click. */
const Some = <A,>(props: { readonly of: ReadonlyArray<A>; readonly children: (one: A) => ReactNode }) => {
  const [isWhole, setWhole] = useState(false)
  const more = props.of.length - shownMax
  return (
    <>
      {props.of.slice(0, isWhole ? undefined : shownMax).map(props.children)}
      {!isWhole && more > 0 && (
        <li>
          <button type="button" className="quiet small" onClick={() => setWhole(true)}>
            Show {countOf(more)} more
          </button>
        </li>
      )}
    </>
  )
}

const NameOf = ({ id }: { readonly id: string }) => {
  const license = useNamed(lastOf(useAsk("getLicense", { params: { id } })))
  return license === undefined ? "A license" : licenseName(license)
}

const InGrace = (of: OfProduct) =>
  linesOf(
    "Licenses that expire",
    useAsk("listLicenses", { query: { ...one, ...filterOf(of), status: "grace_period" } }),
    (page) =>
      !page.total ? null : (
        <Line level="soon">
          <Link to="/licenses" search={{ ...filterOf(of), status: "grace_period" }}>
            {page.total === 1
              ? "1 license has expired and still works"
              : `${totalOf(page)} licenses have expired and still work`}
          </Link>
          <small>in their grace period: extend them, or let them end</small>
        </Line>
      )
  )

const Expiring = (of: OfProduct) => {
  const query = { ...one, ...filterOf(of), status: "active", ...periodOf("next_30_days") } as const
  const page = lastOf(useAsk("listLicenses", { query }))
  if (page === undefined || !page.total) return null
  return (
    <Line level="soon">
      <Link to="/licenses" search={{ ...filterOf(of), status: "active", expires: "next_30_days", sort: "expires_at" }}>
        {page.total === 1 ? "1 license expires" : `${totalOf(page)} licenses expire`} in 30 days
      </Link>
      <small>offer a renewal</small>
    </Line>
  )
}

const MaintenanceEnds = (of: OfProduct) => {
  const query = { ...one, ...filterOf(of), status: "active", ...maintenanceIn("next_30_days") } as const
  const page = lastOf(useAsk("listLicenses", { query }))
  if (page === undefined || !page.total) return null
  return (
    <Line level="soon">
      <Link to="/licenses" search={{ ...filterOf(of), status: "active", maintenance: "next_30_days" }}>
        The updates of {page.total === 1 ? "1 license end" : `${totalOf(page)} licenses end`} in 30 days
      </Link>
      <small>offer a renewal of the maintenance</small>
    </Line>
  )
}
