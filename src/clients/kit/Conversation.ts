/** Sends runtime requests and judges the answers. It changes no state but the keys that the service publishes. */
import { type BindingHash, bindingHashOf } from "./judging/BindingHash.ts"
import {
  Distrusted,
  type Expected,
  type Judge,
  judgeOf,
  type Rule,
  type Trusted,
  type TrustedKey
} from "./judging/Judge.ts"
import { openEnvelope } from "./judging/OfflineEnvelope.ts"
import type { Identity } from "./Memory.ts"
import { keysIn } from "./StoredText.ts"
import type { Platform } from "./sending/Platform.ts"
import type { Problem } from "./sending/Problem.ts"
import { exchange, type Received } from "./sending/Transport.ts"
import type { Reason } from "./texts/Decisions.ts"
import type { Binding, Refusal } from "./texts/Payloads.ts"
import { membersOf, objectOf, toBase64 } from "./texts/ResponseText.ts"

/** Each operation's path and its payload's kind, except the operations on the license's other devices. */
const operations = {
  trial: ["trial", "entitlement"],
  activate: ["activate", "entitlement"],
  validate: ["validate", "entitlement"],
  check: ["check", "entitlement"],
  consume: ["consume", "entitlement"],
  deactivate: ["deactivate", "deactivation"],
  offline: ["offline", "offline"],
  checkout: ["floating/checkout", "floating_checkout"],
  heartbeat: ["floating/heartbeat", "floating_lease"],
  checkin: ["floating/checkin", "floating_lease"]
} as const

export type Operation = keyof typeof operations

/** A believed success, a believed refusal, or neither: then the service was not reached, whatever came. */
export type Answer =
  | { readonly outcome: "granted"; readonly content: Trusted["content"]; readonly text: string }
  | { readonly outcome: "refused"; readonly refusal: Refusal; readonly text: string }
  | {
      readonly outcome: "missed"
      readonly reason: Reason
      readonly rule?: Rule | undefined
      readonly problem?: Problem | undefined
      readonly retryAfterMillis?: number | undefined
    }

export interface ConversationOptions {
  readonly baseUrl: string
  readonly productCode: string
  readonly keys: ReadonlyArray<TrustedKey>
  readonly binding: Binding
  readonly appVersion?: string | undefined
  readonly timeoutMillis: number
  readonly trustPublishedKeys: boolean
  readonly platform: Platform
}

/** The least time between two fetches of the published keys, which a response with an unknown key causes. */
const fetchKeysMillisMin = 600_000

export class Conversation {
  readonly #options: ConversationOptions
  #judge: Judge
  #keysFetchedAt = Number.NEGATIVE_INFINITY
  #bindingHash: Promise<BindingHash> | undefined
  publishedKeys: ReadonlyArray<TrustedKey> = []

  constructor(options: ConversationOptions) {
    this.#options = options
    this.#judge = judgeOf(options.keys)
  }

  get judge(): Judge {
    return this.#judge
  }

  trust(published: ReadonlyArray<TrustedKey>): void {
    if (!this.#options.trustPublishedKeys) return
    this.publishedKeys = published
    // A key that is built in is never replaced.
    this.#judge = judgeOf([...published, ...this.#options.keys])
  }

  /** What is expected of every response, for all operations. */
  async own(): Promise<Expected> {
    this.#bindingHash ??= bindingHashOf(this.#options.binding)
    return { product_code: this.#options.productCode, binding: await this.#bindingHash }
  }

  async ask(operation: Operation, more: object, identity: Identity, highestIssuedAt: number): Promise<Answer> {
    const [path, kind] = operations[operation]
    const isOfLease = operation === "heartbeat" || operation === "checkin"
    const fields = { ...(!isOfLease && this.#machine), ...more }
    return this.#send({ path, fields, expected: { ...(await this.own()), kind } }, highestIssuedAt, identity)
  }

  /** The one request without a license key. */
  async askTrial(policyCode: string, highestIssuedAt: number): Promise<Answer> {
    const [path, kind] = operations.trial
    const fields = { policy_code: policyCode, binding: this.#machine }
    return this.#send({ path, fields, expected: { ...(await this.own()), kind } }, highestIssuedAt)
  }

  /** A page of the license's devices, which has no binding. */
  listDevices(page: object, identity: Identity, highestIssuedAt: number): Promise<Answer> {
    const expected = { product_code: this.#options.productCode, kind: "devices" }
    return this.#send({ path: "devices", fields: page, expected, isRead: true }, highestIssuedAt, identity)
  }

  /** The binding in the answer is the other device's. */
  deactivateDevice(device_id: string, identity: Identity, highestIssuedAt: number): Promise<Answer> {
    const expected = { product_code: this.#options.productCode, kind: "deactivation", device_id }
    const path = `devices/${encodeURIComponent(device_id)}/deactivate`
    return this.#send({ path, fields: {}, expected }, highestIssuedAt, identity)
  }

  /** The body of a request that another computer sends for this machine. Names are sorted: canonical JSON (RFC 8785). */
  offlineRequest(): string {
    const request = { ...this.#machine, product_code: this.#options.productCode, activate: true }
    return JSON.stringify(request, Object.keys(request).sort())
  }

  get #machine() {
    return { ...this.#options.binding, app_version: this.#options.appVersion }
  }

  async #send(question: Question, highestIssuedAt: number, identity?: Identity): Promise<Answer> {
    if (identity !== undefined && !isSendable(identity.licenseKey)) return missed("LICENSE_KEY_INVALID")
    const { baseUrl, platform, productCode, timeoutMillis } = this.#options
    const nonce = toBase64(platform.randomBytes(16))
    const fields = { ...question.fields, nonce, product_code: productCode }
    const url = `${baseUrl.replace(/\/+$/, "")}/api/v1/license/${question.path}`
    const received = await exchange(platform, {
      ...(question.isRead ? { url: `${url}?${queryOf(fields)}` } : { url, body: JSON.stringify(fields) }),
      ...(identity && { authorization: `License ${identity.licenseKey}` }),
      timeoutMillis
    })
    if ("kind" in received) return missed("NOT_REACHED", { problem: received })
    const expected = { ...question.expected, ...(identity && idsOf(identity)), nonce }
    const judged = async () => {
      const clock = { now: platform.now(), highestIssuedAt }
      return expected.kind === "offline"
        ? this.#offlineAnswer(received.text, identity?.licenseKey ?? "", { ...expected, clock })
        : answerOf(received.text, await this.#judge(received.text, { ...expected, clock }))
    }
    return this.#believing(received, judged, identity === undefined ? isTrialCode : isKeyCode)
  }

  /** The answer of an offline file, which has no nonce. */
  async read(envelope: string, identity: Identity, highestIssuedAt: number): Promise<Answer> {
    const clock = { now: this.#options.platform.now(), highestIssuedAt }
    const expected = { ...(await this.own()), ...idsOf(identity), kind: "offline", clock }
    return this.#believing(undefined, () => this.#opened(envelopeIn(envelope), identity.licenseKey, expected))
  }

  /** The envelope is signed, and so is what is in it. */
  async #offlineAnswer(text: string, licenseKey: string, expected: Expected): Promise<Answer> {
    const outer = await this.#judge(text)
    if (outer.member === "error") return answerOf(text, await this.#judge(text, expected))
    return this.#opened(membersOf(text).get("data") ?? "", licenseKey, expected)
  }

  async #opened(envelope: string, licenseKey: string, expected: Expected): Promise<Answer> {
    const text = await openEnvelope(licenseKey, envelope)
    return answerOf(text, await this.#judge(text, expected))
  }

  async #believing(
    received: Received | undefined,
    judged: () => Promise<Answer>,
    isUnsigned: IsUnsigned = () => false
  ): Promise<Answer> {
    try {
      return await judged().catch(async (problem) => {
        if (problem instanceof Distrusted && problem.rule === "kid" && (await this.#fetchKeys())) return judged()
        throw problem
      })
    } catch (problem) {
      if (!(problem instanceof Distrusted)) throw problem
      if (problem.rule === "times") return missed("CLOCK_WRONG", { rule: "times" })
      const code = problem.rule === "signature" && received ? codeOf(received.text) : undefined
      const reason = code !== undefined && isUnsigned(code, received?.status) ? code : undefined
      const { retryAfterMillis, status } = received ?? {}
      if (reason !== undefined) return missed(reason, { retryAfterMillis })
      const { rule } = problem
      return missed("NOT_REACHED", {
        rule,
        retryAfterMillis,
        ...(status !== undefined && { problem: { kind: "response", status } })
      })
    }
  }

  /** Only over TLS, or on this machine, does the connection vouch for the keys. */
  async #fetchKeys(): Promise<boolean> {
    const { baseUrl, platform, timeoutMillis, trustPublishedKeys } = this.#options
    const isSafe = /^(https:|http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$))/.test(baseUrl)
    const now = platform.now()
    if (!trustPublishedKeys || !isSafe || Math.abs(now - this.#keysFetchedAt) < fetchKeysMillisMin) return false
    this.#keysFetchedAt = now
    const url = `${baseUrl.replace(/\/+$/, "")}/api/v1/system/public-keys`
    const received = await exchange(platform, { url, timeoutMillis })
    if ("kind" in received || received.status !== 200) return false
    try {
      this.trust(keysIn(objectOf(received.text)["data"]))
      return true
    } catch {
      return false
    }
  }
}

interface Question {
  readonly path: string
  readonly fields: object
  readonly expected: Expected
  /** Set for a GET, which has the fields in its query. */
  readonly isRead?: boolean
}

/** Whether a header can contain the key. Other texts, such as one with a word processor's dashes, are no license's key. */
const isSendable = (licenseKey: string): boolean => /^[ -~]*$/.test(licenseKey)

const queryOf = (fields: object): string =>
  Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
    .join("&")

/** The envelope in a text: alone, or as the `data` of a whole response. Editors add white space and byte order marks. */
const envelopeIn = (text: string): string => {
  const trimmed = text.trim()
  try {
    const members = membersOf(trimmed)
    return members.has("ciphertext") ? trimmed : (members.get("data") ?? trimmed)
  } catch {
    return trimmed
  }
}

const idsOf = ({ licenseId, productId }: Identity) => ({ license_id: licenseId, product_id: productId })

const answerOf = (text: string, { content, member }: Trusted): Answer =>
  member === "data"
    ? { outcome: "granted", content, text }
    : {
        outcome: "refused",
        refusal: { ...content, code: String(content["code"]), message: String(content["message"]) },
        text
      }

type Missed = Extract<Answer, { readonly outcome: "missed" }>

export const missed = (reason: Reason, more?: Omit<Missed, "outcome" | "reason">): Missed => ({
  outcome: "missed",
  reason,
  ...more
})

/** Whether a code is reported to the application although its response is not signed. */
type IsUnsigned = (code: string, status: number | undefined) => boolean

/** Only these two ask the user for something. */
const isKeyCode: IsUnsigned = (code, status) =>
  status === 401 && (code === "LICENSE_KEY_INVALID" || code === "LICENSE_KEY_MISSING")

/** A trial that is refused takes nothing away. */
const isTrialCode: IsUnsigned = (_, status) => status === 403

const codeOf = (text: string): Reason | undefined => {
  try {
    const { code } = objectOf(membersOf(text).get("error") ?? "")
    return typeof code === "string" ? code : undefined
  } catch {
    return undefined
  }
}
