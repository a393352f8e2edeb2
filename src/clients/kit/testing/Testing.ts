/**
 * For tests of applications: a clock that a test moves, and the service in memory, which signs as the service does. It has no trials and
 * no list of devices.
 */

import type { TrustedKey } from "../judging/Judge.ts"
import type { KitRequest, KitResponse, Platform } from "../sending/Platform.ts"
import { type Asked, answerOf } from "./FakeAnswers.ts"
import { FakeLicense, type FakeLicenseOptions } from "./FakeLicense.ts"
import { type FakeKey, makeFakeKey } from "./FakeSignature.ts"
import type { TestClock } from "./TestClock.ts"

export type { FakeFeature, FakeLicenseOptions } from "./FakeLicense.ts"
export { FakeLicense } from "./FakeLicense.ts"
export { type Awaited, type Span, TestClock } from "./TestClock.ts"

/**
 * Online, or what is wrong: offline (no connection), forged (signed by another key), page (a login page of a hotel answers), a status
 * without a signed refusal, or requests that take so long.
 */
export type Network =
  | "online"
  | "offline"
  | "forged"
  | "page"
  | { readonly status: number; readonly retryAfterSeconds?: number }
  | { readonly slowMillis: number }

export interface FakeServiceOptions {
  readonly clock: TestClock
  readonly productCode: string
}

export class FakeService {
  readonly #key: FakeKey
  readonly #forger: FakeKey
  readonly #options: FakeServiceOptions
  readonly #licenses = new Map<string, FakeLicense>()
  network: Network = "online"
  /** The operations that were asked, in order. */
  readonly asked: Array<string> = []

  private constructor(options: FakeServiceOptions, key: FakeKey, forger: FakeKey) {
    this.#options = options
    this.#key = key
    this.#forger = forger
  }

  static async start(options: FakeServiceOptions): Promise<FakeService> {
    const kid = "fa4e000000000000"
    return new FakeService(options, await makeFakeKey(kid), await makeFakeKey(kid))
  }

  /** For LicenseKit.open, with a binding and a store of the test's. */
  get kitOptions(): {
    readonly baseUrl: string
    readonly productCode: string
    readonly keys: ReadonlyArray<TrustedKey>
    readonly platform: Pick<Platform, "now" | "fetch" | "after">
  } {
    const { clock, productCode } = this.#options
    return {
      baseUrl: "https://licenses.test",
      productCode,
      keys: [this.#key.published],
      platform: {
        now: () => clock.machineNow,
        fetch: (url, request) => this.#fetch(url, request),
        after: (millis, callback) => clock.after(millis, callback)
      }
    }
  }

  /** Issues a license. */
  issue(options: FakeLicenseOptions = {}): FakeLicense {
    const number = this.#licenses.size + 1
    const key = options.key ?? `LK-${String(number).padStart(30, "0").match(/.{5}/g)?.join("-")}`
    const license = new FakeLicense(`lic_fake${number}`, key, options)
    this.#licenses.set(key, license)
    return license
  }

  async #fetch(url: string, request: KitRequest): Promise<KitResponse> {
    const { clock, productCode } = this.#options
    const operation = url.replace(/^.*\/api\/v1\/(license\/)?/, "")
    this.asked.push(operation)
    const { network } = this
    if (network === "offline") throw new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } })
    if (typeof network === "object" && "slowMillis" in network) clock.advance(network.slowMillis)
    if (request.signal.aborted) throw new DOMException("The request took too long.", "AbortError")
    if (network === "page") return responseOf(200, "<!doctype html><title>Welcome to the hotel</title>")
    if (typeof network === "object" && "status" in network)
      return responseOf(network.status, "{}", network.retryAfterSeconds)
    const asked: Asked = {
      operation,
      productCode,
      now: clock.now,
      license: this.#licenses.get(request.headers["authorization"]?.replace(/^License /, "") ?? ""),
      body: JSON.parse(request.body ?? "{}")
    }
    const { status, text } = await answerOf(asked, network === "forged" ? this.#forger : this.#key)
    return responseOf(status, text)
  }
}

const responseOf = (status: number, text: string, retryAfterSeconds?: number): KitResponse => ({
  status,
  headers: { get: (name) => (name.toLowerCase() === "retry-after" ? (retryAfterSeconds?.toString() ?? null) : null) },
  body: {
    getReader: () => {
      const chunks = [new TextEncoder().encode(text)]
      return {
        read: async () => ({ done: chunks.length === 0, value: chunks.pop() }),
        cancel: async () => {}
      }
    }
  }
})
