/**
 * The rules beside the operations: webhooks, signatures, offline envelopes, repeated requests. Values come from the
 * constants of the code, and the code makes the example of a delivery.
 */
import { idempotencyKeyMax, replayedHeader, retentionMillis } from "../../../access/idempotency/Idempotency.ts"
import { eventTypes } from "../../../ledger/events/EventType.ts"
import { bodyOf, deliveryId, headersOf } from "../../../ledger/webhooks/Message.ts"
import { attemptSecondsMax, exhaustedMax, retryAfterMillisMax } from "../../../ledger/webhooks/RetrySchedule.ts"
import { keysOf, overlapMillis, secretBytes, secretPrefix } from "../../../ledger/webhooks/Secret.ts"
import { toleranceSecondsDefault } from "../../../ledger/webhooks/VerifyWebhook.ts"
import { secretLength } from "../../../ledger/webhooks/Webhook.ts"
import { offlineInfo, saltLength } from "../../../licensing/runtime/OfflineEnvelope.ts"
import { ratesDefault, webhookRetrySecondsDefault } from "../../../platform/config/Defaults.ts"
import { keyLength, nonceLength, tagLength } from "../../../platform/signing/SecretBox.ts"
import { algorithm } from "../../../platform/signing/SigningKey.ts"
import { retryAfter } from "../../responses/ResponseHeaders.ts"

type Lines = ReadonlyArray<string>

export const facts = (): Lines => [
  "# Rules beside the operations",
  "",
  ...repeating,
  ...signatures,
  ...offline,
  ...webhooks()
]

const hours = (millis: number): string => `${millis / 3_600_000} hours`

const repeating: Lines = [
  "## Retry-After, rate limits and Idempotency-Key",
  "",
  `- 429 RATE_LIMITED and 503 NOT_READY have the header \`Retry-After\`: seconds to wait before the same request is sent again, ${retryAfter} unless more is known.`,
  `- Limits per minute, unless the operator sets others: ${ratesDefault.runtime} runtime requests of a license from one address, ${ratesDefault.activation} activations of a license, ${ratesDefault.management} management requests of a token, ${ratesDefault.failures} failed credentials of an address.`,
  `- Repeat runtime operations freely: a consumption counts once per \`event_id\`, an activation once per device. They ignore \`Idempotency-Key\`.`,
  `- Management POST, PUT, PATCH and DELETE take \`Idempotency-Key\` (1 to ${idempotencyKeyMax} characters; required by renewLicense and renewLicenseMaintenance). The first response is stored for ${hours(retentionMillis)}, that of a renewal permanently. The same request with the same key gets it again, byte for byte, with the header \`${replayedHeader}: true\`, and nothing is done twice.`,
  "- The same key with another body is 422 IDEMPOTENCY_KEY_REUSED; while the first request runs, 409 IDEMPOTENCY_IN_PROGRESS. Responses with 401, 429 and 5xx are not stored: repeat those with the same key.",
  ""
]

const signatures: Lines = [
  "## Signed responses",
  "",
  `- \`signature\` is \`{alg, kid, value}\`: alg is \`${algorithm}\`, value the base64 of the 64 signature bytes. It covers the bytes of \`data\` (of \`error\` in a refusal) exactly as they stand in the response, which is canonical JSON (RFC 8785).`,
  "- `listPublicKeys` gives the keys: `public_key` is the base64 of the 32 raw key bytes; `kid` is the first 16 hex digits of their SHA-256. Build the keys into the application.",
  "- Refusals with 400, 403, 404, 409 and 422 are signed if the license key is right. An unsigned refusal, or a response that breaks a rule, counts as: the service was not reached.",
  "- Check in this order: signature, kid, `kind`, `license_id`, `product_code`, `binding_kind` and `binding_hash` (lower-case hex SHA-256 of the fingerprint), `nonce` as sent, then times: refuse a clock that is more than 5 minutes behind the highest `issued_at` seen.",
  "- Ask again at `next_check_at`.",
  ""
]

const offline: Lines = [
  "## Offline envelopes",
  "",
  "issueOfflineLicense returns `data: {kid, salt, nonce, ciphertext}`, all but kid in base64 with padding. To open it:",
  "",
  `1. key = HKDF-SHA256(input: the license key in UTF-8 as issued (upper case, with dashes), salt: the ${saltLength} bytes of \`salt\`, info: \`${offlineInfo}\`, length: ${keyLength} bytes).`,
  `2. AES-256-GCM with that key, the ${nonceLength} bytes of \`nonce\`, and the UTF-8 of \`kid\` as additional data. The last ${tagLength} bytes of \`ciphertext\` are the tag.`,
  '3. The plaintext is `{"data":…,"signature":…}`. Verify this signature over the bytes of the inner `data`, whose `kind` is `offline`.',
  "4. It holds for the device of `binding_hash` until `offline_expires_at`.",
  ""
]

// A fixed secret, so that the text does not change.
const exampleSecret =
  secretPrefix + Buffer.from(Uint8Array.from({ length: secretBytes }, (_, index) => index)).toString("base64")
const exampleSeconds = 1_893_456_000

const webhooks = (): Lines => {
  const event = {
    sequence: 48_211,
    event_type: "license.suspended",
    created_at: exampleSeconds * 1_000,
    actor_type: "api_key",
    actor_id: "key_01JZ8Q6Y3V5W7X9A1B3C5D7E9F",
    actor_name: "Back office",
    resource_type: "license",
    resource_id: "lic_01JZ8Q6Y3V5W7X9A1B3C5D7E9F",
    metadata: { status: { old: "active", new: "suspended" }, request_id: "req_01JZ8Q6Y3V5W7X9A1B3C5D7E9F" }
  } as const
  const body = bodyOf(event)
  const id = deliveryId("whk_01JZ8Q6Y3V5W7X9A1B3C5D7E9F", event.sequence)
  const headers = headersOf(event, id, body, [keysOf(exampleSecret)], exampleSeconds)
  return [
    "## Webhooks",
    "",
    "- Each event is a POST to the endpoint, at least once and in no fixed order. Store delivery ids, and ignore a repeated one.",
    "- `X-Service-Signature: t=<unix seconds>,v1=<hex>`. The hex is lower-case HMAC-SHA256 over `<t>.<X-Service-Delivery-ID>.<raw body>`, keyed with the endpoint's whole secret in UTF-8, its prefix included. Compare in constant time with each `v1`.",
    `- Refuse a \`t\` that differs from the clock by more than ${toleranceSecondsDefault} seconds. Use the raw bytes of the body, never JSON that was written again.`,
    `- A secret is \`${secretPrefix}\` and ${secretBytes} random bytes in base64, or chosen: ${secretLength.min} to ${secretLength.max} characters. After a rotation both secrets sign for ${hours(overlapMillis)}: two \`v1\`.`,
    "- Standard Webhooks libraries verify `webhook-id`, `webhook-timestamp` and `webhook-signature` of the same request.",
    `- Respond with 2xx within ${attemptSecondsMax} seconds. Otherwise the delivery is repeated after ${webhookRetrySecondsDefault.join(", ")} seconds, each varied by a tenth; \`Retry-After\` with 429 or 503 extends that, up to ${hours(retryAfterMillisMax)}. 410, or ${exhaustedMax} deliveries in a row that were given up, disables the endpoint.`,
    "",
    `Example, with the secret \`${exampleSecret}\`:`,
    "",
    "```http",
    "POST /hooks HTTP/1.1",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    Buffer.from(body).toString(),
    "```",
    "",
    "`metadata` has the changed fields as `{old, new}`, ids, and the request id; credentials, fingerprints and host names never. Ignore unknown fields.",
    "",
    `Event types, for \`event_types\` and \`type\` (also \`license.*\`): ${eventTypes.map((type) => `\`${type}\``).join(", ")}.`,
    ""
  ]
}
