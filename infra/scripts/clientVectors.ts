/** The vectors of `schema/vectors/bindings.json` and `schema/vectors/webhooks.json`: what clients and receivers compute. */
import type { Json } from "../../src/contract/api/CanonicalJson.ts"
import { bodyOf, headersOf } from "../../src/ledger/webhooks/Message.ts"
import { keysOf } from "../../src/ledger/webhooks/Secret.ts"
import { bindingOf } from "../../src/licensing/runtime/Bindings.ts"
import type { BindingRequest } from "../../src/licensing/runtime/RuntimeRequests.ts"
import { sha256 } from "../../src/platform/signing/Digest.ts"

const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString("base64")

const requests: Readonly<Record<string, BindingRequest>> = {
  "a machine": { fingerprint: "fingerprint of a machine" },
  "a machine with a name in another script": { fingerprint: "Žofie 🗝 \u{e9}" },
  "a machine whose fingerprint has JSON in it": { fingerprint: '{"a":"\\"}' },
  "a pod": { is_container: true, cluster_id: "c", pod_name: "p" },
  "all four ids": {
    is_container: true,
    cluster_id: "c1",
    namespace: "prod",
    pod_name: "web-0",
    container_id: "0123ab"
  },
  "one id": { is_container: true, container_id: "sha256:0123456789abcdef" },
  "ids that JSON escapes": {
    is_container: true,
    cluster_id: 'a "quoted" \\ name',
    namespace: "tab\t, line\n, \u{1}, \u{7f}"
  },
  "ids that JSON does not escape": { is_container: true, namespace: "žluťoučký/kůň", pod_name: "\u{1f600}\u{2028}" }
}

export const bindings = (): Json => ({
  description:
    "The binding of a request. `key` is the fingerprint of a machine, or the lower-case hex SHA-256 over the canonical JSON of a container's ids; `hash` is the lower-case hex SHA-256 of the key's UTF-8, the binding_hash of responses.",
  vectors: Object.entries(requests).map(([name, request]) => {
    const binding = bindingOf(request, undefined)
    if (!("key" in binding)) throw new Error(`The vector ${name} is no binding`)
    return { name, request: { ...request }, kind: binding.kind, key: binding.key, hash: binding.hash() }
  })
})

const sentAt = 1_900_000_000
const current = `whsec_${base64(sha256("webhook secret 1"))}`
const previous = `whsec_${base64(sha256("webhook secret 2"))}`
const custom = "a custom secret, žluťoučký"
const id = "dlv_01K0000000000000000000000A_48211"
const body = bodyOf({
  sequence: 48211,
  event_type: "license.renewed",
  created_at: sentAt * 1000,
  actor_type: "api_key",
  actor_id: "key_01K0000000000000000000000A",
  resource_type: "license",
  resource_id: "lic_01K0000000000000000000000A",
  metadata: { name: "Žofie 🗝", days: 30 }
} as Parameters<typeof bodyOf>[0])

type Headers = { readonly [name: string]: string }

const headersFor = (...secrets: ReadonlyArray<string>): Headers => {
  const event = { event_type: "license.renewed", sequence: 48211 }
  const { "content-type": _, "user-agent": __, ...headers } = headersOf(event, id, body, secrets.map(keysOf), sentAt)
  return headers
}

interface Delivery {
  readonly name: string
  readonly secrets?: ReadonlyArray<string>
  readonly headers?: Headers
  readonly body?: Uint8Array
  readonly now?: number
  /** The scheme that this vector is for; absent for both. */
  readonly scheme?: "service" | "standard"
  readonly reason?: "headers_missing" | "signature_malformed" | "too_old_or_new" | "signature_wrong"
}

const genuine = headersFor(current)
const own = genuine["x-service-signature"]!
const standard = genuine["webhook-signature"]!
const zeros = "0".repeat(64)
const headers = (changes: { readonly [name: string]: string | undefined }): Headers =>
  Object.fromEntries(
    Object.entries({ ...genuine, ...changes }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  )
const service = (value: string | undefined): Pick<Delivery, "headers" | "scheme"> => ({
  scheme: "service",
  headers: headers({ "x-service-signature": value })
})
const standardly = (value: string | undefined): Pick<Delivery, "headers" | "scheme"> => ({
  scheme: "standard",
  headers: headers({ "webhook-signature": value })
})

const deliveries: ReadonlyArray<Delivery> = [
  { name: "a delivery" },
  { name: "during a rotation, the receiver has the new secret", headers: headersFor(current, previous) },
  {
    name: "during a rotation, the receiver has the old secret",
    headers: headersFor(current, previous),
    secrets: [previous]
  },
  { name: "the receiver has both secrets", secrets: [previous, current] },
  { name: "a custom secret", headers: headersFor(custom), secrets: [custom] },
  {
    name: "a custom secret that only begins as a generated one",
    headers: headersFor("whsec_not base64!"),
    secrets: ["whsec_not base64!"]
  },
  { name: "five minutes old", now: sentAt + 300 },
  { name: "from a sender whose clock is ahead by five minutes", now: sentAt - 300 },
  {
    name: "an empty body that is signed",
    headers: headersOf({ event_type: "a", sequence: 1 }, id, new Uint8Array(), [keysOf(current)], sentAt),
    body: new Uint8Array()
  },
  { name: "a further signature of another version", ...service(`${own},v2=abc`) },
  { name: "a wrong signature before the right one", ...service(own.replace("v1=", `v1=${zeros},v1=`)) },
  { name: "a further standard signature of another version", ...standardly(`${standard} v1a,abc`) },
  {
    name: "a wrong standard signature before the right one",
    ...standardly(`v1,${base64(new Uint8Array(32))} ${standard}`)
  },
  {
    name: "another body",
    body: Buffer.from(Buffer.from(body).toString().replace("30", "31")),
    reason: "signature_wrong"
  },
  {
    name: "the body parsed and written again",
    body: Buffer.from(JSON.stringify(JSON.parse(Buffer.from(body).toString()), null, 1)),
    reason: "signature_wrong"
  },
  { name: "another secret", secrets: [previous], reason: "signature_wrong" },
  { name: "no secret", secrets: [], reason: "signature_wrong" },
  {
    name: "another delivery's id",
    headers: headers({ "x-service-delivery-id": `${id}x`, "webhook-id": `${id}x` }),
    reason: "signature_wrong"
  },
  { name: "too old", now: sentAt + 301, reason: "too_old_or_new" },
  { name: "too new", now: sentAt - 301, reason: "too_old_or_new" },
  {
    name: "another time",
    headers: headers({
      "x-service-signature": own.replace(`t=${sentAt}`, `t=${sentAt + 1}`),
      "webhook-timestamp": String(sentAt + 1)
    }),
    reason: "signature_wrong"
  },
  {
    name: "no id",
    headers: headers({ "x-service-delivery-id": undefined, "webhook-id": undefined }),
    reason: "headers_missing"
  },
  {
    name: "no signature",
    headers: headers({ "x-service-signature": undefined, "webhook-signature": undefined }),
    reason: "headers_missing"
  },
  { name: "no headers", headers: {}, reason: "headers_missing" },
  { name: "an empty signature", ...service(""), reason: "signature_malformed" },
  { name: "no time", ...service(own.replace(/^t=\d+,/, "")), reason: "signature_malformed" },
  { name: "a time alone", ...service(`t=${sentAt}`), reason: "signature_malformed" },
  { name: "another version alone", ...service(own.replace("v1=", "v0=")), reason: "signature_malformed" },
  { name: "a time that is no number", ...service(own.replace(/t=\d+/, "t=now")), reason: "signature_malformed" },
  { name: "a negative time", ...service(own.replace("t=", "t=-")), reason: "signature_malformed" },
  { name: "a time with a fraction", ...service(own.replace(",", ".0,")), reason: "signature_malformed" },
  {
    name: "a time of a thousand digits",
    ...service(own.replace(/t=\d+/, `t=${"9".repeat(1000)}`)),
    reason: "signature_malformed"
  },
  { name: "a time in other digits", ...service(own.replace(/t=\d+/, "t=١٩٠٠٠٠٠٠٠٠")), reason: "signature_malformed" },
  { name: "an empty value", ...service(`t=${sentAt},v1=`), reason: "signature_wrong" },
  { name: "a value that is no hex", ...service(`t=${sentAt},v1=${"z".repeat(64)}`), reason: "signature_wrong" },
  { name: "a value that was cut off", ...service(own.slice(0, -1)), reason: "signature_wrong" },
  { name: "a value with more behind it", ...service(`${own}00`), reason: "signature_wrong" },
  { name: "a value of zeros", ...service(`t=${sentAt},v1=${zeros}`), reason: "signature_wrong" },
  { name: "a thousand wrong values", ...service(`t=${sentAt}${",v1=00".repeat(1_000)}`), reason: "signature_wrong" },
  { name: "commas", ...service(",,,=,=,v1,t,"), reason: "signature_malformed" },
  {
    name: "no standard time",
    scheme: "standard",
    headers: headers({ "webhook-timestamp": undefined }),
    reason: "headers_missing"
  },
  {
    name: "a standard time that is no number",
    scheme: "standard",
    headers: headers({ "webhook-timestamp": "now" }),
    reason: "signature_malformed"
  },
  { name: "an empty standard signature", ...standardly(""), reason: "signature_malformed" },
  {
    name: "another standard version alone",
    ...standardly(standard.replace("v1,", "v1a,")),
    reason: "signature_malformed"
  },
  { name: "a standard value that is no base64", ...standardly("v1,***"), reason: "signature_wrong" },
  { name: "a standard value of zeros", ...standardly(`v1,${base64(new Uint8Array(32))}`), reason: "signature_wrong" }
]

export const webhooks = (): Json => ({
  description:
    "Deliveries as received, their bodies in base64. `scheme` is service for X-Service-Signature or standard for Standard Webhooks; `secrets` are those that the receiver has, `now` its clock in seconds since the Unix epoch; a time may differ by 300 seconds. Names of headers are compared without case. `verdict` is genuine or refused; `reason` says why.",
  vectors: deliveries.flatMap((delivery) => {
    const { name, reason, scheme, ...given } = delivery
    return (["service", "standard"] as const)
      .filter((one) => scheme === undefined || scheme === one)
      .map((one) => ({
        name,
        scheme: one,
        secrets: [...(given.secrets ?? [current])],
        headers: given.headers ?? genuine,
        body: base64(given.body ?? body),
        now: given.now ?? sentAt,
        verdict: reason === undefined ? "genuine" : "refused",
        ...(reason === undefined ? undefined : { reason })
      }))
  })
})
