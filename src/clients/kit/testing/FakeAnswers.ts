/** The signed answers of the service in memory, by operation. */
import { bindingHashOf } from "../judging/BindingHash.ts"
import type { Binding } from "../texts/Payloads.ts"
import { dayMillis, type FakeBinding, type FakeLicense } from "./FakeLicense.ts"
import { type FakeKey, sealed } from "./FakeSignature.ts"

export interface Asked {
  readonly operation: string
  readonly productCode: string
  readonly now: number
  /** The license of the request's key, if there is one. */
  readonly license: FakeLicense | undefined
  readonly body: Readonly<Record<string, unknown>>
}

interface Answer {
  readonly status: number
  readonly text: string
}

const iso = (millis: number): string => new Date(millis).toISOString()
const instant = (millis: number | undefined): string | undefined => (millis === undefined ? undefined : iso(millis))

export const answerOf = async (asked: Asked, key: FakeKey): Promise<Answer> => {
  const { body, license, now, operation } = asked
  const meta = { request_id: "req_fake", timestamp: iso(now) }
  if (license === undefined) {
    const error = { code: "LICENSE_KEY_INVALID", message: "The license key is unknown." }
    return { status: 401, text: JSON.stringify({ error, meta }) }
  }
  const nonce = typeof body["nonce"] === "string" ? { nonce: body["nonce"] } : {}
  const binding = await bindingOf(asked, license)
  const decided = binding === undefined ? refused("LEASE_NOT_FOUND") : decide(asked, license, binding)
  if (isRefused(decided)) {
    const { code, ...facts } = decided
    const error = { code, message: `The service in memory refuses: ${code}.`, ...facts, ...refusalFacts(license, now) }
    return { status: statusOf(code), text: await key.sign("error", { ...error, ...nonce }, meta) }
  }
  const content = { ...factsOf(asked, license), ...deviceFacts(license, binding), ...decided, ...nonce }
  if (operation !== "offline") return { status: 200, text: await key.sign("data", content, meta) }
  const envelope = await sealed(license.key, key.kid, await key.sign("data", content))
  return { status: 200, text: await key.sign("data", envelope, meta) }
}

interface Refused {
  readonly code: string
  readonly [fact: string]: unknown
}

const isRefused = (decided: object): decided is Refused => "code" in decided

const refused = (code: string, facts: object = {}): Refused => ({ code, ...facts })

/** A lease names its device; all others say what they run on. */
const bindingOf = async ({ body }: Asked, { seats }: FakeLicense): Promise<FakeBinding | undefined> => {
  const token = body["lease_token"]
  if (token === undefined) return bindingHashOf(body as Binding)
  const [name] = [...seats].find(([, seat]) => seat.token === token) ?? []
  const [, kind, hash] = /^(hardware|container) (.+)$/.exec(name ?? "") ?? []
  return hash === undefined ? undefined : { kind: kind as FakeBinding["kind"], hash }
}

const decide = (asked: Asked, license: FakeLicense, binding: FakeBinding): object | Refused => {
  const { body, now, operation, productCode } = asked
  if ((body["product_code"] ?? productCode) !== productCode) return refused("PRODUCT_MISMATCH")
  const refusal = license.refusal(now)
  // An activation is given back also after the end.
  if (refusal !== undefined && !(operation === "deactivate" && refusal !== "LICENSE_REVOKED")) return refused(refusal)
  const [, group] = /^(floating)\//.exec(operation) ?? []
  if (group !== undefined) return decideSeat(asked, license, binding)
  return decideDevice(asked, license, binding)
}

const decideDevice = (asked: Asked, license: FakeLicense, { hash }: FakeBinding): object | Refused => {
  const { body, now, operation } = asked
  const { activated, options } = license
  const name = `device ${hash}`
  const isSeated = [...license.seats.keys()].some((seat) => seat.endsWith(hash))
  // Only an activation gets an envelope.
  const holds = activated.has(name) || (isSeated && operation !== "offline")
  if (operation === "activate" || (operation === "offline" && body["activate"] === true)) {
    const { max_activations: max } = options
    if (!activated.has(name) && max > 0 && activated.size >= max)
      return refused("ACTIVATION_LIMIT_REACHED", { max, used: activated.size })
    activated.add(name)
  } else if (!holds) return refused(license.isSeen(hash) ? "DEVICE_NOT_ACTIVE" : "DEVICE_NOT_FOUND")
  if (operation === "deactivate") {
    activated.delete(name)
    return { kind: "deactivation" }
  }
  if (operation === "consume") {
    const feature = String(body["feature_code"])
    const [event, amount] = [String(body["event_id"]), Number(body["amount"] ?? 1)]
    const code =
      body["reverses"] === undefined
        ? license.consume(feature, event, amount)
        : license.reverse(feature, event, String(body["reverses"]))
    if (code !== undefined) return refused(code, code === "USAGE_LIMIT_EXCEEDED" ? license.usage(feature) : {})
  }
  const accessEnd = license.accessEndsAt() ?? Number.POSITIVE_INFINITY
  const entitled = {
    next_check_at: iso(Math.min(now + options.validation_interval_minutes * 60_000, accessEnd)),
    features: license.features()
  }
  if (operation !== "offline") return { kind: "entitlement", ...entitled }
  if (options.offline_grace_days === 0) return refused("OFFLINE_NOT_ALLOWED")
  const end = Math.min(now + options.offline_grace_days * dayMillis, accessEnd)
  return { kind: "offline", ...entitled, offline_expires_at: iso(end) }
}

const decideSeat = ({ body, now, operation }: Asked, license: FakeLicense, binding: FakeBinding): object | Refused => {
  const { options, seats } = license
  const { borrow_days_max, floating_timeout_minutes, max_floating_users: max } = options
  const name = `${binding.kind} ${binding.hash}`
  const held = seats.get(name)
  const isLive = held !== undefined && now < held.expiresAt
  if (operation === "floating/checkin") {
    seats.delete(name)
    return { kind: "floating_lease", lease_expires_at: iso(now) }
  }
  const accessEnd = license.accessEndsAt() ?? Number.POSITIVE_INFINITY
  const term = Math.min(now + floating_timeout_minutes * 60_000, accessEnd)
  const live = [...seats].filter(([other, { expiresAt }]) => other !== name && now < expiresAt).length
  if (operation === "floating/heartbeat") {
    if (!isLive && live >= max) return refused("LEASE_EXPIRED")
    const expiresAt = Math.max(term, held?.borrowedUntil ?? 0)
    seats.set(name, { token: String(body["lease_token"]), expiresAt, borrowedUntil: held?.borrowedUntil })
    return {
      ...{ kind: "floating_lease", lease_expires_at: iso(expiresAt), features: license.features() },
      ...(!isLive && { renewed: true }),
      ...((held?.borrowedUntil ?? 0) > now && { borrowed_until: instant(held?.borrowedUntil) })
    }
  }
  if (max === 0) return refused("FLOATING_NOT_ENABLED")
  if (live >= max) return refused("FLOATING_LIMIT_REACHED", { max, used: live })
  const until = body["until"] === undefined ? undefined : Date.parse(String(body["until"]))
  if (until !== undefined && borrow_days_max === 0) return refused("BORROWING_NOT_ALLOWED")
  const latest = Math.min(now + borrow_days_max * dayMillis, accessEnd)
  if (until !== undefined && until > latest) return refused("BORROW_TOO_LONG", { until_max: iso(latest) })
  const expiresAt = Math.max(term, until ?? 0)
  const token = `lease_fake${seats.size + 1}_${now}`
  seats.set(name, { token, expiresAt, borrowedUntil: until })
  const lease = { lease_token: token, lease_expires_at: iso(expiresAt), borrowed_until: instant(until) }
  return { kind: "floating_checkout", ...lease, features: license.features() }
}

const factsOf = ({ now, productCode }: Asked, license: FakeLicense) => ({
  license_id: license.id,
  product_id: "prod_fake",
  product_code: productCode,
  policy_id: "pol_fake",
  status: license.status(now),
  license_type: license.options.license_type,
  entitlement_version: license.version,
  issued_at: iso(now),
  expires_at: instant(license.options.expires_at),
  access_ends_at: instant(license.accessEndsAt()),
  licensee: license.options.licensee
})

const deviceFacts = (license: FakeLicense, binding: FakeBinding | undefined) =>
  binding && { device_id: license.deviceId(binding.hash), binding_kind: binding.kind, binding_hash: binding.hash }

const refusalFacts = (license: FakeLicense, now: number) => ({
  license_id: license.id,
  product_id: "prod_fake",
  issued_at: iso(now),
  status: license.status(now),
  starts_at: instant(license.options.starts_at),
  expires_at: instant(license.options.expires_at),
  access_ends_at: instant(license.accessEndsAt())
})

const statusOf = (code: string): number => {
  if (/_NOT_FOUND$/.test(code)) return 404
  return code === "EVENT_ID_CONFLICT" || code === "LEASE_NOT_ACTIVE" ? 409 : 403
}
