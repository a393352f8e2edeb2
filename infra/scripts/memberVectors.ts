/** Responses with members that only some licenses have, for `schema/vectors/responses.json`: periods, credits, owners, borrowed seats. */
import { sha256Hex } from "../../src/platform/signing/Digest.ts"
import { type Case, checkout, data, entitlement, error, limit, offline, subject, without } from "./responseVectors.ts"

const renewing = {
  code: "export",
  enabled: true,
  quota: 1000,
  consumed: 1012,
  remaining: 0,
  extra_credits: 0,
  overage: 12,
  resets_at: "2030-02-01T00:00:00.000Z"
}
const metered = { ...entitlement, features: [renewing, { ...renewing, code: "render", extra_credits: 40, overage: 0 }] }
const owned = {
  ...entitlement,
  licensee: { name: "Ada Žižková & Co., \u{1f5dd}" },
  metadata: { seats: { floor: 3, desks: ["a", "b"] }, "über-id": null, vip: true }
}
const borrowed = {
  ...checkout,
  borrowed_until: "2030-02-10T12:00:00.000Z",
  lease_expires_at: "2030-02-10T12:00:00.000Z"
}
const stored = without(borrowed, "nonce")
const fileOf = (features: object) => without({ ...offline, ...features }, "nonce")

const at = (now: string) => ({ now, highest_issued_at: "2030-01-31T12:00:00.000Z" })
const seat = { kind: "floating_checkout", nonce: null, clock: at("2030-02-10T11:59:59.999Z") }
const file = { kind: "offline", nonce: null, clock: at("2030-02-07T11:59:59.999Z") }

export const memberCases: ReadonlyArray<Case> = [
  { name: "an entitlement with periods, credits and overage", response: data(metered), why: "It keeps all rules." },
  {
    name: "an offline payload whose period has ended",
    response: data(fileOf({ features: [renewing] })),
    expected: file,
    why: "After resets_at the numbers of the period say nothing of the next one; the payload itself is valid until its own end."
  },
  {
    name: "a refusal that says when the quota begins anew",
    response: error({ ...limit, consumed: 1000, remaining: 0, extra_credits: 0, resets_at: renewing.resets_at }),
    why: "The signed instant says when a use may succeed."
  },
  {
    name: "an entitlement whose period ends earlier",
    response: data(metered).replace('"resets_at":"2030-02-01', '"resets_at":"2030-01-01'),
    rule: "signature",
    why: "A byte under the signature differs: an earlier end of the period would hide that the quota is used up."
  },
  {
    name: "an entitlement with more credits",
    response: data(metered).replace('"extra_credits":40', '"extra_credits":99'),
    rule: "signature",
    why: "A byte under the signature differs."
  },
  { name: "an entitlement with its owner", response: data(owned), why: "It keeps all rules: names are UTF-8." },
  {
    name: "an offline payload with its owner",
    response: data(fileOf({ licensee: owned.licensee, metadata: owned.metadata })),
    expected: file,
    why: "It keeps all rules."
  },
  {
    name: "an entitlement with another owner",
    response: data(owned).replace("Ada", "Eve"),
    rule: "signature",
    why: "A byte under the signature differs: the About box would name another owner."
  },
  {
    name: "an entitlement whose owner is written with escapes",
    response: data(owned).replace("Žižková", "\\u017di\\u017ekov\\u00e1"),
    rule: "signature",
    why: "It means the same, but the signature covers the bytes as they are sent."
  },
  {
    name: "the list of devices in place of an entitlement",
    response: data({ ...subject, kind: "devices", devices: [], next_cursor: null, self_deactivations_remaining: 3 }),
    rule: "kind",
    why: "It grants nothing."
  },
  {
    name: "another device's deactivation",
    response: data({ ...subject, kind: "deactivation", binding_hash: sha256Hex("fingerprint of a lost machine") }),
    expected: { kind: "deactivation" },
    rule: "binding",
    why: "It answers the deactivation of a lost device by its id. It must not pass for this machine's own."
  },
  {
    name: "a borrowed seat",
    response: data(borrowed),
    expected: { kind: "floating_checkout" },
    why: "It keeps all rules."
  },
  {
    name: "a borrowed seat without a network",
    response: data(stored),
    expected: seat,
    why: "It is read from the store ten days later: the seat needs no heartbeat until its end."
  },
  {
    name: "a borrowed seat at its end",
    response: data(stored),
    expected: { ...seat, clock: at("2030-02-10T12:00:00.000Z") },
    rule: "times",
    why: "From lease_expires_at on the application has no seat without a heartbeat."
  },
  {
    name: "a borrowed seat whose end was moved",
    response: data(stored).replaceAll("2030-02-10", "2030-03-10"),
    expected: seat,
    rule: "signature",
    why: "A byte under the signature differs."
  },
  {
    name: "a borrowed seat on another machine",
    response: data({ ...stored, binding_hash: sha256Hex("fingerprint of another machine") }),
    expected: seat,
    rule: "binding",
    why: "Only one machine has borrowed it."
  },
  {
    name: "a borrowed seat of another product",
    response: data({ ...stored, product_code: "editor-lite" }),
    expected: seat,
    rule: "product",
    why: "A seat of the cheaper product must not unlock this one."
  },
  {
    name: "a borrowed seat, and a clock that was set back",
    response: data(stored),
    expected: { ...seat, clock: { now: "2030-02-01T00:00:00.000Z", highest_issued_at: "2030-02-10T12:00:00.000Z" } },
    rule: "times",
    why: "The application has seen a later issued_at than its clock shows."
  }
]
