/** The audit of a license: who changed what, how much was used, and how often it was validated. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { LicenseAudit, UsageBalance } from "../../../insight/reports/model/Report.ts"
import type { Event } from "../../../ledger/events/Event.ts"
import type { License } from "../../../licensing/model/License.ts"
import { beginOf } from "../parts/Days.ts"
import type { NameOf } from "../parts/FeatureNames.ts"
import { choicesOf } from "../parts/Fields.tsx"
import { countOf, nameOfEvent, utcDayOf } from "../parts/Format.ts"
import { licenseName } from "../parts/LicenseName.ts"
import { By, FeatureName, useFeatureNames, useNamed } from "../parts/Names.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { type Column, Facts, Heading, Section, Status, Table, Time, Waiting } from "../parts/Show.tsx"
import { useAskPart } from "../service/Hooks.ts"
import { Filter, PageLink } from "../tables/List.tsx"
import { AuditPeriod, type AuditSearch } from "./AuditSearch.ts"
import { Changes } from "./Changes.tsx"

const route = getRouteApi("/licenses/$id/audit")
const periods = choicesOf(AuditPeriod.literals)
const periodUnlessGiven: AuditPeriod = "last_30_days"

export const AuditPage = () => {
  const { id } = route.useParams()
  return <Audit key={id} id={id} />
}

const Audit = ({ id }: { readonly id: string }) => {
  const { before, period = periodUnlessGiven }: AuditSearch = route.useSearch()
  const navigate = useNavigate()
  const from = beginOf(period)
  const audit = useAskPart("getLicenseAudit", {
    query: { license_id: id, from, limit: 50, ...(before === undefined ? {} : { cursor: before }) }
  })
  return (
    <OneRecord of={audit} noun="license">
      {(shown) => (
        <>
          <AuditHeading license={shown.license} />
          <search className="row filters" aria-label="Filters">
            <Filter
              label="Period"
              value={period}
              choices={periods}
              needed
              onChange={(chosen) =>
                void navigate({
                  to: "/licenses/$id/audit",
                  params: { id },
                  search: { period: chosen as AuditPeriod },
                  replace: true
                })
              }
            />
          </search>
          {/* Only the filter stays while another period is awaited. */}
          {audit.waiting && shown.period.from !== from ? <Waiting /> : <Shown audit={shown} before={before} />}
        </>
      )}
    </OneRecord>
  )
}

interface AuditProps {
  readonly audit: LicenseAudit
  readonly before: number | undefined
}

const Shown = ({ audit, before }: AuditProps) => (
  <>
    <About audit={audit} />
    <Events audit={audit} before={before} />
    <Usage of={audit.usage} product={audit.license.product_id} />
    <Validations of={audit.validations} />
  </>
)

const AuditHeading = ({ license }: { readonly license: License }) => (
  <Heading title={`Audit of ${licenseName(useNamed(license))}`}>
    <Link to="/licenses/$id" params={{ id: license.id }} className="button">
      Back to the license
    </Link>
  </Heading>
)

const About = ({ audit: { license, period, validations } }: { readonly audit: LicenseAudit }) => (
  <Facts
    of={[
      ["Status", <Status key="status" of={license.status} />],
      ["Validations", countOf(validations.validations)],
      ["Refused", countOf(validations.refused)],
      ["From", <Time key="from" at={period.from} none="the beginning" />],
      ["To", <Time key="to" at={period.to} />],
      ...(period.removed_until === undefined
        ? []
        : ([["Usage is incomplete until", <Time key="removed" at={period.removed_until} />]] as const)),
      ...(period.events_removed_until === undefined
        ? []
        : ([["Changes are incomplete until", <Time key="gone" at={period.events_removed_until} />]] as const))
    ]}
  />
)

const eventColumns = (license: string, nameOf: NameOf): ReadonlyArray<Column<Event>> => [
  { title: "What", show: ({ event_type }) => nameOfEvent(event_type) },
  { title: "When", show: ({ created_at }) => <Time at={created_at} /> },
  { title: "By", goes: "next", show: (event) => <By of={event} /> },
  { title: "Address", goes: "first", show: ({ ip_address }) => ip_address ?? "–" },
  {
    title: "Changes",
    wraps: true,
    goes: "last",
    show: ({ metadata }) => <Changes of={metadata} license={license} nameOf={nameOf} />
  }
]

const Events = ({ audit, before }: AuditProps) => {
  const { nameOf } = useFeatureNames(audit.license.product_id)
  return (
    <Section id="events" title="Changes">
      <Table
        caption="Changes"
        rows={audit.events}
        keyOf={({ sequence }) => String(sequence)}
        empty="Nothing was changed in this period."
        columns={eventColumns(audit.license.id, nameOf)}
      />
      <nav aria-label="Pages" className="row end">
        {before !== undefined && <PageLink change={{ before: undefined }}>Newest</PageLink>}
        {audit.next_cursor !== null && <PageLink change={{ before: audit.next_cursor }}>Earlier</PageLink>}
      </nav>
    </Section>
  )
}

const usageColumns = (nameOf: NameOf): ReadonlyArray<Column<UsageBalance>> => [
  { title: "Feature", show: ({ feature_code }) => <FeatureName code={feature_code} nameOf={nameOf} /> },
  { title: "At the beginning", number: true, goes: "first", show: ({ opening_balance }) => countOf(opening_balance) },
  { title: "Used", number: true, show: ({ consumed }) => countOf(consumed) },
  { title: "Reset", number: true, goes: "next", show: ({ reset, restarted }) => countOf(reset + restarted) },
  { title: "At the end", number: true, show: ({ closing_balance }) => countOf(closing_balance) },
  { title: "Credits added", number: true, goes: "first", show: ({ topped_up }) => countOf(topped_up) },
  {
    title: "Quota",
    number: true,
    show: ({ max_after }) => (max_after === undefined ? "–" : countOf(max_after))
  }
]

const Usage = ({ of, product }: { readonly of: LicenseAudit["usage"]; readonly product: string }) => {
  const { nameOf } = useFeatureNames(product)
  return (
    <Section id="usage" title="Usage">
      <Table
        caption="Usage"
        rows={of}
        keyOf={({ feature_id }) => feature_id}
        empty="Nothing was used in this period."
        columns={usageColumns(nameOf)}
      />
    </Section>
  )
}

const Validations = ({ of }: { readonly of: LicenseAudit["validations"] }) => (
  <Section id="validations" title="Validations by day (UTC)">
    <Table
      caption="Validations by day"
      rows={of.buckets}
      keyOf={({ bucket_start }) => String(bucket_start)}
      empty="No machine asked in this period."
      columns={[
        { title: "Day", show: ({ bucket_start }) => utcDayOf(bucket_start) },
        { title: "Answered", number: true, show: ({ validations }) => countOf(validations) },
        { title: "Refused", number: true, show: ({ refused }) => countOf(refused) }
      ]}
    />
  </Section>
)
