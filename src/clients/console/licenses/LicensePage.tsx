/** One license: what it is, what it allows, who uses it, what happened to it, and what can be done. */
import { getRouteApi, Link } from "@tanstack/react-router"
import type { Activity } from "../../../insight/activities/Activity.ts"
import type { License } from "../../../licensing/model/License.ts"
import { batchKey } from "../batch/BatchLines.ts"
import { LicenseValues } from "../customFields/Values.tsx"
import { countOf } from "../parts/Format.ts"
import { licenseName } from "../parts/LicenseName.ts"
import { Metadata } from "../parts/Metadata.tsx"
import { RecordName, useNamed } from "../parts/Names.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Heading, Key, Section, Status, Time } from "../parts/Show.tsx"
import { Features } from "../quotas/LicenseFeatures.tsx"
import { RefundOf } from "../refunds/Refund.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { now } from "../service/Service.ts"
import { Devices } from "./Devices.tsx"
import { Diagnosis } from "./Diagnosis.tsx"
import { Expiry, isRenewable, useLicenseType } from "./Expiry.tsx"
import { Extend, RenewMaintenance, RotateKey, Transfer, Transitions } from "./LicenseActions.tsx"
import { ApplyPolicy, ChangePolicy, EditLicense } from "./LicenseEdits.tsx"
import { Limits } from "./Limits.tsx"
import { RefusedLately } from "./Refused.tsx"
import { Seats } from "./Seats.tsx"
import { Timeline } from "./Timeline.tsx"

const route = getRouteApi("/licenses/$id")

export const LicensePage = () => {
  const { id } = route.useParams()
  const license = useAsk("getLicense", { params: { id } })
  return (
    <OneRecord of={license} noun="license">
      {(license) => <Screen key={license.id} license={license} />}
    </OneRecord>
  )
}

const Screen = (props: { readonly license: License }) => {
  const license = useNamed(props.license)
  const may = useMay()
  const mayChange = may("license:write") && license.status !== "revoked"
  return (
    <>
      <Heading
        title={licenseName(license)}
        about={
          <>
            <Status of={license.status} />
            <span className="own">
              <Key of={license} />
              {mayChange && <RotateKey license={license} />}
            </span>
            <Until license={license} />
          </>
        }
        {...(mayChange ? { more: <MoreActions license={license} /> } : {})}
      >
        {mayChange && <EditLicense license={license} />}
        {mayChange && <Extend license={license} />}
        {mayChange && <RenewMaintenance license={license} />}
      </Heading>
      <div className="split">
        <div>
          <RefusedLately id={license.id}>
            {(refused) => <Uses license={license} refused={refused} mayChange={mayChange} />}
          </RefusedLately>
        </div>
        <div>
          <About license={license} mayChange={mayChange} />
          <Limits license={license} mayChange={mayChange} />
          <LicenseValues license={license} mayChange={mayChange} />
          <Metadata of={license.metadata} />
        </div>
      </div>
    </>
  )
}

interface UsesProps {
  readonly license: License
  readonly refused: ReadonlyArray<Activity> | undefined
  readonly mayChange: boolean
}

/** Who uses the license, and how. What is refused stands first. */
const Uses = ({ license, mayChange, refused }: UsesProps) => {
  const may = useMay()
  const isRefused = refused !== undefined && refused.length > 0
  const diagnosis = <Diagnosis license={license} refused={refused} mayChange={mayChange} />
  return (
    <>
      {isRefused && diagnosis}
      <Features license={license} mayChange={mayChange} />
      <Devices license={license} mayChange={may("device:write") && license.status !== "revoked"} />
      {(license.limits.max_floating_users ?? 0) > 0 && <Seats license={license} />}
      {!isRefused && diagnosis}
      {may("report:read") && <Timeline license={license} />}
    </>
  )
}

const Until = ({ license: { expires_at, maintenance_expires_at, policy_id } }: { readonly license: License }) => {
  const type = useLicenseType(policy_id)
  return (
    <>
      {expires_at !== undefined ? (
        <span>
          {expires_at < now() ? "expired" : "expires"} <Time at={expires_at} only="day" />
        </span>
      ) : (
        type !== undefined && <span>{isRenewable(type) ? "its term begins with its first use" : "never expires"}</span>
      )}
      {maintenance_expires_at !== undefined && (
        <span>
          {maintenance_expires_at < now() ? "updates ended" : "updates until"}{" "}
          <Time at={maintenance_expires_at} only="day" />
        </span>
      )}
    </>
  )
}

/** What ends something stands last, after a rule. */
const MoreActions = ({ license }: { readonly license: License }) => (
  <>
    <Transfer license={license} />
    <ApplyPolicy license={license} />
    <hr />
    <Transitions license={license} />
  </>
)

const OrderOf = ({ id }: { readonly id: string }) => (
  <span className="own">
    <RecordName field="order_id" id={id} />
    <RefundOf order={id} />
  </span>
)

const About = ({ license, mayChange }: { readonly license: License; readonly mayChange: boolean }) => {
  const may = useMay()
  const batch = license.metadata[batchKey]
  const type = useLicenseType(license.policy_id)
  return (
    <Section id="about" title="About" actions={mayChange && <ChangePolicy license={license} />}>
      <Facts
        of={[
          ["E-mail", license.customer_email ?? "–"],
          ["Customer", <RecordName field="customer_id" key="customer" id={license.customer_id} none="not linked" />],
          ...(may("product:read")
            ? ([
                ["Product", <RecordName field="product_id" key="product" id={license.product_id} />],
                ["Policy", <RecordName field="policy_id" key="policy" id={license.policy_id} />],
                ...(license.order_id === undefined
                  ? []
                  : ([["Order", <OrderOf key="order" id={license.order_id} />]] as const)),
                ...(license.subscription_id === undefined
                  ? []
                  : ([
                      ["Subscription", <RecordName field="subscription_id" key="sub" id={license.subscription_id} />]
                    ] as const))
              ] as const)
            : []),
          ...(typeof batch === "string"
            ? ([
                [
                  "Batch",
                  <Link key="batch" to="/licenses" search={{ batch }}>
                    {batch}
                  </Link>
                ]
              ] as const)
            : []),
          ["Expires", <Expiry key="expires" at={license.expires_at} type={type} />],
          ...(license.maintenance_expires_at === undefined
            ? []
            : ([["Updates until", <Time key="maintenance" at={license.maintenance_expires_at} />]] as const)),
          ["Starts", <Time key="starts" at={license.starts_at} none="at once" />],
          ["Issued", <Time key="created" at={license.created_at} />],
          ["Uses counted", countOf(license.total_consumptions)]
        ]}
      />
    </Section>
  )
}
