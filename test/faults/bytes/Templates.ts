/** A valid request for every operation of the document, with the ids of records that exist where it reads or creates. */
import { readFileSync } from "node:fs"
import { type Operation, operations } from "../../contract/cases/Surface.ts"

export interface Template {
  readonly method: string
  readonly target: string
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: string | undefined
}

export interface Credentials {
  readonly token: string
  readonly licenseKey: string
  /** Ids that exist, by the prefix of their kind. */
  readonly ids: { readonly [prefix: string]: string }
}

type Examples = Record<string, { readonly parameters?: Record<string, string>; readonly body?: object }>

const file = new URL("../../../schema/examples.json", import.meta.url)
const examples = (JSON.parse(readFileSync(file, "utf8")) as { readonly operations: Examples }).operations

/** Each endpoint would receive each event, and each job would change all licenses. */
const excluded = new Set(["createWebhook", "createBulkJob"])

export const templatesFor = (credentials: Credentials): ReadonlyArray<Template> =>
  operations.filter(({ id }) => !excluded.has(id)).map((operation) => templateOf(operation, credentials))

const templateOf = (operation: Operation, { ids, licenseKey, token }: Credentials): Template => {
  const { body, parameters = {} } = examples[operation.id] ?? {}
  const existing = (text: string) => text.replaceAll(/\b([a-z]+_)[0-9A-Z]{26}\b/g, (id, prefix) => ids[prefix] ?? id)
  // Changes and deletions get ids that do not exist, so that the records stay for other requests.
  const inPath = operation.method === "GET" ? existing : (text: string) => text
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(inPath(parameters[name] ?? "x")))
  const query = Object.entries(parameters).filter(([name]) => operation.query.some((one) => one.name === name))
  const search = String(new URLSearchParams(query.map(([name, value]) => [name, existing(value)] as [string, string])))
  const authorization = {
    token: [["Authorization", `Bearer ${token}`]],
    "license key": [["Authorization", `License ${licenseKey}`]],
    none: []
  } as const
  return {
    method: operation.method,
    target: search === "" ? path : `${path}?${search}`,
    headers: [
      ["Host", "127.0.0.1"],
      ...authorization[operation.credential],
      ...(operation.keyRequired ? [["Idempotency-Key", `key-of-${operation.id}`] as const] : []),
      ...(body === undefined ? [] : [["Content-Type", "application/json"] as const])
    ],
    body: body === undefined ? undefined : existing(JSON.stringify(body))
  }
}
