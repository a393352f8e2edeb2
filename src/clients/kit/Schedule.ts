/** When the service is asked next: heartbeats at a third of the seat's term, validations at next_check_at, retries later and later. */
import type { Answer, Operation } from "./Conversation.ts"
import { type Memory, retryMillisMax } from "./Memory.ts"
import type { Platform } from "./sending/Platform.ts"
import { ruleOf } from "./texts/Decisions.ts"
import { instantOf, type JsonObject } from "./texts/ResponseText.ts"

/** Timers stand still while a machine sleeps, so none is longer than this: then the clock is read again. */
const tickMillisMax = 60_000
const tickMillisMin = 1_000
const waitMillisMin = 5_000
const retryMillisMin = 10_000
/** The heartbeat before a borrowed seat ends makes it an ordinary one without a gap: the shortest term is a minute. */
const beforeEndMillis = 30_000
/** Retries of many machines are spread by this part of their wait. */
const spread = 0.2

/** Operations that show until when the application may go on. */
const keeping: ReadonlySet<Operation> = new Set(["activate", "validate", "checkout", "heartbeat"])

export class Schedule {
  readonly #platform: Platform
  readonly #memory: Memory
  readonly #keep: (isWoken: boolean) => Promise<void>
  readonly #ticked: () => void
  #isStarted = false
  #cancel: (() => void) | undefined
  #failures = 0
  #ticking: Promise<void> = Promise.resolve()

  constructor(platform: Platform, memory: Memory, keep: (isWoken: boolean) => Promise<void>, ticked: () => void) {
    this.#platform = platform
    this.#memory = memory
    this.#keep = keep
    this.#ticked = ticked
  }

  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#ticking = this.#tick()
  }

  stop(): void {
    this.#isStarted = false
    this.#cancel?.()
  }

  /** The application knows that the machine is awake or online: a retry need not wait as long as without that. */
  wake(): Promise<void> {
    return this.#ask(true)
  }

  /** Resolves when what `start` or a timer began is done. */
  idle(): Promise<void> {
    return this.#ticking
  }

  async #ask(isWoken: boolean): Promise<void> {
    await this.#keep(isWoken)
    this.#ticked()
    this.#arm()
  }

  /** Plans the next request after an answer. */
  settle(operation: Operation, answer: Answer): void {
    // With a seat only its lease counts: a validation does not put off the next heartbeat, unless it is refused.
    const isOfSeat = operation === "validate" && this.#memory.holding === "seat"
    // What refuses the license may be lifted: it is asked again soon, whatever was refused.
    const isEnd = answer.outcome === "refused" && ruleOf(answer.refusal.code).reach === "license"
    if (!isEnd && (!keeping.has(operation) || (isOfSeat && answer.outcome !== "refused"))) return
    const isGranted = answer.outcome === "granted"
    this.#failures = isGranted ? 0 : this.#failures + 1
    const wait = isGranted ? waitOf(answer.content) : this.#retryWait(answer)
    const wakeWait = answer.outcome === "missed" ? Math.max(answer.retryAfterMillis ?? 0, retryMillisMin) : wait
    this.#memory.plan(this.#platform.now(), wait, wakeWait)
    this.#arm()
  }

  #retryWait(answer: Answer): number {
    if (answer.outcome === "refused" && answer.refusal.code === "LICENSE_REVOKED") return Number.POSITIVE_INFINITY
    const { seat } = this.#memory
    const most = seat === undefined ? retryMillisMax : Math.min(waitOf({ ...seat }), retryMillisMax)
    const backoff = Math.min(retryMillisMin * 2 ** Math.min(this.#failures - 1, 20), most)
    const [random = 0] = this.#platform.randomBytes(1)
    const asked =
      answer.outcome === "missed"
        ? (answer.retryAfterMillis ?? 0)
        : answer.outcome === "refused"
          ? Number(answer.refusal.retry_after_seconds ?? 0) * 1000
          : 0
    // Perhaps for days: a vendor may lift the refusal before, and a seat needs its heartbeats.
    return Math.max(Math.min(asked, most), backoff * (1 - (spread * random) / 255))
  }

  #arm(): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (!this.#isStarted) return
    const wait = this.#memory.dueAt - this.#platform.now()
    const bounded = Math.min(Math.max(wait, tickMillisMin), tickMillisMax)
    this.#cancel = this.#platform.after(bounded, () => {
      this.#ticking = this.#tick()
    })
  }

  async #tick(): Promise<void> {
    try {
      await this.#ask(false)
    } finally {
      this.#arm()
    }
  }
}

/** By the service's own instants, because this machine's clock may differ. */
const waitOf = (content: JsonObject): number => {
  const issued = instantOf(content["issued_at"])
  const leaseEnd = instantOf(content["lease_expires_at"])
  const isBorrowed = leaseEnd <= instantOf(content["borrowed_until"])
  const [checkAt, expiry] = [instantOf(content["next_check_at"]), instantOf(content["expires_at"])]
  const wait = Number.isNaN(leaseEnd)
    ? // Perhaps a renewal has moved the expiry, and no grace period begins.
      (expiry > issued && expiry < checkAt ? expiry : checkAt) - issued
    : isBorrowed
      ? leaseEnd - issued - beforeEndMillis
      : (leaseEnd - issued) / 3
  return Math.max(Number.isNaN(wait) ? retryMillisMax : wait, waitMillisMin)
}
