/**
 * The wire format of a delivery. The body's bytes are the same for all endpoints and attempts. The headers identify the
 * delivery and contain the signatures of exactly those bytes.
 */
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { type HmacKey, hmacSha256 } from "../../platform/signing/Hmac.ts"
import type { ClaimedEvent } from "./DeliveryRows.ts"

type RecordedEvent = Omit<ClaimedEvent, "endpoint_ids" | "endpoint_revisions" | "attempts">

/** `{id, type, sequence, created_at, data}` as UTF-8. */
export const bodyOf = (event: RecordedEvent): Uint8Array => {
  const { actor_type, actor_id, actor_name, resource_type, resource_id, metadata } = event
  return Buffer.from(
    JSON.stringify({
      id: `evt_${event.sequence}`,
      type: event.event_type,
      sequence: event.sequence,
      created_at: formatTimestamp(event.created_at),
      data: { actor_type, actor_id, actor_name: actor_name ?? undefined, resource_type, resource_id, metadata }
    })
  )
}

/** The id of a delivery is the same for all its attempts. */
export const deliveryId = (endpointId: string, sequence: number): string =>
  `dlv_${endpointId.slice(endpointId.indexOf("_") + 1)}_${sequence}`

/** The HMAC keys of a secret: for X-Service-Signature, and for Standard Webhooks. */
export interface SigningKeys {
  readonly own: HmacKey
  readonly standard: HmacKey
}

/** The headers of an attempt, signed with each key; `nowSeconds` is the attempt's time. */
export const headersOf = (
  event: Pick<RecordedEvent, "event_type" | "sequence">,
  id: string,
  body: Uint8Array,
  keys: ReadonlyArray<SigningKeys>,
  nowSeconds: number
): { readonly [name: string]: string } => {
  const own = keys.map((key) => `v1=${hmacSha256(key.own, `${nowSeconds}.${id}.`, body).toString("hex")}`)
  const standard = keys.map((key) => `v1,${hmacSha256(key.standard, `${id}.${nowSeconds}.`, body).toString("base64")}`)
  return {
    "content-type": "application/json",
    "user-agent": "licensing-service-webhooks/1",
    "x-service-delivery-id": id,
    "x-service-event-sequence": String(event.sequence),
    "x-service-event-type": event.event_type,
    "x-service-signature": [`t=${nowSeconds}`, ...own].join(","),
    "webhook-id": id,
    "webhook-timestamp": String(nowSeconds),
    "webhook-signature": standard.join(" ")
  }
}
