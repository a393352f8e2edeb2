/** A license of the service in memory, with its devices and seats. Its decisions follow docs/STATES.md as far as tests need them. */
import type { FeatureEntitlement, LicenseFacts, LicenseStatus } from "../texts/Payloads.ts"

export interface FakeFeature {
  readonly code: string
  /** Absent: unlimited. */
  readonly quota?: number
}

export interface FakeLicenseOptions {
  /** The key that the application is given; a random one unless given. */
  readonly key?: string
  readonly license_type?: LicenseFacts["license_type"]
  /** Milliseconds since the epoch. */
  readonly starts_at?: number
  readonly expires_at?: number
  readonly grace_period_days?: number
  readonly validation_interval_minutes?: number
  readonly max_activations?: number
  /** Floating seats; none unless given. */
  readonly max_floating_users?: number
  readonly floating_timeout_minutes?: number
  readonly borrow_days_max?: number
  /** Offline envelopes are valid so long; refused unless given. */
  readonly offline_grace_days?: number
  readonly features?: ReadonlyArray<FakeFeature>
  readonly licensee?: { readonly name: string }
}

export interface FakeBinding {
  readonly kind: "hardware" | "container"
  readonly hash: string
}

interface Seat {
  readonly token: string
  readonly expiresAt: number
  readonly borrowedUntil?: number | undefined
}

export const dayMillis = 86_400_000
/** Without limits where none are given, as a policy's defaults. */
const defaults = {
  license_type: "subscription",
  grace_period_days: 0,
  validation_interval_minutes: 1_440,
  max_activations: 0,
  max_floating_users: 0,
  floating_timeout_minutes: 30,
  borrow_days_max: 0,
  offline_grace_days: 0
} as const

export class FakeLicense {
  readonly key: string
  readonly id: string
  /** Change it as a test goes on. */
  options: FakeLicenseOptions & typeof defaults
  #ended: "suspended" | "revoked" | undefined
  #version = 1
  /** The activated devices, and all that were seen, by the hash of their binding. */
  readonly activated = new Set<string>()
  readonly #devices = new Map<string, string>()
  readonly seats = new Map<string, Seat>()
  readonly #consumed = new Map<string, number>()
  readonly #counted = new Map<string, { readonly feature: string; readonly amount: number }>()

  constructor(id: string, key: string, options: FakeLicenseOptions) {
    this.id = id
    this.key = key
    this.options = { ...defaults, ...options } as FakeLicense["options"]
  }

  /** The vendor ends it for good. */
  revoke(): void {
    this.#ended = "revoked"
    this.#version++
    this.activated.clear()
    this.seats.clear()
  }

  suspend(): void {
    this.#ended ??= "suspended"
    this.#version++
  }

  reinstate(): void {
    if (this.#ended === "suspended") this.#ended = undefined
    this.#version++
  }

  /** A new end of the term. */
  renew(expires_at: number): void {
    this.options = { ...this.options, expires_at }
    this.#version++
  }

  /** The vendor resets all devices: activations are lost, and seats. */
  reset(): void {
    this.activated.clear()
    this.loseSeats()
  }

  /** Other machines take all seats at once: the next heartbeat and the next checkout are refused. */
  loseSeats(): void {
    this.seats.clear()
    const expiresAt = Number.POSITIVE_INFINITY
    for (let at = 0; at < this.options.max_floating_users; at++) this.seats.set(`other ${at}`, { token: "", expiresAt })
  }

  /** The other machines give them back. */
  freeSeats(): void {
    for (const hash of [...this.seats.keys()]) if (hash.startsWith("other ")) this.seats.delete(hash)
  }

  accessEndsAt(): number | undefined {
    const { expires_at, grace_period_days } = this.options
    return expires_at === undefined ? undefined : expires_at + grace_period_days * dayMillis
  }

  status(now: number): LicenseStatus {
    if (this.#ended !== undefined) return this.#ended
    const { expires_at = Number.POSITIVE_INFINITY } = this.options
    if (now < expires_at) return "active"
    return now < (this.accessEndsAt() ?? 0) ? "grace_period" : "expired"
  }

  /** Why nothing is allowed now. */
  refusal(now: number): string | undefined {
    const status = this.status(now)
    if (status === "revoked") return "LICENSE_REVOKED"
    if (status === "suspended") return "LICENSE_SUSPENDED"
    if (now < (this.options.starts_at ?? 0)) return "LICENSE_NOT_STARTED"
    return status === "expired" ? "LICENSE_EXPIRED" : undefined
  }

  get version(): number {
    return this.#version
  }

  deviceId(hash: string): string {
    const id = this.#devices.get(hash) ?? `dev_fake${this.#devices.size + 1}`
    this.#devices.set(hash, id)
    return id
  }

  isSeen(hash: string): boolean {
    return this.#devices.has(hash)
  }

  /** The code of a refusal, or nothing. */
  consume(feature: string, eventId: string, amount: number): string | undefined {
    const assigned = this.options.features?.find(({ code }) => code === feature)
    if (assigned === undefined) return "FEATURE_NOT_ENTITLED"
    const before = this.#counted.get(eventId)
    if (before !== undefined)
      return before.feature === feature && before.amount === amount ? undefined : "EVENT_ID_CONFLICT"
    const consumed = (this.#consumed.get(feature) ?? 0) + amount
    if (consumed > (assigned.quota ?? Number.POSITIVE_INFINITY)) return "USAGE_LIMIT_EXCEEDED"
    this.#consumed.set(feature, consumed)
    this.#counted.set(eventId, { feature, amount })
    return undefined
  }

  reverse(feature: string, eventId: string, reversed: string): string | undefined {
    if (this.#counted.has(eventId)) return undefined
    const before = this.#counted.get(reversed)
    if (before === undefined || before.feature !== feature) return "REVERSAL_NOT_POSSIBLE"
    this.#consumed.set(feature, (this.#consumed.get(feature) ?? 0) - before.amount)
    this.#counted.set(eventId, { feature, amount: 0 })
    return undefined
  }

  usage(feature: string): Pick<FeatureEntitlement, "quota" | "consumed" | "remaining"> {
    const { quota } = this.options.features?.find(({ code }) => code === feature) ?? {}
    const consumed = this.#consumed.get(feature) ?? 0
    return quota === undefined ? { consumed } : { quota, consumed, remaining: Math.max(quota - consumed, 0) }
  }

  features(): ReadonlyArray<FeatureEntitlement> {
    return (this.options.features ?? []).map(({ code }) => ({ code, enabled: true, ...this.usage(code) }))
  }
}
