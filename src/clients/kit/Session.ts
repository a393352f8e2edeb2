/** One machine's use of one license: asks, believes or not, stores what is believed, and reports a verdict that changed. */
import { type Answer, type Conversation, missed, type Operation } from "./Conversation.ts"
import { type Holding, type Verdict, verdictOf } from "./judging/Verdict.ts"
import type { KitOptions } from "./KitOptions.ts"
import type { Identity, Memory } from "./Memory.ts"
import { type Outcome, outcomeOf, reasonOf } from "./Outcome.ts"
import { Schedule } from "./Schedule.ts"
import type { Platform } from "./sending/Platform.ts"
import { isNothingHeld, ruleOf } from "./texts/Decisions.ts"
import { licenseKeyOf } from "./texts/LicenseKeyText.ts"

export class Session {
  readonly #options: KitOptions
  readonly #platform: Platform
  readonly #conversation: Conversation
  readonly memory: Memory
  readonly schedule: Schedule
  #writing: Promise<void> = Promise.resolve()
  #asked = 0
  readonly #settled = { device: 0, seat: 0 }
  #told = ""

  constructor(options: KitOptions, platform: Platform, conversation: Conversation, memory: Memory) {
    this.#options = options
    this.#platform = platform
    this.#conversation = conversation
    this.memory = memory
    this.schedule = new Schedule(
      platform,
      memory,
      () => this.#keep(),
      () => this.#tell()
    )
    this.#told = this.#words()
  }

  get verdict(): Verdict {
    const { toleranceHours = 72 } = this.#options
    return verdictOf(this.memory.known, this.#platform.now(), toleranceHours * 3_600_000)
  }

  /** Takes an activation or a seat, with another license key or the stored one. */
  async enter<Data>(
    operation: Operation,
    holding: Holding,
    licenseKey?: string,
    more: object = {}
  ): Promise<Outcome<Data>> {
    const { memory } = this
    const identity = this.#identityOf(licenseKey)
    if (identity === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const number = ++this.#asked
    const answer = await this.#conversation.ask(operation, more, identity, memory.highestIssuedAt)
    if (identity.licenseKey === memory.identity?.licenseKey) {
      return this.#settle(operation, number, answer, answer.outcome === "granted" ? holding : undefined)
    }
    return this.#enterWith(operation, holding, identity.licenseKey, number, answer)
  }

  async startTrial<Data>(policyCode: string): Promise<Outcome<Data>> {
    const number = ++this.#asked
    const answer = await this.#conversation.askTrial(policyCode, this.memory.highestIssuedAt)
    const key = answer.outcome === "granted" ? String(answer.content["license_key"]) : ""
    return this.#enterWith("activate", "device", key, number, answer)
  }

  /** A request of what is held. What the service has forgotten is taken again, once. */
  async use<Data>(operation: Operation, more: object): Promise<Outcome<Data>> {
    const { holding } = this.memory
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

  async openOffline<Data>(envelope: string, licenseKey?: string): Promise<Outcome<Data>> {
    const { memory } = this
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

  async giveBack<Data>(operation: "deactivate" | "checkin", more: object): Promise<Outcome<Data>> {
    const { memory } = this
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

  /** A request about the license's other devices. Its refusal is not about this one, so it only warns. */
  async askAside<Data>(
    licenseKey: string | undefined,
    ask: (identity: Identity, highestIssuedAt: number) => Promise<Answer>
  ): Promise<Outcome<Data>> {
    const { memory } = this
    const identity = this.#identityOf(licenseKey)
    if (identity === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const answer = await ask(identity, memory.highestIssuedAt)
    if (answer.outcome === "granted") memory.see(answer.content["issued_at"])
    return outcomeOf(answer, this.verdict, "warn")
  }

  /** What is due: a heartbeat, or a validation. */
  async #keep(): Promise<void> {
    const { holding, leaseToken } = this.memory
    if (holding === "device") await this.use("validate", {})
    else if (leaseToken === undefined) await this.enter("checkout", "seat")
    else await this.use("heartbeat", { lease_token: leaseToken })
  }

  #identityOf(licenseKey: string | undefined): Identity | undefined {
    const { identity } = this.memory
    const key = licenseKey === undefined ? identity?.licenseKey : licenseKeyOf(licenseKey)
    return key === undefined ? undefined : key === identity?.licenseKey ? identity : { licenseKey: key }
  }

  /** Another license than before: until it is granted the one before stays. */
  async #enterWith<Data>(
    operation: Operation,
    holding: Holding,
    licenseKey: string,
    number: number,
    answer: Answer
  ): Promise<Outcome<Data>> {
    const { memory } = this
    if (answer.outcome === "granted") {
      memory.enter(licenseKey)
      return this.#settle(operation, number, answer, holding)
    }
    if (memory.holding === undefined) memory.missed = reasonOf(answer)
    this.#tell()
    return this.#outcomeOf(answer)
  }

  #ask(operation: Operation, more: object): Promise<Answer> {
    const { highestIssuedAt, identity } = this.memory
    return identity === undefined
      ? Promise.resolve(missed("NOT_ACTIVATED"))
      : this.#conversation.ask(operation, more, identity, highestIssuedAt)
  }

  /** Takes an answer in, unless a later request was answered before. */
  async #settle<Data>(operation: Operation, number: number, answer: Answer, holding?: Holding): Promise<Outcome<Data>> {
    const { memory } = this
    const of = operation === "checkout" || operation === "heartbeat" ? "seat" : "device"
    this.schedule.settle(operation, answer)
    if (number < this.#settled[of]) return this.#outcomeOf(answer)
    this.#settled[of] = number
    if (answer.outcome === "granted") memory.grant(answer.text, answer.content, this.#platform.now(), holding)
    if (answer.outcome === "refused") memory.refuse(answer.text, answer.refusal)
    memory.missed = memory.holding === undefined || answer.outcome === "missed" ? reasonOf(answer) : undefined
    await this.#save()
    return this.#outcomeOf(answer)
  }

  async #save(): Promise<void> {
    this.memory.publishedKeys = this.#conversation.publishedKeys
    const text = JSON.stringify(this.memory.toStored())
    this.#writing = this.#writing.then(() => this.#write(text))
    await this.#writing
    this.#tell()
  }

  async #write(text: string): Promise<void> {
    try {
      await this.#options.store.write(text)
      this.memory.isStoreFailed = false
    } catch {
      this.memory.isStoreFailed = true
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
