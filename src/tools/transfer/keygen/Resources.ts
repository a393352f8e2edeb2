/** Resources of Keygen's API (JSON:API documents), from a folder of saved pages. */
import { Effect, FileSystem, Path, type PlatformError, Predicate, Result, Schema } from "effect"
import { systemReason } from "../../../platform/config/SystemErrors.ts"
import { TransferRefused } from "../Lines.ts"

/** A resource as a document has it. Nothing of it is trusted. */
export interface Resource {
  readonly id: string
  readonly type: string
  readonly attributes: { readonly [name: string]: unknown }
  /** Members with a value that nothing reads. */
  readonly unread?: ReadonlyArray<string>
  readonly relationships?: { readonly [name: string]: { readonly data?: unknown } | null | undefined }
}

/** A page; of a list of a policy's entitlements, also the policy's id. */
export interface KeygenPage {
  readonly resources: ReadonlyArray<Resource>
  readonly policyId?: string | undefined
  /** The list that the page is part of, if it tells its length. */
  readonly part?: { readonly list: string; readonly records: number; readonly total: number } | undefined
}

/** Reads a page. A text in place of a page says what is wrong, without values of the page. */
export type ReadPage = (document: unknown, name: string) => KeygenPage | string

/** Bytes of the largest page. Pages of Keygen's API have 100 resources. */
const pageBytesMax = 256 * 1_048_576

/** The id that a resource has in a relationship. */
export const related = ({ relationships }: Resource, ...names: ReadonlyArray<string>): string | undefined => {
  for (const name of names) {
    const data = relationships?.[name]?.data
    if (Predicate.isReadonlyObject(data) && typeof data["id"] === "string") return data["id"]
  }
  return undefined
}

/** Gives a function that reads all pages of a folder, each time it is called; one page is in memory at a time. */
export const pageFolder = Effect.fnUntraced(function* (folder: string, pageOf: ReadPage) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const unreadable = (error: PlatformError.PlatformError) =>
    new TransferRefused({ message: `${folder} cannot be read: ${systemReason(error)}` })
  const names = (yield* Effect.mapError(files.readDirectory(folder, { recursive: true }), unreadable))
    .filter((name) => name.endsWith(".json"))
    .toSorted()
  if (names.length === 0) {
    return yield* new TransferRefused({
      message: `${folder} has no .json files: see docs/guides/from-keygen.md and from-other-services.md.`
    })
  }
  const readPage = Effect.fnUntraced(function* (name: string) {
    const path = paths.join(folder, name)
    const { size } = yield* Effect.mapError(files.stat(path), unreadable)
    if (Number(size) > pageBytesMax) return yield* new TransferRefused({ message: `${name} is too large: split it.` })
    const text = yield* Effect.mapError(files.readFileString(path), unreadable)
    const document = decodeJson(text)
    const page = Result.isSuccess(document) ? pageOf(document.success, paths.basename(name)) : notJson
    return typeof page === "string" ? yield* new TransferRefused({ message: `${name}: ${page}` }) : page
  })
  return <E, R>(use: (page: KeygenPage) => Effect.Effect<void, E, R>) =>
    Effect.forEach(names, (name) => Effect.flatMap(readPage(name), use), { discard: true })
})

const isResource = (value: unknown): value is Resource =>
  Predicate.isReadonlyObject(value) &&
  typeof value["id"] === "string" &&
  typeof value["type"] === "string" &&
  Predicate.isReadonlyObject(value["attributes"])

/** A page of Keygen's API. */
export const keygenPage: ReadPage = (document) => {
  const data = Predicate.isReadonlyObject(document) ? document["data"] : document
  const list = Array.isArray(data) ? data : [data]
  if (!list.every(isResource)) return 'It is no JSON:API document: {"data": [...]}.'
  const links = Predicate.isReadonlyObject(document) ? document["links"] : undefined
  const self = Predicate.isReadonlyObject(links) ? String(links["self"] ?? "") : ""
  return { resources: list, policyId: /\/policies\/([^/?]+)\/entitlements/.exec(self)?.[1] }
}

/** Replaces the parser's message, which quotes the text and so license keys. */
const notJson = "It is no JSON: save the response of the API again."
const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))
