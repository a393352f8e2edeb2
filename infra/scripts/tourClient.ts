/** Whoever takes the tour: sends requests, shows them with their answers, verifies what is signed, stops at what is wrong. */
import { isDeepStrictEqual } from "node:util"
import { type PublishedKey, type Verifier, verifierOf } from "./verify.ts"

export type Answer = Readonly<Record<string, unknown>>

const colourful = process.stdout.isTTY === true && !process.env["NO_COLOR"]
const paint = (code: number) => (text: string) => (colourful ? `\u001b[${code}m${text}\u001b[0m` : text)
const [bold, dim, green, yellow, cyan] = [1, 2, 32, 33, 36].map(paint) as [Paint, Paint, Paint, Paint, Paint]
type Paint = (text: string) => string

const show = (line: string) => process.stdout.write(`${line}\n`)
const indented = (text: string) => text.replaceAll(/^/gm, "     ")

/** Counted over all who travel together. */
interface Journey {
  readonly base: string
  readonly verify: Verifier
  step: number
  verified: number
}

interface Received {
  readonly status: number
  readonly bytes: Buffer
}

export class Traveller {
  readonly #journey: Journey
  readonly #authorization: string

  private constructor(journey: Journey, authorization: string) {
    this.#journey = journey
    this.#authorization = authorization
  }

  /** Looks whether the service is ready and learns the keys that it signs with. */
  static async arrive(base: string, authorization: string): Promise<Traveller> {
    const probe = await fetch(`${base}/readyz`).catch((error) => {
      throw new Error(`There is no service at ${base}: ${error.cause?.message ?? error.message}`)
    })
    if (probe.status !== 200) throw new Error(`The service is not ready: ${probe.status} ${await probe.text()}`)
    const published = await fetch(`${base}/api/v1/system/public-keys`)
    const { data } = (await published.json()) as { readonly data: ReadonlyArray<PublishedKey> }
    show(bold(`A tour of the licensing service at ${base}`))
    show(dim(`It signs with ${data.map(({ kid, algorithm }) => `${algorithm} key ${kid}`).join(", ")}`))
    return new Traveller({ base, verify: verifierOf(data), step: 0, verified: 0 }, authorization)
  }

  /** The same journey with another credential. */
  as(authorization: string): Traveller {
    return new Traveller(this.#journey, authorization)
  }

  /** A management request; `data` of its answer. */
  async manage(title: string, method: string, path: string, status: number, body?: object): Promise<Answer> {
    const answer = await this.#send(title, method, path, body)
    this.expect("the status code", answer.status, status)
    const { data, meta } = JSON.parse(answer.bytes.toString()) as { readonly data: Answer; readonly meta: Answer }
    this.expect("that meta carries a request id", typeof meta["request_id"], "string")
    return data
  }

  /** A management request for a file; its bytes. */
  async download(title: string, path: string): Promise<Buffer> {
    const answer = await this.#send(title, "GET", path)
    this.expect("the status code", answer.status, 200)
    return answer.bytes
  }

  /** A runtime request; `data` of its answer, whose signature holds. */
  async run(title: string, operation: string, body: object): Promise<Answer> {
    const answer = await this.#send(title, "POST", `/license/${operation}`, body)
    this.expect("the status code", answer.status, 200)
    const data = this.#journey.verify(answer.bytes)
    this.#expectTamperEvident(answer.bytes)
    this.#journey.verified++
    show(green("   ✓ the signature holds for the raw bytes of data, and for no other"))
    return data
  }

  /** A runtime request that must be refused with this code. */
  async refused(title: string, operation: string, body: object, status: number, code: string): Promise<void> {
    const answer = await this.#send(title, "POST", `/license/${operation}`, body)
    this.expect("the status code", answer.status, status)
    const { error } = JSON.parse(answer.bytes.toString()) as { readonly error: Answer }
    this.expect("the error code", error["code"], code)
    this.expect("that the error says what to do", typeof error["message"], "string")
  }

  expect(what: string, found: unknown, wanted: unknown): void {
    if (isDeepStrictEqual(found, wanted)) return
    throw new Error(
      `Step ${this.#journey.step}: ${what} should be ${JSON.stringify(wanted)}, but is ${JSON.stringify(found)}`
    )
  }

  farewell(): void {
    const { step, verified } = this.#journey
    show(`\n${green(bold(`All ${step} steps went as they should, and all ${verified} signed answers were verified.`))}`)
  }

  async #send(title: string, method: string, path: string, body?: object): Promise<Received> {
    show(`\n${bold(`${++this.#journey.step}. ${title}`)}`)
    show(`   ${cyan(`${method} /api/v1${path}`)} ${dim(`Authorization: ${this.#authorization.slice(0, 18)}…`)}`)
    if (body !== undefined) show(indented(JSON.stringify(body, null, 2)))
    const response = await fetch(`${this.#journey.base}/api/v1${path}`, {
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

  /** Flips one bit of the first license id in the answer: the signature must not hold any more. */
  #expectTamperEvident(bytes: Buffer): void {
    const forged = Buffer.from(bytes)
    const at = forged.indexOf('"license_id":"') + '"license_id":"'.length
    forged[at]! ^= 1
    let accepted = true
    try {
      this.#journey.verify(forged)
    } catch {
      accepted = false
    }
    this.expect("that a forged answer is found out", accepted, false)
  }
}

const isText = (bytes: Buffer): boolean => !bytes.includes(0)

const readable = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
