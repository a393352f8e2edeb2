/** One license: what it is, what it allows, who uses it, what happened to it, and what can be done. */
import { getRouteApi, Link } from "@tanstack/react-router"
import type { License } from "../../licenses/model/License.ts"
import { licenseName } from "../bulk/LicenseName.ts"
import { countAndLimitOf, countOf, limitOf, wordsOf } from "../parts/Format.ts"
import { Facts, Heading, Key, Loaded, Section, Status, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { Devices } from "./Devices.tsx"
import { Diagnosis } from "./Diagnosis.tsx"
import { Features } from "./Features.tsx"
import { Extend, RotateKey, Transfer, Transitions } from "./LicenseActions.tsx"
import { ChangeLimits, ChangePolicy, EditLicense } from "./LicenseEdits.tsx"
import { Seats } from "./Seats.tsx"
import { Timeline } from "./Timeline.tsx"

const route = getRouteApi("/licenses/$id")

export const LicensePage = () => {
  const { id } = route.useParams()
  const license = useAsk("getLicense", { params: { id } })
  return <Loaded of={license}>{(license) => <Screen key={license.id} license={license} />}</Loaded>
}

const Screen = ({ license }: { readonly license: License }) => {
  const may = useMay()
  const mayChange = may("license:write") && license.status !== "revoked"
  return (
    <>
      <Heading title={licenseName(license)}>{mayChange && <Actions license={license} />}</Heading>
      <About license={license} />
      <Limits license={license} mayChange={mayChange} />
      <Features license={license} mayChange={mayChange} />
      <Devices license={license} mayChange={may("device:write") && license.status !== "revoked"} />
      {(license.limits.max_floating_users ?? 0) > 0 && <Seats license={license} />}
      <Diagnosis license={license} />
      {may("report:read") && <Timeline license={license} />}
    </>
  )
}

const Actions = ({ license }: { readonly license: License }) => (
  <>
    <Extend license={license} />
    <ChangePolicy license={license} />
    <EditLicense license={license} />
    <Transfer license={license} />
    <RotateKey license={license} />
    <Transitions license={license} />
  </>
)

const About = ({ license }: { readonly license: License }) => {
  const may = useMay()
  return (
    <Facts
      of={[
        ["Status", <Status key="status" of={license.status} />],
        ["Key", <Key key="key" of={license} />],
        ["E-mail", license.customer_email ?? "–"],
        [
          "Customer",
          license.customer_id === undefined ? "not linked" : <CustomerName key="customer" id={license.customer_id} />
        ],
        ...(may("product:read")
          ? ([
              ["Product", <ProductName key="product" id={license.product_id} />],
              ["Policy", <PolicyName key="policy" id={license.policy_id} />]
            ] as const)
          : []),
        ["Expires", <Time key="expires" at={license.expires_at} none="never" />],
        ...(license.maintenance_expires_at === undefined
          ? []
          : ([["Updates until", <Time key="maintenance" at={license.maintenance_expires_at} />]] as const)),
        ["Starts", <Time key="starts" at={license.starts_at} none="at once" />],
        ["Issued", <Time key="created" at={license.created_at} />],
        ["Uses counted", countOf(license.total_consumptions)]
      ]}
    />
  )
}

const CustomerName = ({ id }: { readonly id: string }) => {
  const customer = useAsk("getCustomer", { params: { id } })
  return (
    <Loaded of={customer}>
      {({ code, name }) => (
        <Link to="/customers/$id" params={{ id }}>
          {name || `Customer ${code}`}
        </Link>
      )}
    </Loaded>
  )
}

const ProductName = ({ id }: { readonly id: string }) => {
  const product = useAsk("getProduct", { params: { id } })
  return (
    <Loaded of={product}>
      {({ name }) => (
        <Link to="/products/$id" params={{ id }}>
          {name}
        </Link>
      )}
    </Loaded>
  )
}

const PolicyName = ({ id }: { readonly id: string }) => {
  const policy = useAsk("getPolicy", { params: { id } })
  return (
    <Loaded of={policy}>
      {({ license_type, name }) => (
        <Link to="/policies/$id" params={{ id }}>
          {name} ({wordsOf(license_type)})
        </Link>
      )}
    </Loaded>
  )
}

const Limits = ({ license, mayChange }: { readonly license: License; readonly mayChange: boolean }) => {
  const { limits } = license
  const own = (name: keyof License["limits"]) => (license[name] === undefined ? "" : " (this license’s own)")
  return (
    <Section id="limits" title="Limits" actions={mayChange && <ChangeLimits license={license} />}>
      <Facts
        of={[
          [
            "Devices",
            `${countAndLimitOf(license.active_device_count, limits.max_activations)}${own("max_activations")}`
          ],
          [
            "Floating seats",
            `${limits.max_floating_users ? countOf(limits.max_floating_users) : "off"}${own("max_floating_users")}`
          ],
          [
            "Container instances",
            limits.max_container_instances === undefined
              ? "counted as devices"
              : `${limitOf(limits.max_container_instances)}${own("max_container_instances")}`
          ],
          ["Transfers", `${countAndLimitOf(license.times_transferred, limits.max_transfers)}${own("max_transfers")}`],
          ["Days offline", `${countOf(limits.offline_grace_days)}${own("offline_grace_days")}`]
        ]}
      />
    </Section>
  )
}
