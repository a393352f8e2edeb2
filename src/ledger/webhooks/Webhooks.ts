/**
 * Webhook endpoints. Each command is one transaction with its event. Secrets are encrypted with the master key, because
 * deliveries are signed with them. Only the response that creates or rotates a secret contains it, and no event does. A
 * command that changes subscriptions raises their revision before the change, and then appends its event.
 */
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { checkUnchanged } from "../../access/preconditions/RecordTag.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { ListRequest, Page } from "../../contract/api/Paging.ts"
import { columns as arrays, bytes, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { readPage } from "../../platform/postgres/queries/Pages.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import { decodeRows, equals, transaction } from "../../platform/postgres/queries/Sql.ts"
import { MasterKey } from "../../platform/signing/MasterKey.ts"
import { changesOf } from "../events/Changes.ts"
import { subscriptionsChanged } from "../events/DeliveryQueue.ts"
import { EventLog } from "../events/EventLog.ts"
import { Addresses } from "./DeliveryAddress.ts"
import * as Secret from "./Secret.ts"
import {
  WebhookEndpoint,
  type WebhookEndpointCreate,
  WebhookEndpointUpdate,
  type WebhookEndpointWithSecret,
  webhookSorts
} from "./Webhook.ts"

/** The context of an endpoint's encrypted secrets. */
export const secretPlace = (id: string): string => `webhook_endpoints/${id}`

const notFound = (id: string) => refuseUnknownId("webhook endpoint", id)

const twoSecrets = refuse(
  "VALIDATION_ERROR",
  "Both secret and rotate_secret replace the secret: send only one of them.",
  "rotate_secret"
)

type Create = typeof WebhookEndpointCreate.Type
type Update = typeof WebhookEndpointUpdate.Type

interface WebhookFilter extends ListRequest {
  readonly is_active?: "true" | "false"
}

const decodeWebhooks = decodeRows(WebhookEndpoint)
const decodeStored = decodeRows(Schema.Struct({ ...WebhookEndpoint.fields, secret_sealed: Schema.Uint8Array }))

export class Webhooks extends Context.Service<
  Webhooks,
  {
    list(filter: WebhookFilter): Effect.Effect<Page<WebhookEndpoint>>
    get(id: string): Effect.Effect<WebhookEndpoint, Refusal<"NOT_FOUND">>
    create(input: Create): Effect.Effect<WebhookEndpointWithSecret, Refusal<"VALIDATION_ERROR">>
    /** With `rotate_secret` the result contains the new secret. */
    update(
      id: string,
      input: Update
    ): Effect.Effect<
      WebhookEndpoint | WebhookEndpointWithSecret,
      Refusal<"NOT_FOUND" | "VALIDATION_ERROR" | "CONFLICT">
    >
    delete(id: string): Effect.Effect<void, Refusal<"NOT_FOUND">>
  }
>()("licensing/ledger/webhooks/Webhooks") {
  static readonly layer = Layer.effect(
    Webhooks,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const random = yield* SecureRandom.SecureRandom
      const masterKey = yield* MasterKey
      const addresses = yield* Addresses
      const events = yield* EventLog
      const columns = sql.literal(
        "id, name, url, secret_prefix, event_types, is_active, created_at, updated_at, last_success_at AS last_delivery_at"
      )
      const inTransaction = transaction(sql)

      const checkAddress = (url: string) =>
        Effect.mapError(addresses.check(url), ({ message }) =>
          refuse(
            "VALIDATION_ERROR",
            `The service cannot deliver to this address, because ${message}: use a public https address.`,
            "url"
          )
        )

      const list = Effect.fn("Webhooks.list")(function* (filter: WebhookFilter) {
        const { is_active } = filter
        return yield* readPage(sql, filter, {
          columns,
          table: "webhook_endpoints",
          where: equals(sql, { is_active }),
          sorts: webhookSorts,
          decode: decodeWebhooks
        })
      }, Effect.orDie)

      const get = Effect.fn("Webhooks.get")(function* (id: string) {
        const [webhook] = yield* Effect.orDie(
          decodeWebhooks(sql`SELECT ${columns} FROM webhook_endpoints WHERE id = ${id}`)
        )
        return webhook ?? (yield* notFound(id))
      })

      const locked = Effect.fnUntraced(function* (id: string) {
        const [row] = yield* decodeStored(sql`
          SELECT ${columns}, secret_sealed FROM webhook_endpoints WHERE id = ${id} FOR UPDATE`)
        if (row === undefined) return yield* notFound(id)
        const { secret_sealed, ...before } = row
        return { before, secret_sealed }
      })

      const insert = Effect.fnUntraced(function* (input: Create, secret: string) {
        const now = yield* Clock.currentTimeMillis
        const webhook: WebhookEndpoint = {
          id: yield* ids.make("webhook"),
          name: input.name,
          url: input.url,
          secret_prefix: Secret.prefixOf(secret),
          event_types: Array.from(new Set(input.event_types)),
          is_active: input.is_active ?? true,
          created_at: now,
          updated_at: now
        }
        const sealed = yield* masterKey.seal(Buffer.from(secret), secretPlace(webhook.id))
        yield* subscriptionsChanged(sql)
        yield* sql`
          INSERT INTO webhook_endpoints (id, name, url, event_types, is_active, secret_prefix, secret_sealed, created_at, updated_at)
          VALUES (${webhook.id}, ${webhook.name}, ${webhook.url}, ${arrays.text(webhook.event_types)}, ${webhook.is_active},
            ${webhook.secret_prefix}, ${bytes(sealed)}, ${instant(now)}, ${instant(now)})`
        yield* events.append({ ...eventOf("webhook.created", webhook.id), metadata: recorded(webhook) })
        return { webhook, secret }
      }, inTransaction)

      const create = Effect.fn("Webhooks.create")(function* (input: Create) {
        // Before the transaction, so that a slow name server holds no lock.
        yield* checkAddress(input.url)
        return yield* insert(input, input.secret ?? (yield* Secret.generate(random)))
      })

      /** The previous secret also signs for a day, if it can be decrypted. The same secret changes nothing. */
      const replaceSecret = Effect.fnUntraced(function* (webhook: WebhookEndpoint, old: Uint8Array, secret: string) {
        const place = secretPlace(webhook.id)
        const current = yield* Effect.option(masterKey.open(old, place))
        if (Option.isSome(current) && Buffer.from(secret).equals(current.value)) return webhook
        const now = yield* Clock.currentTimeMillis
        const [previous, until] = Option.isSome(current) ? [old, now + Secret.overlapMillis] : [null, null]
        const secret_prefix = Secret.prefixOf(secret)
        const sealed = yield* masterKey.seal(Buffer.from(secret), place)
        yield* sql`
          UPDATE webhook_endpoints SET secret_prefix = ${secret_prefix}, secret_sealed = ${bytes(sealed)},
            previous_secret_sealed = ${bytes(previous)}, previous_secret_until = ${instant(until)},
            revision = ${int8(yield* nextRevision)}, updated_at = ${instant(now)}, exhausted_in_a_row = 0
          WHERE id = ${webhook.id}`
        yield* events.append({
          ...eventOf("webhook.secret_rotated", webhook.id),
          metadata: { changes: { secret_prefix: { old: webhook.secret_prefix, new: secret_prefix } } }
        })
        return { ...webhook, secret_prefix, updated_at: now }
      })

      const change = Effect.fnUntraced(function* (before: WebhookEndpoint, input: Update) {
        const { name = before.name, url = before.url, is_active = before.is_active } = input
        const event_types =
          input.event_types === undefined ? before.event_types : Array.from(new Set(input.event_types))
        const webhook: WebhookEndpoint = { ...before, name, url, event_types, is_active }
        const changed = Object.keys(changesOf(before, webhook, ["name", "url", "event_types", "is_active"]))
        if (changed.length === 0) return before
        const now = yield* Clock.currentTimeMillis
        yield* subscriptionsChanged(sql)
        yield* sql`
          UPDATE webhook_endpoints SET name = ${name}, url = ${url}, event_types = ${arrays.text(event_types)},
            is_active = ${is_active}, revision = ${int8(yield* nextRevision)}, updated_at = ${instant(now)}, exhausted_in_a_row = 0,
            disabled_reason = CASE WHEN ${is_active} THEN NULL ELSE disabled_reason END
          WHERE id = ${before.id}`
        const [older, newer] = [recorded(before), recorded(webhook)]
        const changes = Object.fromEntries(changed.map((field) => [field, { old: older[field]!, new: newer[field]! }]))
        yield* events.append({ ...eventOf("webhook.updated", before.id), metadata: { changes } })
        return { ...webhook, updated_at: now }
      })

      const write = Effect.fnUntraced(function* (id: string, input: Update, secret: string | undefined) {
        const { before, secret_sealed } = yield* locked(id)
        yield* checkUnchanged(WebhookEndpointUpdate, before)
        const rotated = secret === undefined ? before : yield* replaceSecret(before, secret_sealed, secret)
        return yield* change(rotated, input)
      }, inTransaction)

      const update = Effect.fn("Webhooks.update")(function* (id: string, input: Update) {
        const { rotate_secret = false, secret, url } = input
        if (url !== undefined || (rotate_secret && secret !== undefined)) yield* get(id)
        if (rotate_secret && secret !== undefined) return yield* twoSecrets
        if (url !== undefined) yield* checkAddress(url)
        if (!rotate_secret) return yield* write(id, input, secret)
        const generated = yield* Secret.generate(random)
        return { webhook: yield* write(id, input, generated), secret: generated }
      })

      const remove = Effect.fn("Webhooks.delete")(function* (id: string) {
        const { before } = yield* locked(id)
        yield* subscriptionsChanged(sql)
        // Its deliveries are no longer claimed. The retention removes them later, because they may be very many.
        yield* sql`DELETE FROM webhook_endpoints WHERE id = ${id}`
        yield* events.append({ ...eventOf("webhook.deleted", id), metadata: { name: before.name } })
      }, inTransaction)

      return Webhooks.of({ list, get, create, update, delete: remove })
    })
  )
}

const eventOf = <const T extends string>(event_type: T, resource_id: string) =>
  ({ event_type, resource_type: "webhook", resource_id }) as const

/** The URL of an endpoint in events, without path and query: these are often secrets of the receiver. */
export const recordedUrl = (url: string): string => new URL(url).origin

const recorded = ({
  name,
  url,
  event_types,
  is_active
}: WebhookEndpoint): { readonly [field: string]: Schema.Json } => ({
  name,
  url: recordedUrl(url),
  event_types,
  is_active
})
