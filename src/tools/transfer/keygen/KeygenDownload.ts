/** Saves the pages of an account from Keygen's API, as a folder that is then imported. */
import { Config, Effect, FileSystem, Redacted, Schedule, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { TransferRefused } from "../Lines.ts"

/** The largest page that the API gives. */
const pageSize = 100
const pagesMax = 100_000

const Page = Schema.Struct({
  data: Schema.Array(Schema.Struct({ id: Schema.String })),
  links: Schema.optionalKey(Schema.Struct({ next: Schema.optionalKey(Schema.NullOr(Schema.String)) }))
})
const decodePage = Schema.decodeUnknownEffect(Schema.fromJsonString(Page))

const listed = ["products", "policies", "entitlements", "users", "licenses", "machines"] as const

export const downloadAccount = Effect.fnUntraced(function* (url: string, folder: string) {
  const files = yield* FileSystem.FileSystem
  const token = yield* Effect.mapError(
    Config.Redacted("KEYGEN_TOKEN"),
    () => new TransferRefused({ message: "KEYGEN_TOKEN must be set to an admin token of the Keygen account." })
  )
  const http = (yield* HttpClient.HttpClient).pipe(
    HttpClient.retryTransient({ times: 6, schedule: Schedule.exponential("1 second") })
  )
  const base = url.replace(/\/+$/, "")
  const get = (address: string) =>
    http
      .execute(
        HttpClientRequest.get(address).pipe(
          HttpClientRequest.bearerToken(Redacted.value(token)),
          HttpClientRequest.setHeader("accept", "application/vnd.api+json")
        )
      )
      .pipe(
        Effect.flatMap(HttpClientResponse.filterStatusOk),
        Effect.flatMap(({ text }) => text),
        Effect.mapError(({ message }) => new TransferRefused({ message: `${address} cannot be read: ${message}` }))
      )
  const save = Effect.fnUntraced(function* (path: string, name: string) {
    const ids: Array<string> = []
    let address: string | undefined = `${base}/${path}?page[number]=1&page[size]=${pageSize}`
    for (let number = 1; address !== undefined; number++) {
      if (number > pagesMax) return yield* new TransferRefused({ message: `${base}/${path} has too many pages.` })
      const text: string = yield* get(address)
      const unreadable = () => new TransferRefused({ message: `${base}/${path} is no JSON:API document.` })
      const { data, links }: typeof Page.Type = yield* Effect.mapError(decodePage(text), unreadable)
      yield* Effect.orDie(files.writeFileString(`${folder}/${name}-${String(number).padStart(6, "0")}.json`, text))
      ids.push(...data.map(({ id }) => id))
      const next: string | null | undefined = links?.next
      // The token goes to no other host than the one that the operator has named.
      const target: URL | null = next == null ? null : new URL(next, base)
      address = target === null ? undefined : `${new URL(base).origin}${target.pathname}${target.search}`
    }
    return ids
  })
  for (const name of listed) {
    const ids = yield* save(name, name)
    if (name !== "policies") continue
    for (const id of ids) yield* save(`policies/${id}/entitlements`, `policy-${id}-entitlements`)
  }
}, Effect.provide(FetchHttpClient.layer))
