/** What the kit believes, and the text that the application's store keeps of it. */

import { clockSkewMillisMax, type Judge, type Trusted, type TrustedKey } from "./judging/Judge.ts"
import type { Holding, Known } from "./judging/Verdict.ts"
import { type Slot, type Stored, slots } from "./StoredText.ts"
import { type Reason, ruleOf } from "./texts/Decisions.ts"
import type { Entitlement, FloatingCheckout, FloatingLease, Refusal } from "./texts/Payloads.ts"
import { instantOf } from "./texts/ResponseText.ts"

/** The license that requests are made for. Ids are unknown until the first believed response. */
export interface Identity {
  readonly licenseKey: string
  readonly licenseId?: string | undefined
  readonly productId?: string | undefined
}

/** The slot and the kind of what each response grants. */
const slotOfKind: ReadonlyMap<unknown, Slot> = new Map([
  ["entitlement", "entitlement"],
  ["offline", "offline"],
  ["floating_checkout", "checkout"],
  ["floating_lease", "lease"]
])

const kindOfSlot = new Map([...slotOfKind].map(([kind, slot]) => [slot, String(kind)]))

/** The longest wait for a retry. */
export const retryMillisMax = 3_600_000

export class Memory {
  identity: Identity | undefined
  holding: Holding | undefined
  highestIssuedAt = Number.NEGATIVE_INFINITY
  dueAt = Number.POSITIVE_INFINITY
  #plannedAt = Number.NEGATIVE_INFINITY
  #wakeAt = Number.POSITIVE_INFINITY
  publishedKeys: ReadonlyArray<TrustedKey> = []
  missed: Reason | undefined
  isClockAhead = false
  isStoreFailed = false
  /** The newest entitlement to the holder of a seat, which a use was answered with. */
  #used: Entitlement | undefined
  #responses = new Map<Slot, { readonly text: string; readonly content: Trusted["content"] }>()

  /** Believes of a stored text what keeps the rules: signature, kid, kind, license, product and binding. Times are the verdict's. */
  static async load(stored: Stored, judge: Judge, expected: Parameters<Judge>[1], now: number): Promise<Memory> {
    const memory = new Memory()
    const { holding, license_id, license_key, product_id } = stored
    // Nothing can be asked without the key: then the application asks for it.
    if (license_key !== undefined) {
      memory.holding = holding
      memory.identity = { licenseKey: license_key, licenseId: license_id, productId: product_id }
    }
    memory.publishedKeys = stored.published_keys ?? []
    memory.see(stored.highest_issued_at)
    for (const slot of slots) {
      const text = stored.responses[slot]
      const kind = kindOfSlot.get(slot)
      const trusted = text && (await judge(text, { ...expected, kind, license_id, product_id }).catch(() => undefined))
      if (trusted && (trusted.member === "error") === (slot === "refusal")) {
        memory.#responses.set(slot, { text, content: trusted.content })
        memory.see(trusted.content["issued_at"])
      }
    }
    const { known, seat } = memory
    // The service is asked at once if nothing stored is believed, and for a seat, unless it is borrowed.
    const isWaiting = holding === "device" ? memory.#responses.size > 0 : seat?.borrowed_until !== undefined
    // A plan that is later than the service's own, and than any retry, was made while the clock was ahead.
    const [due, next] = [
      instantOf(stored.due_at),
      instantOf(known.entitlement?.next_check_at ?? seat?.lease_expires_at)
    ]
    const isPlausible = due <= now + retryMillisMax || due <= next + clockSkewMillisMax
    if (memory.holding !== undefined) memory.dueAt = isWaiting && isPlausible ? due : 0
    return memory
  }

  /** The next request, by this machine's clock; and how long the application's `wake` waits for it. */
  plan(now: number, wait: number, wakeWait: number): void {
    this.#plannedAt = now
    this.dueAt = now + wait
    this.#wakeAt = now + wakeWait
  }

  /** Also if the clock was set back: it was ahead when the request was planned. */
  isDue(now: number, isWoken: boolean): boolean {
    return now >= this.dueAt || now < this.#plannedAt || (isWoken && now >= this.#wakeAt)
  }

  get known(): Known {
    const content = (slot: Slot) => this.#responses.get(slot)?.content as never
    const { highestIssuedAt, holding, isClockAhead, isStoreFailed, missed } = this
    return {
      ...{ highestIssuedAt, holding, isClockAhead, isStoreFailed, missed, used: this.#used },
      entitlement: content("entitlement"),
      offline: content("offline"),
      checkout: content("checkout"),
      lease: content("lease"),
      refusal: content("refusal")
    }
  }

  /** Believes a grant. `given` is what it gives; if absent, the response only updates what is held. */
  grant(text: string, content: Trusted["content"], now: number, given?: Holding): void {
    const { identity } = this
    if (identity !== undefined) {
      const { license_id, product_id } = content
      this.identity = { ...identity, licenseId: String(license_id), productId: String(product_id) }
    }
    this.#responses.delete("refusal")
    this.isClockAhead = now - instantOf(content["issued_at"]) > clockSkewMillisMax
    const slot = slotOfKind.get(content["kind"])
    // Only an activation gets an envelope: also beside a seat the machine has one.
    const holding = slot === "offline" ? "device" : given
    // Why nothing was held until now.
    if (this.holding === undefined) this.missed = undefined
    if (holding !== undefined && holding !== this.holding) this.#forgetGrants(holding === "device")
    this.holding = holding ?? this.holding
    // An entitlement to the holder of a seat outlasts the seat: the seat alone decides.
    const isOfSeat = slot === "checkout" || slot === "lease"
    if (slot === "entitlement" && this.holding === "seat") this.#used = content as never
    if (slot === undefined || isOfSeat !== (this.holding === "seat")) return
    if (slot === "checkout") this.#responses.delete("lease")
    this.#responses.set(slot, { text, content })
    const checkAt = instantOf(content["next_check_at"])
    if (slot === "offline" && checkAt < this.dueAt) this.dueAt = checkAt
  }

  /** An offline file that a person gives was issued before: it changes neither the clock nor a newer refusal. */
  grantFromFile(text: string, content: Trusted["content"]): void {
    const { isClockAhead } = this
    const refusal = this.#responses.get("refusal")
    this.grant(text, content, 0)
    this.isClockAhead = isClockAhead
    if (refusal !== undefined && instantOf(refusal.content["issued_at"]) > instantOf(content["issued_at"])) {
      this.#responses.set("refusal", refusal)
      this.#forgetGrants(true)
    }
  }

  /** Believes a refusal. What it ends is forgotten, so that removing the refusal from the store gives nothing back. */
  refuse(text: string, refusal: Refusal): void {
    const { reach } = ruleOf(refusal.code)
    const isOfHolding = { activation: this.holding === "device", seat: this.holding === "seat" }
    if (reach === "request" || (reach !== "license" && !isOfHolding[reach])) return
    const isBorrowed = instantOf(this.known.checkout?.borrowed_until) > instantOf(refusal.issued_at)
    // Only a revocation ends a borrowed seat: after any other refusal it can still be given back.
    this.#forgetGrants(isBorrowed && refusal.code !== "LICENSE_REVOKED")
    this.#responses.set("refusal", { text, content: { ...refusal } })
  }

  /** The activation or the seat was given back; the other one stays. */
  release(given: Holding): void {
    if (given === "seat") this.#responses.delete("checkout")
    if (given !== this.holding) return
    this.#forgetGrants(true)
    this.holding = undefined
    this.missed = undefined
    this.dueAt = Number.POSITIVE_INFINITY
  }

  /** Begins with another license. */
  enter(licenseKey: string): void {
    if (this.holding !== undefined) this.release(this.holding)
    this.#responses.clear()
    this.identity = { licenseKey }
  }

  /** The seat that is held. */
  get seat(): FloatingLease | FloatingCheckout | undefined {
    const { checkout, lease } = this.known
    return this.holding === "seat" ? (lease ?? checkout) : undefined
  }

  get leaseToken(): unknown {
    return this.#responses.get("checkout")?.content["lease_token"]
  }

  toStored(): Stored {
    const { dueAt, highestIssuedAt, holding, identity, publishedKeys } = this
    return {
      license_key: identity?.licenseKey,
      license_id: identity?.licenseId,
      product_id: identity?.productId,
      holding,
      highest_issued_at: isoOf(highestIssuedAt),
      due_at: isoOf(dueAt),
      published_keys: publishedKeys,
      responses: Object.fromEntries([...this.#responses].map(([slot, { text }]) => [slot, text]))
    }
  }

  /** Only a response that was believed gets here, so its instant is one. */
  see(issuedAt: unknown): void {
    const instant = instantOf(issuedAt)
    if (instant > this.highestIssuedAt) this.highestIssuedAt = instant
  }

  /** Only the token in the checkout gives a seat back, also beside an activation. */
  #forgetGrants(isTokenKept: boolean): void {
    this.#used = undefined
    for (const slot of slots) {
      if (slot !== "refusal" && !(isTokenKept && slot === "checkout")) this.#responses.delete(slot)
    }
  }
}

const isoOf = (millis: number): string | undefined =>
  Number.isFinite(millis) ? new Date(Math.trunc(millis)).toISOString() : undefined
