/**
 * The application kit: one object for applications that customers run. It activates, validates, counts use, holds a seat, opens
 * offline envelopes, believes only responses that keep the rules of docs/VERIFYING.md, and says what the application should do.
 * It has no dependencies and uses Web Crypto and fetch alone: Node, Deno, Bun, browsers, Electron, workers.
 */
import { Conversation } from "./Conversation.ts"
import { type Feature, featuresOf, grantOf, type Holding, type Verdict } from "./judging/Verdict.ts"
import type { KitOptions } from "./KitOptions.ts"
import { Memory } from "./Memory.ts"
import { checkOptions } from "./OptionsCheck.ts"
import type { Outcome } from "./Outcome.ts"
import { Session } from "./Session.ts"
import { storedOf } from "./StoredText.ts"
import { platform as ownPlatform, type Platform } from "./sending/Platform.ts"
import { isStricter } from "./texts/Decisions.ts"
import type {
  Consumed,
  Consumption,
  Deactivation,
  Entitlement,
  FloatingCheckout,
  FloatingLease,
  LicenseFacts,
  OfflineEntitlement,
  OwnDevices
} from "./texts/Payloads.ts"

export type { Rule, TrustedKey } from "./judging/Judge.ts"
export type { Feature, Holding, Verdict } from "./judging/Verdict.ts"
export type { KitOptions } from "./KitOptions.ts"
export type { Outcome } from "./Outcome.ts"
export { type KitRequest, type KitResponse, memoryStore, type Platform, type Store } from "./sending/Platform.ts"
export type { Problem } from "./sending/Problem.ts"
export type { Decision, Reason, RefusalCode } from "./texts/Decisions.ts"
export type * from "./texts/Payloads.ts"

/** Which of the license's devices are listed. */
export interface DevicePage {
  /** The license key; the stored one unless given. */
  readonly licenseKey?: string
  /** `next_cursor` of the page before. */
  readonly cursor?: string
  /** 50 unless given, at most 200. */
  readonly limit?: number
}

/** How a seat is taken. */
export interface SeatRequest {
  /** The license key; the stored one unless given. */
  readonly licenseKey?: string
  /** Borrows the seat until then: it needs no connection before. The policy's borrow_days_max limits it. */
  readonly until?: Date
}

export class LicenseKit {
  readonly #conversation: Conversation
  readonly #session: Session
  readonly #now: () => number

  private constructor(conversation: Conversation, session: Session, { now }: Platform) {
    this.#conversation = conversation
    this.#session = session
    this.#now = now
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
    const memory = await Memory.load(stored, conversation.judge, await conversation.own(), platform.now())
    memory.isStoreFailed = text === failed
    return new LicenseKit(conversation, new Session(options, platform, conversation, memory), platform)
  }

  /** What the application should do now, and why. */
  get verdict(): Verdict {
    return this.#session.verdict
  }

  /** What the application holds: an activation, a seat, or nothing. */
  get holding(): Holding | undefined {
    return this.#session.memory.holding
  }

  /** What the newest believed response says of the license, for an About box: its end, and whose it is if the policy shows that. */
  get license(): LicenseFacts | undefined {
    return grantOf(this.#session.memory.known)
  }

  /** The features that the application may use now: none if it must not run. */
  get features(): ReadonlyArray<Feature> {
    return isStricter(this.verdict.decision, "warn") ? [] : featuresOf(this.#session.memory.known, this.#now())
  }

  feature(code: string): Feature | undefined {
    return this.features.find((feature) => feature.code === code)
  }

  /** Activates this machine with the license key, or again with the stored one. */
  activate(licenseKey?: string): Promise<Outcome<Entitlement>> {
    return this.#session.alone((session) => session.enter("activate", "device", licenseKey))
  }

  /** Starts this machine's one trial of the product under this policy, without a license key. */
  startTrial(policyCode: string): Promise<Outcome<Entitlement>> {
    return this.#session.alone((session) => session.startTrial(policyCode))
  }

  /** Takes a floating seat, or borrows one, with the license key or the stored one. No activation is needed. */
  checkout(given: string | SeatRequest = {}): Promise<Outcome<FloatingCheckout>> {
    const { licenseKey, until } = typeof given === "string" ? { licenseKey: given } : given
    return this.#session.alone((session) => session.enter("checkout", "seat", licenseKey, { until }))
  }

  /** Asks whether the application may continue. It is the heartbeat of an activation. */
  validate(): Promise<Outcome<Entitlement>> {
    return this.#session.alone((session) => session.use("validate", {}))
  }

  /** Asks the same, and writes nothing at the service. */
  check(): Promise<Outcome<Entitlement>> {
    return this.#session.alone((session) => session.use("check", {}))
  }

  /** Counts use. Unless it is granted nothing is counted; repeat it with the same event_id. */
  consume(consumption: Consumption): Promise<Outcome<Entitlement>> {
    return this.#session.alone((session) => session.use("consume", consumption))
  }

  /** Takes a whole consumption back, in the period in which it was counted. A repetition takes back nothing more. */
  reverse({ event_id, feature_code }: Consumed): Promise<Outcome<Entitlement>> {
    const reversal = { feature_code, reverses: event_id, event_id: `${event_id}:reversed` }
    return this.#session.alone((session) => session.use("consume", reversal))
  }

  /** Gets an offline envelope for this machine, and uses it from now on. */
  issueOffline(): Promise<Outcome<OfflineEntitlement>> {
    return this.#session.alone((session) => session.use("offline", {}))
  }

  /**
   * A text that the customer's page, or anyone with the license key, exchanges for this machine's offline envelope: for a file or a
   * QR code. Sends nothing.
   */
  offlineRequest(): string {
    return this.#conversation.offlineRequest()
  }

  /** Uses an offline envelope that was brought to this machine: the text of the file or the QR code. */
  openOffline(envelope: string, licenseKey?: string): Promise<Outcome<OfflineEntitlement>> {
    return this.#session.alone((session) => session.openOffline(envelope, licenseKey))
  }

  /** Lists the license's devices, the newest first. Needs no activation, and changes nothing. */
  listDevices({ licenseKey, ...page }: DevicePage = {}): Promise<Outcome<OwnDevices>> {
    return this.#session.alone((session) =>
      session.askAside(licenseKey, (identity, issuedAt) => this.#conversation.listDevices(page, identity, issuedAt))
    )
  }

  /** Deactivates another device of the license, which was lost: its slot becomes free. */
  deactivateDevice(deviceId: string, licenseKey?: string): Promise<Outcome<Deactivation>> {
    return this.#session.alone((session) =>
      session.askAside(licenseKey, (identity, issuedAt) =>
        this.#conversation.deactivateDevice(deviceId, identity, issuedAt)
      )
    )
  }

  /** Gives the activation back. */
  deactivate(): Promise<Outcome<Deactivation>> {
    return this.#session.alone((session) => session.giveBack("deactivate"))
  }

  /** Gives the seat back. */
  checkin(): Promise<Outcome<FloatingLease>> {
    return this.#session.alone((session) => session.giveBack("checkin"))
  }

  /** From now on validates at next_check_at and sends the seat's heartbeats, until `stop`. */
  start(): void {
    this.#session.schedule.start()
  }

  stop(): void {
    this.#session.schedule.stop()
  }

  /** Does at once what is due, and a retry that waits: after the machine slept, or when it is online again. */
  wake(): Promise<void> {
    return this.#session.schedule.wake()
  }

  /** Resolves when what `start` or a timer began is done: a test's clock waits for it. */
  idle(): Promise<void> {
    return this.#session.schedule.idle()
  }
}
