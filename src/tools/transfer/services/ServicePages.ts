/**
 * Pages of other services, read as resources of Keygen, which are then imported. The schema of a record is the list of what is
 * read of it: any other member with a value is reported.
 */
import { Predicate, Result, Schema } from "effect"
import { formatTimestamp, parseTimestamp } from "../../../contract/api/Timestamp.ts"
import { idOf } from "../keygen/Notes.ts"
import type { KeygenPage, ReadPage, Resource } from "../keygen/Resources.ts"
import { decodeFields } from "../LicenseUnits.ts"

/** A member that may be absent or null. */
export const given = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** A day is its first instant in UTC. Some services write more decimals than milliseconds. */
const instantOf = (text: string): number | undefined =>
  parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text.replace(/(\.\d{3})\d+/, "$1"))

export const Instant = Schema.String.check(
  Schema.makeFilter((text) => instantOf(text) !== undefined || "Expected a date as 2026-01-31 or 2026-01-31T12:00:00Z.")
)
export const instantText = (text: string | null | undefined): string | undefined =>
  text == null ? undefined : formatTimestamp(instantOf(text)!)

/** Ids of some services are numbers. */
export const Id = Schema.Union([Schema.String, Schema.Number])

export const Limit = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

type Record = { readonly [name: string]: unknown }
type Reader = (record: Record) => Result.Result<ReadonlyArray<Resource>, string>

const hasValue = (value: unknown): boolean =>
  typeof value === "object" && value !== null
    ? Object.keys(value).length > 0
    : !(value == null || value === "" || value === 0 || value === false)

/** Reads a record by its schema; `use` makes resources of it, the last of which gets what is not read. */
export const reader = <A>(
  schema: Schema.Codec<A, unknown> & { readonly fields: object },
  use: (value: A) => ReadonlyArray<Resource>
): Reader => {
  const decode = decodeFields(schema)
  return (record) =>
    Result.map(decode(record), (value) => {
      const unread = Object.keys(record).filter((name) => !(name in schema.fields) && hasValue(record[name]))
      const resources = use(value)
      return resources.map((resource, index) =>
        index === resources.length - 1 ? { ...resource, unread: [...unread, ...(resource.unread ?? [])] } : resource
      )
    })
}

/** Reads pages by the beginning of the file's name: `licenses-1.json` has licenses. */
export const readPages = (
  readers: { readonly [name: string]: Reader },
  listOf: (document: unknown) => unknown,
  totalOf: (document: unknown) => unknown = () => undefined
): ReadPage => {
  const names = Object.keys(readers)
  return (document, file): KeygenPage | string => {
    const name = names.find((name) => new RegExp(`^${name}\\b`).test(file))
    if (name === undefined) return `Its name begins with none of: ${names.join(", ")}.`
    const list = listOf(document)
    if (!Array.isArray(list)) return "It is no list of records."
    const resources: Array<Resource> = []
    for (const [index, record] of list.entries()) {
      const read = Predicate.isReadonlyObject(record) ? readers[name]!(record) : Result.fail("Expected an object.")
      if (Result.isFailure(read)) return `record ${index + 1}: ${read.failure}`
      resources.push(...read.success)
    }
    const total = totalOf(document)
    return { resources, part: typeof total === "number" ? { list: name, records: list.length, total } : undefined }
  }
}

const relationsOf = (ids: { readonly [name: string]: string | undefined }) =>
  Object.fromEntries(Object.entries(ids).flatMap(([name, id]) => (id === undefined ? [] : [[name, { data: { id } }]])))

export const resourceOf = (
  type: string,
  id: string,
  attributes: Resource["attributes"],
  related: { readonly [name: string]: string | undefined } = {}
): Resource => ({ id, type, attributes, relationships: relationsOf(related) })

/** The resource of a customer that may have no id: then the email is one. */
export const customerOf = (
  service: string,
  id: string | undefined,
  attributes: { readonly email?: string | null | undefined; readonly [name: string]: unknown }
): Resource | undefined => {
  const email = attributes.email || undefined
  const own = id ?? (email === undefined ? undefined : idOf("email", email.toLowerCase()))
  if (own === undefined) return undefined
  const code = `${service}-${own.replace(new RegExp(`^${service}-`), "")}`.toLowerCase()
  return resourceOf("users", own, { ...attributes, email, code })
}

interface ForeignLicense {
  readonly id: string
  readonly key: unknown
  readonly productId: string
  readonly customerId: string | undefined
  readonly status: "ACTIVE" | "REVOKED"
  readonly suspended: boolean
  readonly created: string | undefined
  /** No device can be activated before. */
  readonly starts?: string | undefined
  readonly expiry: string | undefined
  readonly maintenanceExpiry?: string | undefined
  /** The term of a license without an expiry, which begins with the first activation. */
  readonly termDays: number | undefined
  /** 0 = unlimited. */
  readonly maxMachines: number
  readonly maxFloatingUsers?: number | undefined
  readonly metadata: object
  /** Members that are not imported because of their value. */
  readonly unread?: ReadonlyArray<string>
}

const daySeconds = 86_400

/**
 * A license, and its policy: the other services keep terms and limits in each license, so the policies are as few as the terms,
 * and licenses have their own limits.
 */
export const licenseResources = ({
  customerId,
  id,
  productId,
  termDays,
  unread = [],
  ...attributes
}: ForeignLicense) => {
  const isTimed = attributes.expiry !== undefined
  const term = isTimed ? "Time limited" : termDays === undefined ? "Perpetual" : `${termDays} days from activation`
  const policyId = `${productId}/${term}`
  const duration =
    isTimed || termDays === undefined
      ? {}
      : { duration: termDays * daySeconds, expirationBasis: "FROM_FIRST_ACTIVATION" }
  return [
    resourceOf("policies", policyId, { name: term, floating: true, ...duration }, { product: productId }),
    { ...resourceOf("licenses", id, { ...attributes, floating: true }, { policy: policyId, user: customerId }), unread }
  ]
}

const unitDays: { readonly [unit: string]: number } = { d: 1, w: 7, m: 30, y: 365 }

/** The days of `30d`, `1y` or `P1Y6M`: months have 30 days, years 365. */
export const daysOf = (text: string | null | undefined): number | undefined => {
  const days = [...(text ?? "").toLowerCase().matchAll(/(\d{1,5})\s*([dwmy])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * unitDays[unit!]!,
    0
  )
  return days === 0 ? undefined : days
}
