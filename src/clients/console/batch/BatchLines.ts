/** The licenses of a batch as its form gives them: some alike, or one for each line of a list of customers. */
import type { Cause } from "effect"
import { type Refusal, refuse } from "../../../contract/api/Failure.ts"
import type { LicenseCreate } from "../../../licensing/model/License.ts"
import { tell } from "../service/Failures.ts"

type Creation = typeof LicenseCreate.Type
export type Licenses = ReadonlyArray<Creation>

/** The member of a license's metadata that names its batch. */
export const batchKey = "batch"

/** What all licenses of the batch have in common. */
type Common = Pick<
  Creation,
  | "policy_id"
  | "customer_id"
  | "order_id"
  | "subscription_id"
  | "starts_at"
  | "expires_at"
  | "max_floating_users"
  | "max_activations"
  | "metadata"
  | "send_key"
>

export interface Batch extends Common {
  readonly count?: number
  /** A customer in each line. */
  readonly customers?: ReadonlyArray<string>
  /** Its name, by which its licenses are found. */
  readonly name?: string
  readonly feature_ids?: ReadonlyArray<string>
}

const licensesMax = 1_000

/** The lines of a text. One of a spreadsheet may begin or end with an empty cell. */
export const linesOf = ([text = ""]: ReadonlyArray<string>): ReadonlyArray<string> =>
  text
    .replaceAll("\r", "")
    .split("\n")
    .filter((line) => line.trim() !== "")

/** The cells of a line: between tabs, as spreadsheets copy them, or commas; quotes as in CSV. */
const cellsOf = (line: string): ReadonlyArray<string> => {
  const separator = line.includes("\t") ? "\t" : ","
  const cells: Array<string> = []
  let cell = ""
  let isQuoted = false
  for (let at = 0; at < line.length; at++) {
    const sign = line[at]!
    if (isQuoted && sign === '"' && line[at + 1] === '"') cell += line[++at]
    else if (isQuoted && sign === '"') isQuoted = false
    else if (isQuoted) cell += sign
    else if (sign === '"' && cell.trim() === "") isQuoted = true
    else if (sign === separator) {
      cells.push(cell.trim())
      cell = ""
    } else cell += sign
  }
  return [...cells, cell.trim()]
}

/** Name, e-mail and key; an e-mail alone is one, too. */
const ownerOf = (line: string): Pick<Creation, "customer_name" | "customer_email" | "license_key"> => {
  const [first = "", second = "", key = ""] = cellsOf(line)
  const [name, email] = second === "" && first.includes("@") ? ["", first] : [first, second]
  return {
    ...(name === "" ? {} : { customer_name: name }),
    ...(email === "" ? {} : { customer_email: email }),
    ...(key === "" ? {} : { license_key: key })
  }
}

/** The licenses, or what is wrong with the form. */
export const licensesIn = (product_id: string, batch: Batch): Licenses | Refusal<"VALIDATION_ERROR"> => {
  const { count, customers = [], feature_ids = [], name, ...given } = batch
  const common = {
    ...given,
    ...(name === undefined ? {} : { metadata: { ...given.metadata, [batchKey]: name } }),
    ...(feature_ids.length === 0 ? {} : { features: feature_ids.map((feature_id) => ({ feature_id })) })
  }
  const wanted = customers.length > 0 ? customers.length : count
  if (wanted === undefined)
    return refuse(
      "VALIDATION_ERROR",
      "It is not said how many licenses to issue: give a number, or the customers.",
      "count"
    )
  if (customers.length > 0 && count !== undefined && count !== customers.length)
    return refuse("VALIDATION_ERROR", `The list has ${customers.length} customers: leave the number empty.`, "count")
  if (!(Number.isInteger(wanted) && wanted >= 1 && wanted <= licensesMax))
    return refuse("VALIDATION_ERROR", `A batch has 1 to ${licensesMax} licenses: issue the rest in another.`, "count")
  return Array.from({ length: wanted }, (_, index) => ({ product_id, ...common, ...ownerOf(customers[index] ?? "") }))
}

/** Fields that come from the list of customers. */
const listed: ReadonlySet<string> = new Set(["customer_name", "customer_email", "license_key"])

/** A fault of one license of the batch, as one of the form's field. */
export const faultOfBatch = (cause: Cause.Cause<unknown>): Refusal<"VALIDATION_ERROR"> | undefined => {
  for (const [path, message] of tell(cause).fields) {
    const [, index, field = ""] = /licenses(?:\.|\[)(\d+)(?:\]|\.)?\.?(\w*)/.exec(path) ?? []
    if (index === undefined) continue
    const line = `Line ${Number(index) + 1}: ${message}`
    if (listed.has(field)) return refuse("VALIDATION_ERROR", line, "customers")
    if (field === "features") return refuse("VALIDATION_ERROR", message, "feature_ids")
    return refuse("VALIDATION_ERROR", field === "send_key" ? line : message, field)
  }
  return undefined
}
