/** One machine's use of one license: asks, believes or not, stores what is believed, and reports a verdict that changed. */
import { type Answer, type Conversation, missed, type Operation } from "./Conversation.ts"
import { type Holding, type Verdict, verdictOf } from "./judging/Verdict.ts"
import type { KitOptions } from "./KitOptions.ts"
import type { Identity, Memory } from "./Memory.ts"
import { type Outcome, outcomeOf, reasonOf } from "./Outcome.ts"
import { Schedule } from "./Schedule.ts"
import type { Platform } from "./sending/Platform.ts"
import { isNothingHeld, isStricter, ruleOf } from "./texts/Decisions.ts"
import { licenseKeyOf } from "./texts/LicenseKeyText.ts"

export class Session {
  readonly #options: KitOptions
  readonly #platform: Platform
  readonly #conversation: Conversation
  readonly memory: Memory
  readonly schedule: Schedule
  #last: Promise<unknown> = Promise.resolve()
  #told = ""

  constructor(options: KitOptions, platform: Platform, conversation: Conversation, memory: Memory) {
    this.#options = options
    this.#platform = platform
    this.#conversation = conversation
    this.memory = memory
    this.schedule = new Schedule(
      platform,
      memory,
      (isWoken) => this.alone(() => this.#keep(isWoken)),
      () => this.#tell()
    )
    this.#told = this.#words()
    // What ended the use has perhaps ended since: the license was renewed, or the network is back.
    if (memory.holding !== undefined && isStricter(this.verdict.decision, "warn")) memory.dueAt = 0
  }

  get verdict(): Verdict {
    const { toleranceHours = 72 } = this.#options
    return verdictOf(this.memory.known, this.#platform.now(), toleranceHours * 3_600_000)
  }

  /** Requests are sent one after another: no late response is taken for another license's, or for what was given back. */
  alone<A>(ask: (session: Session) => Promise<A>): Promise<A> {
    const asked = this.#last.then(() => ask(this))
    this.#last = asked.catch(() => {})
    return asked
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
    const answer = await this.#hear(this.#conversation.ask(operation, more, identity, memory.highestIssuedAt))
    if (identity.licenseKey === memory.identity?.licenseKey) return this.#settle(operation, answer, holding)
    return this.#enterWith(operation, holding, identity.licenseKey, answer)
  }

  async startTrial<Data>(policyCode: string): Promise<Outcome<Data>> {
    const answer = await this.#hear(this.#conversation.askTrial(policyCode, this.memory.highestIssuedAt))
    const key = answer.outcome === "granted" ? String(answer.content["license_key"]) : ""
    return this.#enterWith("activate", "device", key, answer)
  }

  /** A request of what is held. What the service has forgotten is taken again, once. */
  async use<Data>(operation: Operation, more: object): Promise<Outcome<Data>> {
    const { holding } = this.memory
    if (holding === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const answer = await this.#ask(operation, more)
    const isLost = answer.outcome === "refused" && ruleOf(answer.refusal.code).again === true
    if (!isLost) return this.#settle(operation, answer)
    if (operation === "offline" && holding === "seat") {
      // Only an activation gets an envelope: its refusal is not about the seat.
      await this.#settle(operation, answer)
      return outcomeOf(answer, this.verdict, "warn")
    }
    const regaining = holding === "seat" ? "checkout" : "activate"
    const regained = await this.#ask(regaining, {})
    const outcome = await this.#settle<Data>(regaining, regained)
    if (regained.outcome !== "granted" || (operation !== "consume" && operation !== "offline")) return outcome
    return this.#settle(operation, await this.#ask(operation, more))
  }

  async openOffline<Data>(envelope: string, licenseKey?: string): Promise<Outcome<Data>> {
    const { memory } = this
    const identity = this.#identityOf(licenseKey)
    if (identity === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const answer = await this.#hear(this.#conversation.read(envelope, identity, memory.highestIssuedAt))
    if (answer.outcome === "granted") {
      if (identity.licenseKey !== memory.identity?.licenseKey) memory.enter(identity.licenseKey)
      memory.grantFromFile(answer.text, answer.content)
      await this.#save()
    }
    return this.#outcomeOf(answer)
  }

  async giveBack<Data>(operation: "deactivate" | "checkin"): Promise<Outcome<Data>> {
    const { memory } = this
    const { leaseToken } = memory
    if (memory.identity === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    // A seat that was lost has no token: nothing is left to give back.
    if (operation === "checkin" && leaseToken === undefined) return this.#released(operation, {})
    const answer = await this.#ask(operation, operation === "checkin" ? { lease_token: leaseToken } : {})
    if (answer.outcome === "granted") return this.#released(operation, { data: answer.content as Data })
    if (answer.outcome === "refused") {
      if (isNothingHeld(answer.refusal.code)) return this.#released(operation, {})
      this.schedule.settle(operation, answer)
      memory.refuse(answer.text, answer.refusal)
    }
    await this.#save()
    return this.#outcomeOf(answer)
  }

  /** A request about the license's other devices. Its refusal is not about this one, so it only warns. */
  async askAside<Data>(
    licenseKey: string | undefined,
    ask: (identity: Identity, highestIssuedAt: number) => Promise<Answer>
  ): Promise<Outcome<Data>> {
    const { memory } = this
    const identity = this.#identityOf(licenseKey)
    if (identity === undefined) return this.#outcomeOf(missed("NOT_ACTIVATED"))
    const answer = await this.#hear(ask(identity, memory.highestIssuedAt))
    if (answer.outcome !== "missed") await this.#save()
    return outcomeOf(answer, this.verdict, "warn")
  }

  /** What is due: a heartbeat, or a validation. */
  async #keep(isWoken: boolean): Promise<void> {
    const { holding, known, leaseToken } = this.memory
    if (holding === undefined || !this.memory.isDue(this.#platform.now(), isWoken)) return
    if (holding === "device") await this.use("validate", {})
    // A heartbeat is granted without a check of the version and the machine, so it lifts no refusal.
    else if (leaseToken === undefined || known.refusal !== undefined) await this.enter("checkout", "seat")
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
    answer: Answer
  ): Promise<Outcome<Data>> {
    const { memory } = this
    if (answer.outcome === "granted") {
      memory.enter(licenseKey)
      return this.#settle(operation, answer, holding)
    }
    if (memory.holding === undefined) memory.missed = reasonOf(answer)
    if (answer.outcome === "missed") this.#tell()
    else await this.#save()
    return this.#outcomeOf(answer)
  }

  async #ask(operation: Operation, more: object): Promise<Answer> {
    const { highestIssuedAt, identity } = this.memory
    return identity === undefined
      ? missed("NOT_ACTIVATED")
      : this.#hear(this.#conversation.ask(operation, more, identity, highestIssuedAt))
  }

  /** Notes the instant of a believed answer, also of one that changes nothing else: the clock must not fall behind it. */
  async #hear(asked: Promise<Answer>): Promise<Answer> {
    const answer = await asked
    if (answer.outcome === "granted") this.memory.see(answer.content["issued_at"])
    if (answer.outcome === "refused") this.memory.see(answer.refusal.issued_at)
    return answer
  }

  /** Takes an answer in. */
  async #settle<Data>(operation: Operation, answer: Answer, holding?: Holding): Promise<Outcome<Data>> {
    const { memory } = this
    this.schedule.settle(operation, answer)
    if (answer.outcome === "granted") memory.grant(answer.text, answer.content, this.#platform.now(), holding)
    if (answer.outcome === "refused") memory.refuse(answer.text, answer.refusal)
    memory.missed = memory.holding === undefined || answer.outcome === "missed" ? reasonOf(answer) : undefined
    await this.#save()
    return this.#outcomeOf(answer)
  }

  /** A checkin gives back the seat alone, a deactivation the activation alone. */
  async #released<Data>(operation: "deactivate" | "checkin", given: { readonly data?: Data }): Promise<Outcome<Data>> {
    this.memory.release(operation === "checkin" ? "seat" : "device")
    await this.#save()
    return { ...this.verdict, ...given, granted: true }
  }

  async #save(): Promise<void> {
    const { memory } = this
    memory.publishedKeys = this.#conversation.publishedKeys
    try {
      await this.#options.store.write(JSON.stringify(memory.toStored()))
      memory.isStoreFailed = false
    } catch {
      memory.isStoreFailed = true
    }
    this.#tell()
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
