/** Resources of Keygen's API (JSON:API documents), from a folder of saved pages. */
import { Effect, FileSystem, Path, type PlatformError, Result, Schema } from "effect"
import { systemReason } from "../../../platform/config/SystemErrors.ts"
import { TransferRefused } from "../Lines.ts"

/** A resource as a document has it. Nothing of it is trusted. */
export interface Resource {
  readonly id: string
  readonly type: string
  readonly attributes: { readonly [name: string]: unknown }
  readonly relationships?: { readonly [name: string]: { readonly data?: unknown } | null | undefined }
}

/** A page, with the policy whose entitlements it lists, if it does. */
export interface KeygenPage {
  readonly resources: ReadonlyArray<Resource>
  readonly policyId?: string | undefined
}

/** Bytes of the largest page. Pages of Keygen's API have 100 resources. */
const pageBytesMax = 256 * 1_048_576

/** The id that a resource has in a relationship. */
export const related = ({ relationships }: Resource, ...names: ReadonlyArray<string>): string | undefined => {
  for (const name of names) {
    const data = relationships?.[name]?.data
    if (isObject(data) && typeof data["id"] === "string") return data["id"]
  }
  return undefined
}

/** Reads all pages of a folder, as often as `read` runs; one page is in memory at a time. */
export const keygenFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const unreadable = (error: PlatformError.PlatformError) =>
    new TransferRefused({ message: `${folder} cannot be read: ${systemReason(error)}` })
  const names = (yield* Effect.mapError(files.readDirectory(folder, { recursive: true }), unreadable))
    .filter((name) => name.endsWith(".json"))
    .toSorted()
  if (names.length === 0) {
    return yield* new TransferRefused({ message: `${folder} has no .json files: see docs/guides/from-keygen.md.` })
  }
  const readPage = Effect.fnUntraced(function* (name: string) {
    const path = paths.join(folder, name)
    const { size } = yield* Effect.mapError(files.stat(path), unreadable)
    if (Number(size) > pageBytesMax) return yield* new TransferRefused({ message: `${name} is too large: split it.` })
    const text = yield* Effect.mapError(files.readFileString(path), unreadable)
    const page = pageOf(text)
    return page ?? (yield* new TransferRefused({ message: `${name} is no JSON:API document: {"data": [...]}.` }))
  })
  return <E, R>(use: (page: KeygenPage) => Effect.Effect<void, E, R>) =>
    Effect.forEach(names, (name) => Effect.flatMap(readPage(name), use), { discard: true })
})

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isResource = (value: unknown): value is Resource =>
  isObject(value) &&
  typeof value["id"] === "string" &&
  typeof value["type"] === "string" &&
  isObject(value["attributes"])

const pageOf = (text: string): KeygenPage | undefined => {
  const document = parsed(text)
  const data = isObject(document) ? document["data"] : document
  const list = Array.isArray(data) ? data : [data]
  if (!list.every(isResource)) return undefined
  const links = isObject(document) ? document["links"] : undefined
  const self = isObject(links) ? String(links["self"] ?? "") : ""
  return { resources: list, policyId: /\/policies\/([^/?]+)\/entitlements/.exec(self)?.[1] }
}

const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))
const parsed = (text: string): unknown => Result.getOrUndefined(decodeJson(text))
