/** Products, policies and users of Keygen as products, policies with their features, and customers. */
import { Result } from "effect"
import { formatTimestamp, parseTimestamp } from "../../../contract/api/Timestamp.ts"
import { CustomerCreate } from "../../../vendor/customers/Customer.ts"
import { PolicyCreate, policyDefaults } from "../../../vendor/policies/Policy.ts"
import { ProductCreate } from "../../../vendor/products/Product.ts"
import { tableOf } from "../Columns.ts"
import { decodeFields, type GivenPolicy, rowOf } from "../LicenseUnits.ts"
import type { Entry, Unit } from "../Units.ts"
import { idOf, type Notes } from "./Notes.ts"
import { type Resource, related } from "./Resources.ts"

const daySeconds = 86_400

export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined
export const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)
export const instantOf = (value: unknown): number | undefined => parseTimestamp(textOf(value) ?? "")

/** The name and id of a resource, for people. */
export const nameOf = ({ attributes, id, type }: Resource): string =>
  `${type.replace(/s$/, "").replace(/ie$/, "y")} ${textOf(attributes["name"]) ?? ""} ${id}`.replaceAll(/\s+/g, " ")

export const entryOf = (type: string, source: Resource, fields: { readonly [column: string]: unknown }): Entry => ({
  line: 0,
  source: nameOf(source),
  table: tableOf(type),
  row: rowOf(fields)
})

const times = ({ attributes }: Resource, now: number) => ({
  created_at: formatTimestamp(instantOf(attributes["created"]) ?? now),
  updated_at: formatTimestamp(now)
})

/** A code from a name; the beginning of the id makes it unique. */
const codeOf = (name: string, id: string): string => {
  const words = name
    .toLowerCase()
    .normalize("NFKD")
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
  return `${words.slice(0, 40) || "x"}-${id.slice(0, 8).toLowerCase()}`.replaceAll(/[^a-z0-9.-]/g, "-")
}

const decodeProduct = decodeFields(ProductCreate)
const decodePolicy = decodeFields(PolicyCreate)
const decodeCustomer = decodeFields(CustomerCreate)

export interface KeygenPolicy extends GivenPolicy {
  readonly policy: GivenPolicy["policy"] & { readonly max_activations: number }
  readonly id: string
  readonly productId: string
  readonly requireHeartbeat: boolean
  /** What the end of a license means: the end of access, of updates, or nothing. */
  readonly expiry: "access" | "updates" | "nothing"
}

/** The product here that one of the account becomes. */
interface ProductTarget {
  readonly id: string
  readonly code: string
  /** The features by code of a product that is not of an import. */
  readonly features?: ReadonlyMap<string, string>
}

/** What the account has beside licenses: their sources by id. */
export interface Account {
  readonly products: Map<string, Resource>
  readonly targets: Map<string, ProductTarget>
  readonly policies: Map<string, Resource>
  readonly users: Map<string, Resource>
  readonly entitlements: Map<string, Resource>
  /** The entitlements of a policy. */
  readonly entitled: Map<string, Set<string>>
  readonly machines: Map<string, Array<Resource>>
  /** Policies of which a license has an expiry. */
  readonly expiring: Set<string>
}

const productName = ({ attributes, id }: Resource) => textOf(attributes["name"]) ?? id

/** The code that a product has unless another is chosen. */
export const productCode = (source: Resource): string =>
  textOf(source.attributes["code"])?.toLowerCase() ?? codeOf(productName(source), source.id)

/** The entitlements of a product's policies. */
export const entitlementsOf = (account: Account, productId: string): ReadonlyArray<Resource> => {
  const used = [...account.policies.values()]
    .filter((policy) => related(policy, "product") === productId)
    .flatMap((policy) => [...(account.entitled.get(policy.id) ?? [])])
  return [...new Set(used)].flatMap((id) => account.entitlements.get(id) ?? [])
}

/** A product, with a feature for each entitlement of its policies. */
export const productUnit = (source: Resource, account: Account, notes: Notes, now: number): Unit | undefined => {
  const { attributes, id } = source
  const target = account.targets.get(id)!
  const given = { name: productName(source), code: target.code, metadata: attributes["metadata"] ?? {} }
  const product = decodeProduct(given)
  if (Result.isFailure(product)) return void notes.add(`a product was skipped: ${product.failure}`, nameOf(source))
  const root = entryOf("product", source, {
    id: target.id,
    metadata: {},
    ...product.success,
    ...times(source, now)
  })
  const features = entitlementsOf(account, id).map((entitlement) =>
    entryOf("feature", entitlement, {
      ...{ id: idOf("feat", id, entitlement.id), product_id: target.id, metadata: {} },
      name: (textOf(entitlement.attributes["name"]) ?? entitlement.id).slice(0, 255),
      code: featureCode(entitlement),
      created_at: times(entitlement, now).created_at
    })
  )
  return { root, parts: features }
}

export const featureCode = ({ attributes, id }: Resource): string => {
  const code = (textOf(attributes["code"]) ?? "").toLowerCase().replaceAll(/[^a-z0-9._-]/g, "-")
  return /^[a-z0-9][a-z0-9._-]{0,63}$/.test(code) ? code : codeOf("entitlement", id)
}

/** What a policy of Keygen limits and this service does not. */
const foreignLimits = ["maxCores", "maxMemory", "maxDisk", "maxProcesses", "maxUses", "maxUsers"]

/** The values of Keygen's rules that apply here, and what they mean. */
const fixedRules = [
  ["overageStrategy", "NO_OVERAGE", "limits are exact here"],
  ["heartbeatCullStrategy", "DEACTIVATE_DEAD", "a device that misses its heartbeat loses its slot here"],
  ["heartbeatResurrectionStrategy", "NO_REVIVE", "a device that missed its heartbeat activates again here"],
  ["heartbeatBasis", "FROM_CREATION", "the first heartbeat is due one interval after the activation here"]
] as const

const noteRules = (source: Resource, notes: Notes) => {
  const { attributes } = source
  const note = (message: string) => notes.add(message, nameOf(source))
  for (const limit of foreignLimits) {
    if (numberOf(attributes[limit]) !== undefined) note(`policies' ${limit} is not a limit here`)
  }
  for (const [name, equivalent, here] of fixedRules) {
    const value = textOf(attributes[name]) ?? equivalent
    // Keygen's default basis: it has no effect without required heartbeats.
    const applies = name !== "heartbeatBasis" || attributes["requireHeartbeat"] === true
    if (value !== equivalent && applies) note(`policies' ${name} ${value} has no equivalent: ${here}`)
  }
  if (textOf(attributes["scheme"]) !== undefined) {
    note(
      "keys of policies with a scheme are imported as text; applications verify this service's responses in place of the key"
    )
  }
  if (attributes["requireCheckIn"] === true)
    note("policies' requireCheckIn: use require_heartbeat with a long interval")
  if (attributes["usePool"] === true) note("policies' key pools are not imported")
  for (const name of Object.keys(attributes)) {
    if (/^require\w+Scope$/.test(name) && attributes[name] === true && name !== "requireFingerprintScope") {
      note(`policies' ${name}: this service checks product and device in each request`)
    }
  }
}

/** The days and the beginning of a term, if the policy gives one. */
const termOf = (source: Resource, notes: Notes) => {
  const duration = numberOf(source.attributes["duration"])
  if (duration === undefined || duration <= 0) return {}
  const duration_days = Math.ceil(duration / daySeconds)
  if (duration % daySeconds !== 0) notes.add("policies' durations are rounded up to whole days", nameOf(source))
  const basis = textOf(source.attributes["expirationBasis"]) ?? "FROM_CREATION"
  if (basis === "FROM_CREATION") return { duration_days, duration_starts: "creation" as const }
  if (basis !== "FROM_FIRST_ACTIVATION") {
    notes.add(`policies' expirationBasis ${basis} begins with the first activation here`, nameOf(source))
  }
  return { duration_days, duration_starts: "first_activation" as const }
}

const expiryOf = ({ attributes }: Resource): KeygenPolicy["expiry"] => {
  const strategy = textOf(attributes["expirationStrategy"])
  return strategy === "MAINTAIN_ACCESS" ? "updates" : strategy === "ALLOW_ACCESS" ? "nothing" : "access"
}

/** A policy, with the features that its entitlements are. */
export const policyUnit = (
  source: Resource,
  account: Account,
  notes: Notes,
  now: number
): { readonly unit: Unit; readonly policy: KeygenPolicy } | undefined => {
  const { attributes, id } = source
  const skip = (reason: string) => void notes.add(`a policy was skipped with its licenses: ${reason}`, nameOf(source))
  const product = related(source, "product") ?? ""
  const target = account.targets.get(product)
  if (target === undefined || !account.products.has(product)) return skip("its product is missing")
  noteRules(source, notes)
  const expiry = expiryOf(source)
  const term = expiry === "access" ? termOf(source, notes) : {}
  const ends = expiry === "access" && ("duration_days" in term || account.expiring.has(id))
  const heartbeat = Math.floor((numberOf(attributes["heartbeatDuration"]) ?? 600) / 60)
  const name = textOf(attributes["name"]) ?? id
  const decoded = decodePolicy({
    ...policyDefaults,
    ...{
      name,
      code: codeOf(name, id),
      license_type: ends ? "time_limited" : "perpetual",
      metadata: attributes["metadata"] ?? {}
    },
    max_activations: attributes["floating"] === true ? (numberOf(attributes["maxMachines"]) ?? 0) : 1,
    require_heartbeat: attributes["requireHeartbeat"] === true,
    ...(attributes["requireHeartbeat"] === true ? { validation_interval_minutes: Math.max(1, heartbeat) } : undefined),
    ...term
  })
  if (Result.isFailure(decoded)) return skip(decoded.failure)
  const rules = { ...policyDefaults, ...decoded.success }
  const policyId = idOf("pol", id)
  const parts = [...(account.entitled.get(id) ?? [])].flatMap((entitlementId) => {
    const entitlement = account.entitlements.get(entitlementId)
    if (entitlement === undefined) return []
    const feature_id = target.features?.get(featureCode(entitlement)) ?? idOf("feat", product, entitlementId)
    return [
      entryOf("policy_feature", entitlement, {
        policy_id: policyId,
        feature_id,
        enabled: true,
        metadata: {},
        ...times(source, now)
      })
    ]
  })
  const features = parts.map(({ row }) => ({
    feature_id: String(row["feature_id"]),
    ...{ feature_code: "", feature_name: "", enabled: true, metadata: {} }
  }))
  const root = entryOf("policy", source, {
    id: policyId,
    product_id: target.id,
    metadata: {},
    ...rules,
    ...times(source, now)
  })
  return {
    unit: { root, parts },
    policy: {
      ...{
        id: policyId,
        productId: target.id,
        expiry,
        features,
        requireHeartbeat: rules.require_heartbeat
      },
      policy: rules
    }
  }
}

/** A user with the role user. Administrators get tokens of their own here. */
export const customerUnit = (source: Resource, notes: Notes, now: number): Unit | undefined => {
  const { attributes, id } = source
  const role = textOf(attributes["role"]) ?? "user"
  if (role !== "user")
    return void notes.add(`users with the role ${role} are not imported: create API keys for them`, nameOf(source))
  const email = textOf(attributes["email"])
  const names = [attributes["firstName"], attributes["lastName"]].flatMap((name) => textOf(name) ?? [])
  const name = textOf(attributes["fullName"]) ?? (names.length > 0 ? names.join(" ") : (email ?? id))
  const metadata = attributes["metadata"] ?? {}
  const code = textOf(attributes["code"]) ?? `keygen-${id.toLowerCase()}`
  const customer = decodeCustomer({ name, code, metadata, ...(email && { email }) })
  if (Result.isFailure(customer)) return void notes.add(`a user was skipped: ${customer.failure}`, nameOf(source))
  return {
    root: entryOf("customer", source, {
      id: idOf("cust", id),
      metadata: {},
      ...customer.success,
      ...times(source, now)
    }),
    parts: []
  }
}
