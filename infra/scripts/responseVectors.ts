/** The vectors of `schema/vectors/responses.json`: whole responses, and which of them a client believes by docs/VERIFYING.md. */

import type { Rule } from "../../src/clients/kit/judging/Judge.ts"
import { canonicalize, type Json } from "../../src/contract/api/CanonicalJson.ts"
import { sha256, sha256Hex } from "../../src/platform/signing/Digest.ts"
import { algorithm, fromSeed, type SigningKey, signSync } from "../../src/platform/signing/SigningKey.ts"

export type Members = { readonly [member: string]: Json }

export interface Case {
  readonly name: string
  readonly response: string
  /** Where it differs from the expectation that all vectors share. */
  readonly expected?: Members
  /** The rule that the response breaks; absent for a response that is believed. */
  readonly rule?: Rule
  readonly why: string
}

const keyOf = (label: string): SigningKey => fromSeed(sha256(label))
export const active = keyOf("signing key, active")
export const foreign = keyOf("signing key of another service")
export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

/** What the application of all vectors knows and has sent. */
export const expected = {
  kind: "entitlement",
  license_id: "lic_01J0000000000000000000000A",
  product_id: "prod_01J0000000000000000000000A",
  product_code: "editor-pro",
  binding: { kind: "hardware", key: "fingerprint of this machine" },
  nonce: "a nonce of 16 B, once",
  clock: { now: "2030-01-31T12:00:01.000Z", highest_issued_at: "2030-01-31T11:00:00.000Z" }
} satisfies Members

export const subject = {
  license_id: expected.license_id,
  product_id: expected.product_id,
  product_code: expected.product_code,
  policy_id: "pol_01J0000000000000000000000A",
  status: "active",
  license_type: "subscription",
  entitlement_version: 3,
  issued_at: "2030-01-31T12:00:00.000Z",
  device_id: "dev_01J0000000000000000000000A",
  binding_kind: expected.binding.kind,
  binding_hash: sha256Hex(expected.binding.key),
  expires_at: "2031-01-31T00:00:00.000Z",
  nonce: expected.nonce
}
export const entitlement = {
  kind: "entitlement",
  ...subject,
  next_check_at: "2030-02-01T12:00:00.000Z",
  features: [{ code: "export", enabled: true, quota: 1000, consumed: 12, remaining: 988 }]
}
export const offline = { ...entitlement, kind: "offline", offline_expires_at: "2030-02-07T12:00:00.000Z" }
const lease = { ...subject, lease_expires_at: "2030-01-31T12:30:00.000Z" }
export const checkout = { kind: "floating_checkout", ...lease, lease_token: `lease_${"A".repeat(43)}`, features: [] }

export const refusal = {
  code: "LICENSE_EXPIRED",
  message: "The license has expired: renew it to go on.",
  license_id: expected.license_id,
  product_id: expected.product_id,
  issued_at: "2030-01-31T12:00:00.000Z",
  status: "expired",
  expires_at: "2030-01-30T00:00:00.000Z",
  access_ends_at: "2030-01-31T00:00:00.000Z",
  nonce: expected.nonce
}
export const limit = {
  ...refusal,
  code: "USAGE_LIMIT_EXCEEDED",
  message: "The amount does not fit: at most 988 can be used now.",
  detail: "988",
  status: "active",
  expires_at: "2031-01-31T00:00:00.000Z",
  access_ends_at: "2031-01-31T00:00:00.000Z",
  quota: 1000,
  consumed: 12,
  remaining: 988
}

export const meta = JSON.stringify({
  request_id: "req_01J0000000000000000000000A",
  timestamp: "2030-01-31T12:00:00.000Z"
})

const signed = (member: "data" | "error", content: Json, key = active): string => {
  const bytes = canonicalize(content)
  const signature = { alg: algorithm, kid: key.kid, value: base64(signSync(key, Buffer.from(bytes))) }
  return `{"${member}":${bytes},"signature":${JSON.stringify(signature)},"meta":${meta}}`
}
export const data = (content: Json, key?: SigningKey) => signed("data", content, key)
export const error = (content: Json, key?: SigningKey) => signed("error", content, key)

export const without = (content: Members, member: string): Members =>
  Object.fromEntries(Object.entries(content).filter(([name]) => name !== member))

const cases: ReadonlyArray<Case> = [
  { name: "an entitlement", response: data(entitlement), why: "It keeps all rules." },
  {
    name: "a deactivation",
    response: data({ kind: "deactivation", ...subject }),
    expected: { kind: "deactivation" },
    why: "It keeps all rules."
  },
  {
    name: "a floating checkout",
    response: data(checkout),
    expected: { kind: "floating_checkout" },
    why: "It keeps all rules."
  },
  {
    name: "a floating lease",
    response: data({ kind: "floating_lease", ...lease }),
    expected: { kind: "floating_lease" },
    why: "It keeps all rules."
  },
  { name: "a refusal", response: error(refusal), why: "The license has expired: the signed dates say since when." },
  { name: "a refusal with a quota", response: error(limit), why: "The signed numbers say what remains." },
  {
    name: "a nonce of one space",
    response: data({ ...entitlement, nonce: " " }),
    expected: { nonce: " " },
    why: "A nonce has 1 to 128 printable ASCII characters, and a space is one."
  },
  {
    name: "a clock that is four minutes behind",
    response: data(entitlement),
    expected: { clock: { now: "2030-01-31T11:56:00.000Z", highest_issued_at: "2030-01-31T11:00:00.000Z" } },
    why: "Clocks differ: up to five minutes are allowed."
  },
  {
    name: "an offline payload on its machine",
    response: data(without(offline, "nonce")),
    expected: { kind: "offline", nonce: null, clock: { now: "2030-02-07T11:59:59.999Z", highest_issued_at: null } },
    why: "It is read from a file, so no nonce is expected."
  },
  {
    name: "a refusal without a signature",
    response: `{"error":${JSON.stringify({ code: "LICENSE_REVOKED", message: "The license is revoked." })},"meta":${meta}}`,
    rule: "signature",
    why: "A proxy can send it: the service was not reached, and the license's state is not known."
  },
  {
    name: "a refusal with another status",
    response: error(refusal).replace('"status":"expired"', '"status":"revoked"'),
    rule: "signature",
    why: "A byte under the signature differs."
  },
  {
    name: "an entitlement with another quota",
    response: data(entitlement).replace('"quota":1000', '"quota":9999'),
    rule: "signature",
    why: "A byte under the signature differs."
  },
  {
    name: "an entitlement signed by another service",
    response: data(entitlement, foreign),
    rule: "kid",
    why: "Anyone can make a key: only the published keys that the application trusts count."
  },
  {
    name: "a refusal signed by another service",
    response: error(refusal, foreign),
    rule: "kid",
    why: "Anyone can make a key: only the published keys that the application trusts count."
  },
  {
    name: "a deactivation in place of an entitlement",
    response: data({ kind: "deactivation", ...subject }),
    rule: "kind",
    why: "Its status is active, but it says that the device gave its slot back."
  },
  {
    name: "an ended lease in place of a checkout",
    response: data({ kind: "floating_lease", ...lease }),
    expected: { kind: "floating_checkout" },
    rule: "kind",
    why: "The answer to a checkin grants no seat."
  },
  {
    name: "a refusal's error in place of an entitlement's data",
    response: data(refusal),
    rule: "kind",
    why: "The signature over the bytes is right; only the kind tells what they are."
  },
  {
    name: "an answer without a kind",
    response: data(without(entitlement, "kind")),
    rule: "kind",
    why: "Every signed payload has a kind."
  },
  {
    name: "another customer's entitlement",
    response: data({ ...entitlement, license_id: "lic_01J0000000000000000000000B" }),
    rule: "license",
    why: "The application knows its license from the activation."
  },
  {
    name: "another license's refusal",
    response: error({ ...refusal, license_id: "lic_01J0000000000000000000000B" }),
    rule: "license",
    why: "Another license's expiry says nothing about this one."
  },
  {
    name: "an entitlement to a smaller product",
    response: data({ ...entitlement, product_id: "prod_01J0000000000000000000000B", product_code: "editor-lite" }),
    rule: "product",
    why: "A key of the cheaper product must not unlock this one."
  },
  {
    name: "another machine's entitlement",
    response: data({ ...entitlement, binding_hash: sha256Hex("fingerprint of another machine") }),
    rule: "binding",
    why: "One paying machine's answer is copied to many."
  },
  {
    name: "a container's entitlement whose key is this machine's",
    response: data({ ...entitlement, binding_kind: "container" }),
    rule: "binding",
    why: "A binding is a kind and a key."
  },
  {
    name: "a copied offline payload",
    response: data(without({ ...offline, binding_hash: sha256Hex("fingerprint of another machine") }, "nonce")),
    expected: { kind: "offline", nonce: null },
    rule: "binding",
    why: "The file belongs to the machine that it was issued for."
  },
  {
    name: "a replayed entitlement",
    response: data({ ...entitlement, nonce: "the nonce of yesterday" }),
    rule: "nonce",
    why: "It was captured before the license was revoked: it has an earlier request's nonce."
  },
  {
    name: "a replayed entitlement without a nonce",
    response: data(without(entitlement, "nonce")),
    rule: "nonce",
    why: "The request had a nonce, so its answer has it."
  },
  {
    name: "a replayed refusal",
    response: error({ ...refusal, nonce: "the nonce of yesterday" }),
    rule: "nonce",
    why: "It was captured before the license was renewed."
  },
  {
    name: "a clock that was set back",
    response: data(without(offline, "nonce")),
    expected: {
      kind: "offline",
      nonce: null,
      clock: { now: "2030-02-01T00:00:00.000Z", highest_issued_at: "2030-02-05T00:00:00.000Z" }
    },
    rule: "times",
    why: "The application has seen a later issued_at than its clock shows."
  },
  {
    name: "an offline payload after its end",
    response: data(without(offline, "nonce")),
    expected: {
      kind: "offline",
      nonce: null,
      clock: { now: "2030-02-07T12:00:00.000Z", highest_issued_at: "2030-01-31T12:00:00.000Z" }
    },
    rule: "times",
    why: "From offline_expires_at on the application must reach the service."
  },
  {
    name: "a clock that is five minutes behind",
    response: data(entitlement),
    expected: { clock: { now: "2030-01-31T11:55:00.000Z", highest_issued_at: null } },
    why: "Five minutes are allowed."
  },
  {
    name: "a clock that is a millisecond more than five minutes behind",
    response: data(entitlement),
    expected: { clock: { now: "2030-01-31T11:54:59.999Z", highest_issued_at: null } },
    rule: "times",
    why: "Five minutes are allowed, and no more."
  }
]

export const responses = (more: ReadonlyArray<Case>): Json => ({
  description:
    "Whole responses, as received. A client checks the rules of docs/VERIFYING.md in order: signature, kid, kind, license, product, binding, nonce, times. `expected` is what the application knows and has sent; a vector's own `expected` replaces members of it, and null means that there is no expectation. binding_hash is the lower-case hex SHA-256 of binding.key. `verdict` is believe or distrust; `rule` is the first rule that the response breaks. A refusal that is distrusted counts as a service that was not reached.",
  keys: [{ kid: active.kid, algorithm, public_key: base64(active.publicKey) }],
  expected,
  vectors: [...cases, ...more].map(({ rule, why, ...given }) => ({
    ...given,
    verdict: rule === undefined ? "believe" : "distrust",
    ...(rule === undefined ? undefined : { rule }),
    why
  }))
})
