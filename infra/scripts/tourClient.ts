/** The tour's HTTP client: sends requests, prints them with their responses, verifies signatures, and throws at the first error. */
import { randomBytes } from "node:crypto"
import { isDeepStrictEqual } from "node:util"
import { Distrusted, type Expected, type Judge, judgeOf, type TrustedKey } from "../../src/clients/kit/judging/Judge.ts"

interface PublishedKey extends TrustedKey {
  readonly algorithm: string
}

export type JsonObject = Readonly<Record<string, unknown>>

const colourful = process.stdout.isTTY === true && !process.env["NO_COLOR"]
const paint = (code: number) => (text: string) => (colourful ? `\u001b[${code}m${text}\u001b[0m` : text)
const [bold, dim, green, yellow, cyan] = [1, 2, 32, 33, 36].map(paint) as [Paint, Paint, Paint, Paint, Paint]
type Paint = (text: string) => string

const show = (line: string) => process.stdout.write(`${line}\n`)
const indented = (text: string) => text.replaceAll(/^/gm, "     ")

/** The state that all clients of a tour share. */
interface TourState {
  readonly base: string
  readonly judge: Judge
  /** How far the service's clock is ahead of this machine's: LICENSING_CLOCK_OFFSET_SECONDS sets it ahead. */
  readonly clockOffsetMillis: number
  /** What the application knows of its license, product and machine, and the highest issued_at that it has seen. */
  known: Expected
  highestIssuedAt: number
  step: number
  verified: number
}

interface Received {
  readonly status: number
  readonly bytes: Buffer
}

export class TourClient {
  readonly #state: TourState
  readonly #authorization: string

  private constructor(state: TourState, authorization: string) {
    this.#state = state
    this.#authorization = authorization
  }

  /** Checks that the service is ready, and fetches its public keys. */
  static async connect(base: string, authorization: string): Promise<TourClient> {
    const probe = await fetch(`${base}/readyz`).catch((error) => {
      throw new Error(`There is no service at ${base}: ${error.cause?.message ?? error.message}`)
    })
    if (probe.status !== 200) throw new Error(`The service is not ready: ${probe.status} ${await probe.text()}`)
    const published = await fetch(`${base}/api/v1/system/public-keys`)
    const { data, meta } = (await published.json()) as {
      readonly data: ReadonlyArray<PublishedKey>
      readonly meta: { readonly timestamp: string }
    }
    const clockOffsetMillis = Date.parse(meta.timestamp) - Date.now()
    show(bold(`A tour of the licensing service at ${base}`))
    show(dim(`It signs with ${data.map(({ kid, algorithm }) => `${algorithm} key ${kid}`).join(", ")}`))
    return new TourClient(
      { base, judge: judgeOf(data), clockOffsetMillis, known: {}, highestIssuedAt: 0, step: 0, verified: 0 },
      authorization
    )
  }

  /** A client of the same tour with another credential. */
  as(authorization: string): TourClient {
    return new TourClient(this.#state, authorization)
  }

  /** The time by the service's clock, epoch milliseconds. */
  now(): number {
    return Date.now() + this.#state.clockOffsetMillis
  }

  /** Sends a management request; returns the response's `data`. */
  async manage(title: string, method: string, path: string, status: number, body?: object): Promise<JsonObject> {
    const response = await this.#send(title, method, path, body)
    this.expect("the status code", response.status, status)
    const { data, meta } = JSON.parse(response.bytes.toString()) as {
      readonly data: JsonObject
      readonly meta: JsonObject
    }
    this.expect("that meta carries a request id", typeof meta["request_id"], "string")
    return data
  }

  /** Downloads a file; returns its bytes. */
  async download(title: string, path: string): Promise<Buffer> {
    const response = await this.#send(title, "GET", path)
    this.expect("the status code", response.status, 200)
    return response.bytes
  }

  /** What the application knows from now on: responses have to agree with it. */
  know(known: Expected): void {
    this.#state.known = { ...this.#state.known, ...known }
  }

  /** Sends a runtime request and judges the response by the rules of docs/VERIFYING.md; returns the response's `data`. */
  async run(title: string, operation: string, body: object): Promise<JsonObject> {
    const { expected, response } = await this.#ask(title, operation, body)
    this.expect("the status code", response.status, 200)
    const kind = kinds[operation] ?? "entitlement"
    return this.#believe(response.bytes, { ...expected, kind })
  }

  /** Sends a runtime request that must be refused with this code, by a refusal that can be believed. */
  async refused(title: string, operation: string, body: object, status: number, code: string): Promise<void> {
    const { expected, response } = await this.#ask(title, operation, body)
    this.expect("the status code", response.status, status)
    const error = await this.#believe(response.bytes, expected)
    this.expect("the error code", error["code"], code)
    this.expect("that the error says what to do", typeof error["message"], "string")
  }

  async #ask(title: string, operation: string, body: object) {
    const nonce = randomBytes(12).toString("base64")
    const { product_code } = this.#state.known
    const response = await this.#send(title, "POST", `/license/${operation}`, { ...body, nonce, product_code })
    const { known, highestIssuedAt } = this.#state
    return { response, expected: { ...known, nonce, clock: { now: this.now(), highestIssuedAt } } }
  }

  async #believe(bytes: Buffer, expected: Expected): Promise<JsonObject> {
    const { content } = await this.#state.judge(bytes.toString(), expected)
    await this.#expectDistrust("altered bytes", alteredLicense(bytes), expected, "signature")
    await this.#expectDistrust("an earlier request's nonce", bytes, { ...expected, nonce: "another nonce" }, "nonce")
    const issuedAt = Date.parse(String(content["issued_at"]))
    this.#state.highestIssuedAt = Math.max(this.#state.highestIssuedAt, issuedAt)
    this.#state.verified++
    show(green("   ✓ signature, kid, kind, license, product, binding, nonce and times are right"))
    return content
  }

  async #expectDistrust(what: string, bytes: Buffer, expected: Expected, rule: string): Promise<void> {
    let broken = "none"
    try {
      await this.#state.judge(bytes.toString(), expected)
    } catch (error) {
      if (!(error instanceof Distrusted)) throw error
      broken = error.rule
    }
    this.expect(`the rule that a response with ${what} breaks`, broken, rule)
  }

  expect(subject: string, actual: unknown, expected: unknown): void {
    if (isDeepStrictEqual(actual, expected)) return
    throw new Error(
      `Step ${this.#state.step}: ${subject} should be ${JSON.stringify(expected)}, but is ${JSON.stringify(actual)}`
    )
  }

  summarize(): void {
    const { step, verified } = this.#state
    show(`\n${green(bold(`All ${step} steps succeeded, and all ${verified} signed responses were verified.`))}`)
  }

  async #send(title: string, method: string, path: string, body?: object): Promise<Received> {
    show(`\n${bold(`${++this.#state.step}. ${title}`)}`)
    show(`   ${cyan(`${method} /api/v1${path}`)} ${dim(`Authorization: ${this.#authorization.slice(0, 18)}…`)}`)
    if (body !== undefined) show(indented(JSON.stringify(body, null, 2)))
    const response = await fetch(`${this.#state.base}/api/v1${path}`, {
      method,
      headers: {
        authorization: this.#authorization,
        ...(body === undefined ? undefined : { "content-type": "application/json" })
      },
      ...(body === undefined ? undefined : { body: JSON.stringify(body) })
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const paintStatus = response.ok ? green : yellow
    show(`   ${paintStatus(String(response.status))}`)
    show(indented(isText(bytes) ? readable(bytes.toString()) : `${bytes.length} bytes`))
    return { status: response.status, bytes }
  }
}

/** The kinds of payloads, by operation; all other operations are answered with an entitlement. */
const kinds: { readonly [operation: string]: string } = {
  deactivate: "deactivation",
  "floating/checkout": "floating_checkout",
  "floating/heartbeat": "floating_lease",
  "floating/checkin": "floating_lease"
}

/** The response with one bit of the first license id flipped. */
const alteredLicense = (bytes: Buffer): Buffer => {
  const altered = Buffer.from(bytes)
  const at = altered.indexOf('"license_id":"') + '"license_id":"'.length
  altered[at]! ^= 1
  return altered
}

const isText = (bytes: Buffer): boolean => !bytes.includes(0)

const readable = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
