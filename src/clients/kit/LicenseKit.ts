/**
 * The application kit: one object for applications that customers run. It activates, validates, counts use, holds a seat, opens
 * offline envelopes, believes only responses that keep the rules of docs/VERIFYING.md, and says what the application should do.
 * It has no dependencies and uses Web Crypto and fetch alone: Node, Deno, Bun, browsers, Electron, workers.
 */
import { type Answer, Conversation, missed, type Operation } from "./Conversation.ts"
import { isNothingHeld, isStricter, ruleOf } from "./Decisions.ts"
import type { KitOptions } from "./KitOptions.ts"
import { licenseKeyOf } from "./LicenseKeyText.ts"
import { Memory } from "./Memory.ts"
import { checkOptions } from "./OptionsCheck.ts"
import { type Outcome, outcomeOf, reasonOf } from "./Outcome.ts"
import type {
  Consumption,
  Deactivation,
  Entitlement,
  FeatureEntitlement,
  FloatingCheckout,
  FloatingLease,
  OfflineEntitlement
} from "./Payloads.ts"
import { platform as ownPlatform, type Platform } from "./Platform.ts"
import { Schedule } from "./Schedule.ts"
import { storedOf } from "./StoredText.ts"
import { featuresOf, type Holding, type Verdict, verdictOf } from "./Verdict.ts"

export type { Decision, Reason, RefusalCode } from "./Decisions.ts"
export type { Rule, TrustedKey } from "./Judge.ts"
export type { KitOptions } from "./KitOptions.ts"
export type { Outcome } from "./Outcome.ts"
export type * from "./Payloads.ts"
export { type KitRequest, type KitResponse, memoryStore, type Platform, type Store } from "./Platform.ts"
export type { Problem } from "./Problem.ts"
export type { Holding, Verdict } from "./Verdict.ts"

export class LicenseKit {
  readonly #options: KitOptions
  readonly #platform: Platform
  readonly #conversation: Conversation
  readonly #memory: Memory
  readonly #schedule: Schedule
  #writing: Promise<void> = Promise.resolve()
  #asked = 0
  readonly #settled = { device: 0, seat: 0 }
  #told = ""

  private constructor(options: KitOptions, platform: Platform, conversation: Conversation, memory: Memory) {
    this.#options = options
    this.#platform = platform
    this.#conversation = conversation
    this.#memory = memory
    const keep = () => this.#keep()
    this.#schedule = new Schedule(platform, memory, keep, () => this.#tell())
    this.#told = this.#words()
  }

  /** Reads the store, and believes of it what keeps the rules. Sends nothing. Rejects with a TypeError if an option is wrong. */
  static async open(options: KitOptions): Promise<LicenseKit> {
    checkOptions(options)
    const platform = { ...ownPlatform, ...options.platform }
    const { timeoutMillis = 15_000, trustPublishedKeys = false } = options
    const conversation = new Conversation({ ...options, timeoutMillis, trustPublishedKeys, platform })
    const failed = Symbol()
    const text = await Promise.resolve()
      .then(() => options.store.read())
      .catch(() => failed)
    const stored = storedOf(typeof text === "string" ? text : undefined)
    conversation.trust(stored.published_keys ?? [])
    const memory = await Memory.load(stored, conversation.judge, await conversation.own())
    memory.isStoreFailed = text === failed
    return new LicenseKit(options, platform, conversation, memory)
  }

  /** What the application should do now, and why. */
  get verdict(): Verdict {
    const { toleranceHours = 72 } = this.#options
    return verdictOf(this.#memory.known, this.#platform.now(), toleranceHours * 3_600_000)
  }

  /** What the application holds: an activation, a seat, or nothing. */
  get holding(): Holding | undefined {
    return this.#memory.holding
  }

  /** The features that the application may use now: none if it must not run. */
  get features(): ReadonlyArray<FeatureEntitlement> {
    return isStricter(this.verdict.decision, "warn") ? [] : featuresOf(this.#memory.known, this.#platform.now())
  }

  feature(code: string): FeatureEntitlement | undefined {
    return this.features.find((feature) => feature.code === code)
  }

  /** Activates this machine with the license key, or again with the stored one. */
  activate(licenseKey?: string): Promise<Outcome<Entitlement>> {
    return this.#enter("activate", "device", licenseKey)
  }

  /** Starts this machine's one trial of the product under this policy, without a license key. */
  async startTrial(policyCode: string): Promise<Outcome<Entitlement>> {
    const number = ++this.#asked
    const answer = await this.#conversation.askTrial(policyCode, this.#memory.highestIssuedAt)
    const key = answer.outcome === "granted" ? String(answer.content["license_key"]) : ""
    return this.#enterWith("activate", "device", key, number, answer)
  }

  /** Takes a floating seat with the license key, or again with the stored one. No activation is needed. */
  checkout(licenseKey?: string): Promise<Outcome<FloatingCheckout>> {
    return this.#enter("checkout", "seat", licenseKey)
  }

  /** Asks whether the application may go on. It is the heartbeat of an activation. */
  validate(): Promise<Outcome<Entitlement>> {
    return this.#use("validate", {})
  }

  /** Asks the same, and writes nothing at the service. */
  check(): Promise<Outcome<Entitlement>> {
    return this.#use("check", {})
  }

  /** Counts use. Unless it is granted nothing is counted; repeat it with the same event_id. */
  consume(consumption: Consumption): Promise<Outcome<Entitlement>> {
    return this.#use("consume", consumption)
  }

  /** Gets an offline envelope for this machine, and uses it from now on. */
  issueOffline(): Promise<Outcome<OfflineEntitlement>> {
    return this.#use("offline", {})
  }

  /** Goes by an offline envelope that was brought to this machine: the JSON of kid, salt, nonce and ciphertext. */
  async openOffline(envelope: string, licenseKey?: string): Promise<Outcome<OfflineEntitlement>> {
    const memory = this.#memory
    const identity = this.#identityOf(licenseKey)
    if (identity === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const answer = await this.#conversation.read(envelope, identity, memory.highestIssuedAt)
    if (answer.outcome === "granted") {
      if (identity.licenseKey !== memory.identity?.licenseKey) memory.enter(identity.licenseKey)
      memory.grantFromFile(answer.text, answer.content)
      await this.#save()
    }
    return this.#outcomeOf(answer)
  }

  /** Gives the activation back. */
  deactivate(): Promise<Outcome<Deactivation>> {
    return this.#giveBack("deactivate", {})
  }

  /** Gives the seat back. */
  checkin(): Promise<Outcome<FloatingLease>> {
    return this.#giveBack("checkin", { lease_token: this.#memory.leaseToken })
  }

  /** From now on validates at next_check_at and sends the seat's heartbeats, until `stop`. */
  start(): void {
    this.#schedule.start()
  }

  stop(): void {
    this.#schedule.stop()
  }

  /** Does at once what is due: after the machine slept, or when it is online again. */
  wake(): Promise<void> {
    return this.#schedule.wake()
  }

  /** What is due: a heartbeat, or a validation. */
  async #keep(): Promise<void> {
    const { holding, leaseToken } = this.#memory
    if (holding === "device") await this.validate()
    else if (leaseToken === undefined) await this.checkout()
    else await this.#use("heartbeat", { lease_token: leaseToken })
  }

  #identityOf(licenseKey: string | undefined) {
    const { identity } = this.#memory
    const key = licenseKey === undefined ? identity?.licenseKey : licenseKeyOf(licenseKey)
    return key === undefined ? undefined : key === identity?.licenseKey ? identity : { licenseKey: key }
  }

  async #enter<Data>(operation: Operation, holding: Holding, licenseKey?: string): Promise<Outcome<Data>> {
    const memory = this.#memory
    const identity = this.#identityOf(licenseKey)
    if (identity === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const number = ++this.#asked
    const answer = await this.#conversation.ask(operation, {}, identity, memory.highestIssuedAt)
    if (identity.licenseKey === memory.identity?.licenseKey) {
      return this.#settle(operation, number, answer, answer.outcome === "granted" ? holding : undefined)
    }
    return this.#enterWith(operation, holding, identity.licenseKey, number, answer)
  }

  /** Another license than before: until it is granted the one before stays. */
  async #enterWith<Data>(
    operation: Operation,
    holding: Holding,
    licenseKey: string,
    number: number,
    answer: Answer
  ): Promise<Outcome<Data>> {
    const memory = this.#memory
    if (answer.outcome === "granted") {
      memory.enter(licenseKey)
      return this.#settle(operation, number, answer, holding)
    }
    if (memory.holding === undefined) memory.missed = reasonOf(answer)
    this.#tell()
    return this.#outcomeOf(answer)
  }

  /** A request of what is held. What the service has forgotten is taken again, once. */
  async #use<Data>(operation: Operation, more: object): Promise<Outcome<Data>> {
    const { holding } = this.#memory
    if (holding === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const number = ++this.#asked
    const answer = await this.#ask(operation, more)
    const isLost = answer.outcome === "refused" && ruleOf(answer.refusal.code).again === true
    if (!isLost) return this.#settle(operation, number, answer)
    const regaining = holding === "seat" ? "checkout" : "activate"
    const regained = await this.#ask(regaining, {})
    const outcome = await this.#settle<Data>(regaining, number, regained)
    if (regained.outcome !== "granted" || (operation !== "consume" && operation !== "offline")) return outcome
    return this.#settle(operation, ++this.#asked, await this.#ask(operation, more))
  }

  async #giveBack<Data>(operation: "deactivate" | "checkin", more: object): Promise<Outcome<Data>> {
    const memory = this.#memory
    if (memory.identity === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const answer = await this.#ask(operation, more)
    const isGone = answer.outcome === "granted" || (answer.outcome === "refused" && isNothingHeld(answer.refusal.code))
    if (answer.outcome === "granted") memory.see(answer.content["issued_at"])
    if (isGone) memory.release()
    else if (answer.outcome === "refused") memory.refuse(answer.text, answer.refusal)
    await this.#save()
    const outcome = this.#outcomeOf<Data>(answer)
    return isGone ? { ...this.verdict, ...("data" in outcome && { data: outcome.data }), granted: true } : outcome
  }

  #ask(operation: Operation, more: object): Promise<Answer> {
    const { highestIssuedAt, identity } = this.#memory
    return identity === undefined
      ? Promise.resolve(missed("NOT_ACTIVATED"))
      : this.#conversation.ask(operation, more, identity, highestIssuedAt)
  }

  /** Takes an answer in, unless a later request was answered before. */
  async #settle<Data>(operation: Operation, number: number, answer: Answer, holding?: Holding): Promise<Outcome<Data>> {
    const memory = this.#memory
    const of = operation === "checkout" || operation === "heartbeat" ? "seat" : "device"
    this.#schedule.settle(operation, answer)
    if (number < this.#settled[of]) return this.#outcomeOf(answer)
    this.#settled[of] = number
    if (answer.outcome === "granted") memory.grant(answer.text, answer.content, this.#platform.now(), holding)
    if (answer.outcome === "refused") memory.refuse(answer.text, answer.refusal)
    memory.missed = memory.holding === undefined || answer.outcome === "missed" ? reasonOf(answer) : undefined
    await this.#save()
    return this.#outcomeOf(answer)
  }

  async #save(): Promise<void> {
    this.#memory.publishedKeys = this.#conversation.publishedKeys
    const text = JSON.stringify(this.#memory.toStored())
    this.#writing = this.#writing.then(() => this.#write(text))
    await this.#writing
    this.#tell()
  }

  async #write(text: string): Promise<void> {
    try {
      await this.#options.store.write(text)
      this.#memory.isStoreFailed = false
    } catch {
      this.#memory.isStoreFailed = true
    }
  }

  #words(): string {
    const { decision, reason } = this.verdict
    return `${decision} ${reason}`
  }

  #tell(): void {
    const words = this.#words()
    if (words === this.#told) return
    this.#told = words
    try {
      this.#options.onVerdict?.(this.verdict)
    } catch (problem) {
      // The application's own error: reported like one that nothing catches, and the kit goes on.
      void Promise.reject(problem)
    }
  }

  #outcomeOf<Data>(answer: Answer): Outcome<Data> {
    return outcomeOf(answer, this.verdict)
  }
}
