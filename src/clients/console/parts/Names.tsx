/** Records that another one links to, by name. The id is told on hover; it is shown if the name may not or cannot be read. */
import { Link } from "@tanstack/react-router"
import type { ManagementScope } from "../../../access/Scope.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import type { OperationId, Success } from "../../client/Client.ts"
import { causeOf, lastOf, useAsk, useAskEach, useMay } from "../service/Hooks.ts"
import { type FeatureNames, type NameOf, namesOf } from "./FeatureNames.ts"
import { capital, sentenceOf, wordsOf } from "./Format.ts"
import { customerName, deviceName, licenseCount, shortName } from "./LicenseName.ts"
import { RecordLink } from "./RecordLink.tsx"

interface Kind {
  /** What a token needs to read it. */
  readonly scope: ManagementScope
  readonly operation: OperationId
  readonly nameOf: (record: never) => string
}

const kind = <Id extends OperationId>(
  scope: ManagementScope,
  operation: Id,
  nameOf: (record: Success<Id>) => string
): Kind => ({ scope, operation, nameOf })

const bought = ({ external_id, status }: Success<"getOrder"> | Success<"getSubscription">) =>
  `${external_id} (${wordsOf(status)})`

/** By the name of the field that has the id. */
const kinds: Readonly<Record<string, Kind>> = {
  api_key_id: kind("admin", "getApiKey", ({ name }) => name),
  bulk_job_id: kind(
    "license:read",
    "getBulkJob",
    ({ action, matched }) => `${sentenceOf(action)}, ${licenseCount(matched)}`
  ),
  feature_id: kind("product:read", "getFeature", ({ name }) => name),
  webhook_id: kind("webhook:write", "getWebhook", ({ name }) => name),
  customer_id: kind("license:read", "getCustomer", customerName),
  license_id: kind("license:read", "getLicense", shortName),
  order_id: kind("product:read", "getOrder", bought),
  policy_id: kind("product:read", "getPolicy", ({ license_type, name }) => `${name} (${wordsOf(license_type)})`),
  product_id: kind("product:read", "getProduct", ({ name }) => name),
  report_export_id: kind(
    "report:export",
    "getReportExport",
    ({ format, report_kind }) => `${capital(report_kind.replaceAll("-", " "))}, ${format.toUpperCase()}`
  ),
  subscription_id: kind("product:read", "getSubscription", bought)
}

/** Whether the console knows a name for such records. */
export const isNamed = (field: string): boolean => Object.hasOwn(kinds, field)

interface Of {
  readonly field: string
  readonly id: string
}

const needsOwner = ({ customer_email, customer_id, customer_name, expanded }: License) =>
  customer_id !== undefined && !(customer_name || customer_email || expanded?.customer)

/** A license with the customer that names it, if it has no name of its own. */
export const useNamed = <L extends License | undefined>(license: L): L => {
  const ids = license !== undefined && needsOwner(license) ? [license.customer_id!] : []
  const [asked] = useAskEach(
    "getCustomer",
    ids.map((id) => ({ params: { id } }))
  )
  const customer = asked && lastOf(asked)
  return license === undefined || customer === undefined
    ? license
    : { ...license, expanded: { ...license.expanded, customer } }
}

/** The name of a record; undefined while it is read, and null if it cannot be. */
export const useNameOf = (field: string, id: string): string | null | undefined => {
  const of = kinds[field]!
  // All of them are read by their id.
  const asked = useAsk(of.operation as "getLicense", { params: { id } })
  const read = lastOf(asked)
  const named = useNamed(field === "license_id" ? read : undefined)
  const record = named ?? read
  return record === undefined ? (causeOf(asked) === undefined ? undefined : null) : of.nameOf(record as never)
}

const Known = ({ field, id }: Of) => {
  const name = useNameOf(field, id)
  if (name === undefined) return <span className="waiting">…</span>
  return <RecordLink field={field} id={id} name={name ?? undefined} />
}

interface Named {
  readonly field: string
  readonly id: string | undefined
  /** Shown if there is no such record. */
  readonly none?: string
  /** Whether the id is shown beside the name, to be copied. */
  readonly withId?: boolean
}

export const RecordName = ({ field, id, none = "–", withId = false }: Named) => {
  const may = useMay()
  if (id === undefined) return none
  const of = isNamed(field) ? kinds[field] : undefined
  if (of === undefined || !may(of.scope)) return <RecordLink field={field} id={id} />
  return (
    <>
      <Known field={field} id={id} />
      {withId && (
        <small>
          <code>{id}</code>
        </small>
      )}
    </>
  )
}

/** A device of a license; the id if it may not or cannot be read. */
export const DeviceName = (props: { readonly id: string; readonly license: string }) =>
  useMay()("license:read") ? <KnownDevice {...props} /> : <code>{props.id}</code>

const KnownDevice = ({ id, license }: { readonly id: string; readonly license: string }) => {
  const asked = useAsk("getDevice", { params: { id: license, device_id: id } })
  const device = lastOf(asked)
  if (device !== undefined) return <span title={id}>{deviceName(device)}</span>
  return causeOf(asked) === undefined ? <span className="waiting">…</span> : <code>{id}</code>
}

/** Who did something: the name as it was then, with the id on hover. */
export const Actor = (props: { readonly id: string; readonly name: string | undefined }) =>
  props.name === undefined ? <code>{props.id}</code> : <span title={props.id}>{props.name}</span>

const actors = {
  api_key: "an API key",
  license: "an application",
  oidc_subject: "a person",
  system: "the service"
} as const

interface Acted {
  readonly actor_type: keyof typeof actors
  readonly actor_id: string
  readonly actor_name?: string | undefined
}

/** The same where the name is not always known. */
export const By = ({ of: { actor_id, actor_name, actor_type } }: { readonly of: Acted }) =>
  actor_name === undefined || actor_type === "system" ? actors[actor_type] : <Actor id={actor_id} name={actor_name} />

interface Linked {
  readonly customer_id?: string
  readonly expanded?: { readonly customer?: Customer }
}

/** The customer of a row, which the list was read with. */
export const ListedCustomer = ({ of: { customer_id: id, expanded } }: { readonly of: Linked }) => {
  if (id === undefined) return "–"
  const { customer } = expanded ?? {}
  if (customer === undefined) return <span className="quiet">not visible to you</span>
  return (
    <Link to="/customers/$id" params={{ id }}>
      {customerName(customer)}
    </Link>
  )
}

/** Each product is a request. */
export const firstProducts = 10
const productsMax = 60

/** The names of features by their codes: of one product; or of the first ones, and of others that the screen shows. */
export const useFeatureNames = (product?: string, others: ReadonlyArray<string | undefined> = []): FeatureNames => {
  const mayRead = useMay()("product:read")
  const isOfAll = mayRead && product === undefined
  const [products] = useAskEach("listProducts", isOfAll ? [{ query: { limit: 200, sort: "code" } }] : [])
  const first = ((products && lastOf(products)?.items) ?? []).slice(0, firstProducts).map(({ id }) => id)
  const some = [...new Set([...first, ...others.filter((id) => id !== undefined)])].slice(0, productsMax)
  const ids = !mayRead ? [] : product === undefined ? some : [product]
  const features = useAskEach(
    "listFeatures",
    ids.map((id) => ({ params: { id }, query: { limit: 200, sort: "code" } }))
  )
  const all = features.flatMap((each) => lastOf(each)?.items ?? [])
  return namesOf(all)
}

/** A feature of a product, or if that is not known, of the first ones. */
export const FeatureOf = ({ code, product }: { readonly code: string; readonly product: string | undefined }) => (
  <FeatureName code={code} nameOf={useFeatureNames(product).nameOf} />
)

/** Shows the code on hover. */
export const FeatureName = ({ code, nameOf }: { readonly code: string | undefined; readonly nameOf: NameOf }) => {
  if (code === undefined) return "Deleted feature"
  const name = nameOf(code)
  return name === code ? <code>{code}</code> : <span title={code}>{name}</span>
}
