/** What needs attention, before any figure: for a person who comes once a week. Each line leads to what can be done. */
import { Link } from "@tanstack/react-router"
import { type ReactElement, type ReactNode, useState } from "react"
import type { Attention as Report } from "../../../insight/reports/model/Attention.ts"
import type { WebhookEndpointHealth } from "../../../ledger/webhooks/WebhookHealth.ts"
import type { OperationId, Success } from "../../client/Client.ts"
import { maintenanceIn, periodOf } from "../licenses/Periods.ts"
import { wordsOfRefusal } from "../licenses/RefusalWords.ts"
import { Icon } from "../look/Icon.tsx"
import { cappedOf, counted, countOf } from "../parts/Format.ts"
import { licenseName } from "../parts/LicenseName.ts"
import { useNamed } from "../parts/Names.tsx"
import { Section, Time, tellCut } from "../parts/Show.tsx"
import { type Asked, causeOf, lastOf, useAsk, useAskEach, useMay } from "../service/Hooks.ts"

interface OfProduct {
  readonly product: string | undefined
}

const one = { limit: 1, include_total: "true" } as const

/** So many lines have room beside the figures, with one that says how many more there are. */
const shownMax = 3

export const Attention = ({ product }: OfProduct) => {
  const may = useMay()
  const { isRead, kinds } = useKinds(product)
  const lines = kinds.flat()
  const [isWhole, setWhole] = useState(false)
  if (!may("ops:read") && !may("report:read") && !may("license:read")) return null
  const more = lines.length - shownMax
  return (
    <Section id="attention" title="Needs attention">
      <ul className="attention" onPointerOver={tellCut} onFocus={tellCut}>
        {isWhole ? lines : firstOf(kinds)}
        {more > 0 && (
          <li>
            <button type="button" className="quiet small" onClick={() => setWhole(!isWhole)}>
              {isWhole ? "Show fewer" : `Show ${countOf(more)} more`}
            </button>
          </li>
        )}
        {lines.length === 0 && <li className="calm quiet">{isRead ? "Nothing else needs you now." : "…"}</li>}
      </ul>
    </Section>
  )
}

type Lines = ReadonlyArray<ReactElement>

/** The first line of each kind, then their second ones, in the order of the kinds. */
const firstOf = (kinds: ReadonlyArray<Lines>): Lines =>
  kinds
    .flatMap((lines, kind) => lines.map((line, place) => ({ kind, line, place })))
    .sort((one, other) => one.place - other.place)
    .slice(0, shownMax)
    .sort((one, other) => one.kind - other.kind)
    .map(({ line }) => line)

/** What fails first, then what is refused or near its end, then what expires; and whether all of it was read. */
const useKinds = (product: string | undefined) => {
  const may = useMay()
  const of = product === undefined ? {} : { product_id: product }
  const ops = may("ops:read") && product === undefined ? [{}] : []
  const active = { ...one, ...of, status: "active" } as const
  const ending = [
    { ...one, ...of, status: "grace_period" as const },
    { ...active, ...periodOf("next_30_days") },
    { ...active, ...maintenanceIn("next_30_days") }
  ]
  const [webhooks] = useAskEach("getWebhookHealth", ops)
  const [mail] = useAskEach("getMailHealth", ops)
  const [report] = useAskEach("getAttention", may("report:read") ? [{ query: of }] : [])
  const queries = may("license:read") ? ending.map((query) => ({ query })) : []
  const [grace, expiring, maintenance] = useAskEach("listLicenses", queries)
  const kinds: ReadonlyArray<Lines> = [
    linesOf("The health of webhooks", webhooks, failingWebhooks),
    linesOf("The health of mail", mail, failingMail),
    linesOf("Refusals and quotas", report, oftenRefused),
    report === undefined || lastOf(report) === undefined ? [] : linesOf("Refusals and quotas", report, nearQuotas),
    linesOf("Licenses in their grace period", grace, inGrace(of)),
    linesOf("Licenses that expire", expiring, expire(of)),
    linesOf("Licenses whose updates end", maintenance, maintenanceEnds(of))
  ]
  const asked = [webhooks, mail, report, grace, expiring, maintenance]
  return { kinds, isRead: asked.every((each) => each?._tag !== "Initial") }
}

/** Lines of what was read. What could not be read may need attention, too. */
const linesOf = <Id extends OperationId>(
  what: string,
  asked: Asked<Id> | undefined,
  show: (read: Success<Id>) => Lines
): Lines => {
  const last = asked && lastOf(asked)
  if (last !== undefined) return show(last)
  if (asked === undefined || causeOf(asked) === undefined) return []
  return [
    <li key={what} className="calm failed">
      {what} could not be read.
    </li>
  ]
}

const Line = (props: { readonly level: "failed" | "soon"; readonly children: ReactNode }) => (
  <li>
    <span className={`status ${props.level}`} />
    {props.children}
    <Icon name="next" />
  </li>
)

const failureOf = ({ failed_24h, is_active, pending }: WebhookEndpointHealth): string =>
  is_active
    ? `${counted(failed_24h, "attempt")} failed in 24 hours; deliveries waiting: ${countOf(pending)}`
    : `The service has switched it off; deliveries waiting: ${countOf(pending)}`

const failingWebhooks = ({ per_endpoint }: Success<"getWebhookHealth">): Lines =>
  per_endpoint
    .filter(({ disabled_reason, success_rate_24h = 1 }) => disabled_reason !== undefined || success_rate_24h < 0.5)
    .map((health) => (
      <Line key={health.webhook_id} level="failed">
        <Link to="/webhooks/$id" params={{ id: health.webhook_id }}>
          The webhook {health.name} fails
        </Link>
        <small>{failureOf(health)}</small>
      </Line>
    ))

const failingMail = ({ mails, status }: Success<"getMailHealth">): Lines =>
  status !== "failing" && status !== "degraded"
    ? []
    : [
        <Line key="mail" level="failed">
          <Link to="/operations">{status === "failing" ? "Mail is not sent" : "Some mails are not sent"}</Link>
          <small>
            {counted(mails.failed_24h, "attempt")} failed and {counted(mails.given_up_24h, "mail")} given up in 24
            hours; waiting: {countOf(mails.pending)}
          </small>
        </Line>
      ]

/** An application that is refused again and again has a customer who waits. */
const oftenRefused = ({ refusals_from, refused_licenses }: Report): Lines =>
  refused_licenses.map(({ code, license_id, refusals }) => (
    <Line key={license_id} level="failed">
      <Link to="/licenses/$id" params={{ id: license_id }}>
        Refused {countOf(refusals)} times: <NameOf id={license_id} />
      </Link>
      <small>
        {wordsOfRefusal(code)}, since <Time at={refusals_from} only="day" />
      </small>
    </Line>
  ))

const nearQuotas = ({ near_quotas }: Report): Lines =>
  near_quotas.map(({ feature_id, feature_name, license_id, quota, remaining, resets_at }) => (
    <Line key={`${license_id} ${feature_id}`} level={remaining === 0 ? "failed" : "soon"}>
      <Link to="/licenses/$id" params={{ id: license_id }}>
        {remaining === 0 ? "None" : countOf(remaining)} of {countOf(quota)} {feature_name} left:{" "}
        <NameOf id={license_id} />
      </Link>
      <small>
        {resets_at === undefined ? (
          "Add credits"
        ) : (
          <>
            Begins anew on <Time at={resets_at} only="day" />
          </>
        )}
      </small>
    </Line>
  ))

const NameOf = ({ id }: { readonly id: string }) => {
  const license = useNamed(lastOf(useAsk("getLicense", { params: { id } })))
  return license === undefined ? "A license" : licenseName(license)
}

type Filter = { readonly product_id?: string }
type Count = Success<"listLicenses">

const inGrace =
  (of: Filter) =>
  (page: Count): Lines =>
    !page.total
      ? []
      : [
          <Line key="grace" level="soon">
            <Link to="/licenses" search={{ ...of, status: "grace_period" }}>
              {page.total === 1
                ? "1 license has expired and still works"
                : `${cappedOf(page)} licenses have expired and still work`}
            </Link>
            <small>In their grace period: extend them, or let them end</small>
          </Line>
        ]

const expire =
  (of: Filter) =>
  (page: Count): Lines =>
    !page.total
      ? []
      : [
          <Line key="expiring" level="soon">
            <Link to="/licenses" search={{ ...of, status: "active", expires: "next_30_days", sort: "expires_at" }}>
              {page.total === 1 ? "1 license expires" : `${cappedOf(page)} licenses expire`} in 30 days
            </Link>
            <small>Offer a renewal</small>
          </Line>
        ]

const maintenanceEnds =
  (of: Filter) =>
  (page: Count): Lines =>
    !page.total
      ? []
      : [
          <Line key="maintenance" level="soon">
            <Link
              to="/licenses"
              search={{ ...of, status: "active", maintenance: "next_30_days", sort: "maintenance_expires_at" }}
            >
              The updates of {page.total === 1 ? "1 license end" : `${cappedOf(page)} licenses end`} in 30 days
            </Link>
            <small>Offer a renewal of the maintenance</small>
          </Line>
        ]
