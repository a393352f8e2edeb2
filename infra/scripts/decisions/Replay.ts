/**
 * Replays the scenarios of `schema/vectors/decisions.json` on the application kit, with a clock, a network and a store that the
 * scenario gives: the generator records what the kit decides, and the kit's test compares.
 */
import type { TrustedKey } from "../../../src/clients/kit/judging/Judge.ts"
import { LicenseKit, type Outcome, type Verdict } from "../../../src/clients/kit/LicenseKit.ts"
import type { KitResponse } from "../../../src/clients/kit/sending/Platform.ts"
import { objectOf } from "../../../src/clients/kit/texts/ResponseText.ts"

export interface Options {
  readonly product_code: string
  readonly binding: { readonly fingerprint: string }
  readonly tolerance_hours: number
  /** The kids of the keys that are built into the application. */
  readonly built_in: ReadonlyArray<string>
  readonly trust_published_keys: boolean
}

/** What a request gets: a response, or none. */
interface Given {
  /** The name of a text in `responses`. */
  readonly response?: string
  /** 200 unless given. */
  readonly status?: number
  readonly retry_after?: number
  readonly fails?: "refused" | "timeout"
}

export interface Step {
  /** This machine's clock. */
  readonly at: string
  readonly do: string
  readonly with?: { readonly [name: string]: string | number }
  /** What the requests of this step get, in order. */
  readonly given?: ReadonlyArray<Given>
  /** Replaces the stored text before `open`. */
  readonly store?: string
  /** Responses that are removed from the stored text before `open`. */
  readonly forget?: ReadonlyArray<string>
  /** Responses that are put into the stored text before `open`. */
  readonly put?: { readonly [slot: string]: string }
  /** Options that differ from now on; only with `open`. */
  readonly options?: Partial<Options>
}

/** What holds after a step. Members that are absent here are absent there. */
export interface Expected {
  /** Of the step's operation: granted or refused or missed, with the decision and the reason. */
  readonly outcome?: string
  readonly broken_rule?: string
  readonly problem?: string
  readonly decision: string
  readonly reason: string
  readonly ends_at?: string
  readonly features?: ReadonlyArray<string>
  /** The requests of this step. */
  readonly asked?: ReadonlyArray<string>
  readonly stored?: object
}

export interface Scenario {
  readonly name: string
  readonly why: string
  readonly options?: Partial<Options>
  /** The random byte that spreads retries; 0 unless given. */
  readonly random?: number
  readonly steps: ReadonlyArray<Step & { readonly expected?: Expected }>
}

export interface Shared {
  readonly keys: ReadonlyArray<TrustedKey>
  readonly options: Options
  readonly responses: { readonly [name: string]: string }
}

export const replay = async (shared: Shared, scenario: Scenario): Promise<ReadonlyArray<Expected>> => {
  const machine = new Machine(shared, scenario)
  const all: Array<Expected> = []
  for (const step of scenario.steps) all.push(await machine.take(step))
  return all
}

class Machine {
  readonly #shared: Shared
  readonly #random: number
  #options: Options
  #kit!: LicenseKit
  #stored: string | undefined
  #now = 0
  #given: Array<Given> = []
  #asked: Array<string> = []

  constructor(shared: Shared, { options, random = 0 }: Scenario) {
    this.#shared = shared
    this.#options = { ...shared.options, ...options }
    this.#random = random
  }

  async take(step: Step): Promise<Expected> {
    this.#now = Date.parse(step.at)
    this.#given = [...(step.given ?? [])]
    this.#asked = []
    if (step.do === "open") await this.#open(step)
    const outcome = await this.#operate(step)
    const { verdict } = this.#kit
    return {
      ...(outcome && { outcome: wordsOf(outcome) }),
      ...(outcome?.brokenRule && { broken_rule: outcome.brokenRule }),
      ...(outcome?.problem && { problem: outcome.problem.kind }),
      decision: verdict.decision,
      reason: verdict.reason,
      ...endOf(verdict),
      ...this.#features(),
      ...(this.#asked.length > 0 && { asked: this.#asked }),
      ...(this.#stored !== undefined && { stored: this.#summary(this.#stored) })
    }
  }

  async #open({ forget = [], options, put = {}, store }: Step): Promise<void> {
    const { keys, responses } = this.#shared
    this.#options = { ...this.#options, ...options }
    const { binding, built_in, product_code, tolerance_hours, trust_published_keys } = this.#options
    if (store !== undefined) this.#stored = store
    if (forget.length > 0 || Object.keys(put).length > 0) {
      const stored = JSON.parse(this.#stored ?? "{}")
      for (const slot of forget) delete stored.responses[slot]
      for (const [slot, name] of Object.entries(put)) stored.responses[slot] = responses[name]
      this.#stored = JSON.stringify(stored)
    }
    this.#kit = await LicenseKit.open({
      baseUrl: "https://licenses.example.com",
      productCode: product_code,
      keys: keys.filter(({ kid }) => built_in.includes(kid)),
      binding,
      toleranceHours: tolerance_hours,
      trustPublishedKeys: trust_published_keys,
      store: {
        read: () => this.#stored,
        write: (text) => {
          this.#stored = text
        }
      },
      platform: {
        now: () => this.#now,
        fetch: async (url, { body }) => this.#respond(url, body),
        after: () => () => {},
        randomBytes: (count) => new Uint8Array(count).fill(count === 1 ? this.#random : 0)
      }
    })
  }

  async #operate({ do: operation, with: given = {} }: Step): Promise<Outcome<unknown> | undefined> {
    const kit = this.#kit
    const key = given["license_key"] as string | undefined
    switch (operation) {
      case "open":
      case "look":
        return undefined
      case "wake":
        await kit.wake()
        return undefined
      case "activate":
        return kit.activate(key)
      case "checkout": {
        const until = given["until"] === undefined ? undefined : { until: new Date(String(given["until"])) }
        return kit.checkout({ ...(key !== undefined && { licenseKey: key }), ...until })
      }
      case "consume":
        return kit.consume(given as unknown as Parameters<LicenseKit["consume"]>[0])
      case "reverse":
        return kit.reverse(given as unknown as Parameters<LicenseKit["reverse"]>[0])
      case "open_offline":
        return kit.openOffline(this.#shared.responses[String(given["file"])] ?? "", key)
      case "issue_offline":
        return kit.issueOffline()
      case "start_trial":
        return kit.startTrial(String(given["policy_code"]))
      case "list_devices":
        return kit.listDevices(key === undefined ? {} : { licenseKey: key })
      case "deactivate_device":
        return kit.deactivateDevice(String(given["device_id"]), key)
      case "validate":
      case "check":
      case "deactivate":
      case "checkin":
        return kit[operation]()
    }
    throw new Error(`The vectors have no operation ${operation}`)
  }

  #respond(url: string, body: string | undefined): KitResponse {
    const { event_id, policy_code, until } = JSON.parse(body ?? "{}")
    const path = url.replace(/^.*\/api\/v1\/(license\/)?/, "").replace(/\?.*/, "")
    this.#asked.push([path, event_id, until, policy_code].filter((part) => part !== undefined).join(" "))
    const { fails, response = "", retry_after, status = 200 } = this.#given.shift() ?? { fails: "refused" }
    if (fails !== undefined) throw Object.assign(new TypeError("fetch failed"), { cause: { code: failures[fails] } })
    const chunks = [new TextEncoder().encode(this.#shared.responses[response] ?? "")]
    return {
      status,
      headers: { get: (name) => (name === "retry-after" ? (retry_after?.toString() ?? null) : null) },
      body: {
        getReader: () => ({
          read: async () => ({ done: chunks.length === 0, value: chunks.pop() }),
          cancel: async () => {}
        })
      }
    }
  }

  #features() {
    const features = this.#kit.features.map(({ code, isUsageUnknown, remaining }) =>
      [code, isUsageUnknown === true ? "unknown" : remaining].filter((part) => part !== undefined).join(" ")
    )
    return features.length > 0 && { features }
  }

  /** The stored text with the names of the responses in place of their texts. */
  #summary(text: string): object {
    const names = new Map(Object.entries(this.#shared.responses).map(([name, response]) => [response, name]))
    try {
      const { published_keys = [], responses = {}, ...rest } = objectOf(text) as Stored
      return {
        ...rest,
        ...(published_keys.length > 0 && { published_keys: published_keys.map(({ kid }) => kid).toSorted() }),
        responses: Object.fromEntries(
          Object.entries<string>(responses).map(([slot, response]) => [slot, names.get(response) ?? "unknown"])
        )
      }
    } catch {
      return { malformed: true }
    }
  }
}

interface Stored {
  readonly published_keys?: ReadonlyArray<TrustedKey>
  readonly responses?: { readonly [slot: string]: string }
}

const failures = { refused: "ECONNREFUSED", timeout: "ETIMEDOUT" } as const

const wordsOf = ({ decision, granted, reason, refusal }: Outcome<unknown>): string =>
  `${granted ? "granted" : refusal === undefined ? "missed" : "refused"} ${decision} ${reason}`

const endOf = ({ endsAt }: Verdict) => endsAt !== undefined && { ends_at: new Date(endsAt).toISOString() }
