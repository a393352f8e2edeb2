/**
 * API keys. Only a token's hash is stored, so the token is shown only in the response to its creation. A revoked key stays as a
 * row, for its events and to distinguish "there was never a key" from "all keys are revoked".
 */
import { Clock, Context, Effect, Layer, Option, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { checkUnchanged } from "../../access/preconditions/RecordTag.ts"
import * as Tokens from "../../access/Tokens.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { ListRequest, Page } from "../../contract/api/Paging.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { columns as arrays, bytes, instant } from "../../platform/postgres/driver/Parameters.ts"
import { readPage } from "../../platform/postgres/queries/Pages.ts"
import { equals, type NullableRow, patched, transaction, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import { MasterKey } from "../../platform/signing/MasterKey.ts"
import { editOf, eventsOf } from "../Records.ts"
import { type ApiKey, type ApiKeyCreate, ApiKeyUpdate, type ApiKeyWithToken, apiKeySorts } from "./ApiKey.ts"
import { ApiKeyCache } from "./ApiKeyCache.ts"

// Binds a sealed token to its row.
const place = (id: string) => `api_keys/${id}`
const bootstrapToken = (token: string) => Redacted.make(token, { label: "bootstrap token" })

const notFound = (id: string) => refuseUnknownId("API key", id)

const adminOfProducts = refuse(
  "VALIDATION_ERROR",
  "The scope admin cannot be limited to products: leave out product_ids, or give other scopes.",
  "product_ids"
)

type WriteRefusal = Refusal<"NOT_FOUND" | "VALIDATION_ERROR">

const isAdminOfProducts = ({ product_ids, scopes }: Pick<ApiKey, "product_ids" | "scopes">): boolean =>
  product_ids !== undefined && scopes.includes("admin")

interface ApiKeyFilter extends ListRequest {
  readonly is_active?: "true" | "false"
}

export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    list(filter: ApiKeyFilter): Effect.Effect<Page<ApiKey>>
    get(id: string): Effect.Effect<ApiKey, Refusal<"NOT_FOUND">>
    create(input: typeof ApiKeyCreate.Type): Effect.Effect<ApiKeyWithToken, WriteRefusal>
    update(id: string, input: typeof ApiKeyUpdate.Type): Effect.Effect<ApiKey, WriteRefusal | Refusal<"CONFLICT">>
    delete(id: string): Effect.Effect<void, Refusal<"NOT_FOUND">>
    /**
     * Creates the first admin key if there never was a key. Returns the token to show: the generated one, at each call until an API
     * key has been used. Any number of nodes may start at once: one of them creates it, and all return the same. A given token has
     * any format and at least 32 characters, which its setting checks; it is not shown.
     */
    bootstrap(token?: Redacted.Redacted<string>): Effect.Effect<Option.Option<Redacted.Redacted<string>>>
  }
>()("licensing/vendor/apiKeys/ApiKeys") {
  static readonly layer = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const random = yield* SecureRandom.SecureRandom
      const events = yield* EventLog
      const cache = yield* ApiKeyCache
      const masterKey = yield* MasterKey
      const storedScopes = ({ product_ids, scopes }: ApiKey) =>
        product_ids === undefined
          ? sql`${arrays.text(scopes)}, NULL, NULL`
          : sql`'{}', ${arrays.text(scopes)}, ${arrays.text(product_ids)}`
      const columns = sql.literal(
        `id, name, key_prefix, coalesce(limited_scopes, scopes) AS scopes, allowed_cidrs, product_ids, is_active, created_at,
          expires_at, last_used_at`
      )
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "api_key")
      const edit = editOf(events, "api_key", ApiKeyUpdate)
      const generate = Effect.provideService(Tokens.generate, SecureRandom.SecureRandom, random)

      const list = Effect.fn("ApiKeys.list")(function* (filter: ApiKeyFilter) {
        const { is_active } = filter
        return yield* readPage(sql, filter, {
          columns,
          table: "api_keys",
          where: sql`revoked_at IS NULL AND ${equals(sql, { is_active })}`,
          sorts: apiKeySorts,
          decode: (rows) => Effect.map(rows, (keys) => keys.map((key) => withoutNulls(key as NullableRow<ApiKey>)))
        })
      }, Effect.orDie)

      const get = Effect.fn("ApiKeys.get")(function* (id: string) {
        const [row] = yield* Effect.orDie(
          sql<NullableRow<ApiKey>>`SELECT ${columns} FROM api_keys WHERE id = ${id} AND revoked_at IS NULL`
        )
        return row === undefined ? yield* notFound(id) : withoutNulls<ApiKey>(row)
      })

      /** `forget` removes the key from the cache after the commit. */
      const lock = Effect.fnUntraced(function* (id: string) {
        const [row] = yield* sql<NullableRow<ApiKey> & { readonly token_hash: Uint8Array }>`
          SELECT ${columns}, token_hash FROM api_keys WHERE id = ${id} AND revoked_at IS NULL FOR UPDATE`
        if (row === undefined) return yield* notFound(id)
        const { token_hash, ...key } = row
        return { key: withoutNulls<ApiKey>(key), forget: sql.afterCommit(cache.forget(token_hash)) }
      })

      /** The lock prevents deletion of a product before the key is stored. */
      const checkProducts = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
        const rows = yield* sql<{ readonly id: string }>`
          SELECT id FROM products WHERE id = ANY(${arrays.text(ids)}) ORDER BY id FOR KEY SHARE`
        const known = new Set(rows.map(({ id }) => id))
        const at = ids.findIndex((id) => !known.has(id))
        if (at !== -1) return yield* refuseUnknownId("product", ids[at]!, `product_ids[${at}]`)
      })

      const insert = Effect.fnUntraced(function* (
        token: string,
        input: typeof ApiKeyCreate.Type,
        is_bootstrap: boolean
      ) {
        const now = yield* Clock.currentTimeMillis
        const key: ApiKey = {
          id: yield* ids.make("apiKey"),
          name: input.name,
          key_prefix: Tokens.prefix(token),
          scopes: Array.from(new Set(input.scopes ?? (["admin"] as const))),
          allowed_cidrs: input.allowed_cidrs ?? [],
          ...(input.product_ids === undefined ? undefined : { product_ids: input.product_ids }),
          is_active: true,
          created_at: now,
          ...(input.expires_at === undefined ? undefined : { expires_at: input.expires_at })
        }
        yield* sql`
          INSERT INTO api_keys
            (id, name, key_prefix, token_hash, scopes, limited_scopes, product_ids, allowed_cidrs, is_active, expires_at,
             is_bootstrap, created_at)
          VALUES (${key.id}, ${key.name}, ${key.key_prefix}, ${Tokens.hash(token)},
            ${storedScopes(key)}, ${arrays.text(key.allowed_cidrs)}, TRUE, ${instant(key.expires_at ?? null)},
            ${is_bootstrap}, ${instant(now)})`
        yield* append("api_key.created", key.id, {
          name: key.name,
          key_prefix: key.key_prefix,
          scopes: key.scopes,
          allowed_cidrs: key.allowed_cidrs,
          ...(key.product_ids === undefined ? undefined : { product_ids: key.product_ids })
        })
        return key
      })

      const create = Effect.fn("ApiKeys.create")(function* (input: typeof ApiKeyCreate.Type) {
        if (isAdminOfProducts({ scopes: ["admin"], ...input })) return yield* adminOfProducts
        yield* checkProducts(input.product_ids ?? [])
        const token = yield* generate
        return { api_key: yield* insert(token, input, false), token }
      }, inTransaction)

      const update = Effect.fn("ApiKeys.update")(function* (id: string, input: typeof ApiKeyUpdate.Type) {
        const { key: before, forget } = yield* lock(id)
        yield* checkUnchanged(ApiKeyUpdate, before)
        const scopes = input.scopes === undefined ? {} : { scopes: Array.from(new Set(input.scopes)) }
        const key = patched<ApiKey>(before, { ...input, ...scopes })
        if (isAdminOfProducts(key)) return yield* adminOfProducts
        return yield* edit(before, key, function* (changes) {
          if ("product_ids" in changes) yield* checkProducts(input.product_ids ?? [])
          yield* sql`
            UPDATE api_keys SET name = ${key.name}, (scopes, limited_scopes, product_ids) = ROW(${storedScopes(key)}),
              allowed_cidrs = ${arrays.text(key.allowed_cidrs)}, is_active = ${key.is_active},
              expires_at = ${instant(key.expires_at ?? null)}
            WHERE id = ${id}`
          yield* forget
        })
      }, inTransaction)

      const remove = Effect.fn("ApiKeys.delete")(function* (id: string) {
        const { key, forget } = yield* lock(id)
        const now = yield* Clock.currentTimeMillis
        yield* sql`
          UPDATE api_keys SET revoked_at = ${instant(now)}, is_active = FALSE, token_sealed = NULL WHERE id = ${id}`
        yield* append("api_key.revoked", id, { name: key.name, key_prefix: key.key_prefix })
        yield* forget
      }, inTransaction)

      /** The generated token. It is deleted after the first use of any key, or if the master key does not open it. */
      const unused = Effect.gen(function* () {
        const [row] = yield* sql<{ id: string; sealed: Uint8Array; used: boolean }>`
          SELECT id, token_sealed AS sealed, EXISTS (SELECT FROM api_keys WHERE last_used_at IS NOT NULL) AS used
          FROM api_keys WHERE is_bootstrap AND token_sealed IS NOT NULL`
        if (row === undefined) return Option.none()
        const opened = row.used ? Option.none() : yield* Effect.option(masterKey.open(row.sealed, place(row.id)))
        if (Option.isNone(opened)) yield* sql`UPDATE api_keys SET token_sealed = NULL WHERE id = ${row.id}`
        return Option.map(opened, (token) => bootstrapToken(new TextDecoder().decode(token)))
      })

      const bootstrap = Effect.fn("ApiKeys.bootstrap")(function* (given?: Redacted.Redacted<string>) {
        // Serializes nodes that start at once, so that each sees a key created by another.
        yield* sql`SELECT pg_advisory_xact_lock(hashtextextended('licensing/api_keys', 0))`
        const [row] = yield* sql`SELECT 1 AS found FROM api_keys LIMIT 1`
        if (row !== undefined) return yield* unused
        const token = given === undefined ? yield* generate : Redacted.value(given)
        const { id } = yield* insert(token, { name: "bootstrap" }, true)
        if (given !== undefined) return Option.none()
        const sealed = yield* masterKey.seal(new TextEncoder().encode(token), place(id))
        yield* sql`UPDATE api_keys SET token_sealed = ${bytes(sealed)} WHERE id = ${id}`
        return Option.some(bootstrapToken(token))
      }, inTransaction)

      return ApiKeys.of({ list, get, create, update, delete: remove, bootstrap })
    })
  )
}
