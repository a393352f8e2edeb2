/** A headless Chromium, driven over its debugging protocol on two pipes. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Readable, Writable } from "node:stream"
import { Context, Effect, Layer } from "effect"
import { wholeChromium } from "./Chromium.ts"

type Json = { readonly [name: string]: unknown }
interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Json
  readonly result?: Json
  readonly error?: { readonly message: string }
}

/** What a page has loaded since `open`. */
interface Loaded {
  /** Addresses of all requests. */
  readonly addresses: ReadonlyArray<string>
  /** Bytes as received, headers included. */
  readonly bytes: number
  /** What the browser's log says: failed requests, scripts that the policy forbids, exceptions. */
  readonly complaints: ReadonlyArray<string>
}

export interface Page {
  /** Opens an address with an empty cache and waits until it is loaded. */
  open(address: string): Effect.Effect<void>
  /** The value of an expression in the page; a promise is awaited. */
  evaluate<A = unknown>(expression: string): Effect.Effect<A>
  /** Waits until the expression is true. */
  until(expression: string): Effect.Effect<void>
  readonly loaded: Effect.Effect<Loaded>
}

/** A page of a new browser, which the scope ends. */
const openPage = Effect.fnUntraced(function* (program: string) {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-browser-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }))
  )
  const flags = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    `--user-data-dir=${home}`
  ]
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(program, [...flags, "--remote-debugging-pipe", "about:blank"], {
        stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]
      })
    ),
    (process) =>
      Effect.callback<void>((resume) => {
        process.once("close", () => resume(Effect.void))
        process.kill("SIGKILL")
      })
  )
  return yield* Effect.promise(() => pageOf(connect(child)))
})

/** A page for a group of tests, of which each opens an address first. Undefined if this machine has no browser. */
export class Reader extends Context.Service<Reader, { readonly page: Page | undefined }>()("licensing/test/Reader") {
  static readonly layer = Layer.effect(
    Reader,
    Effect.gen(function* () {
      const chromium = yield* Effect.promise(wholeChromium)
      return { page: chromium === undefined ? undefined : yield* openPage(chromium) }
    })
  )
}

const connect = (child: ChildProcess) => {
  const [, , , input, output] = child.stdio as unknown as [null, null, null, Writable, Readable]
  const pending = new Map<
    number,
    { readonly resolve: (result: Json) => void; readonly reject: (error: Error) => void }
  >()
  const listeners: Array<(message: Message) => void> = []
  let [last, rest] = [0, ""]
  output.setEncoding("utf8").on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\0")
    rest = parts.pop() ?? ""
    for (const part of parts) {
      const message: Message = JSON.parse(part)
      const waiting = pending.get(message.id ?? 0)
      if (waiting === undefined) for (const listen of listeners) listen(message)
      else if (message.error === undefined) waiting.resolve(message.result ?? {})
      else waiting.reject(new Error(message.error.message))
    }
  })
  const send = (method: string, params: Json = {}, sessionId?: string): Promise<Json> =>
    new Promise((resolve, reject) => {
      const id = ++last
      pending.set(id, { resolve, reject })
      input.write(`${JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) })}\0`)
    })
  return { send, listen: (listener: (message: Message) => void) => void listeners.push(listener) }
}

const pageOf = async ({ listen, send }: ReturnType<typeof connect>): Promise<Page> => {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" })
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true })
  const ask = (method: string, params: Json = {}) => send(method, params, String(sessionId))
  let [addresses, complaints, bytes]: [Array<string>, Array<string>, number] = [[], [], 0]
  let onLoad = () => {}
  listen(({ method, params = {} }) => {
    if (method === "Network.requestWillBeSent") addresses.push((params["request"] as { readonly url: string }).url)
    if (method === "Network.loadingFinished") bytes += Number(params["encodedDataLength"])
    if (method === "Page.loadEventFired") onLoad()
    if (method === "Log.entryAdded") complaints.push(complaintOf(params["entry"] as Json))
    if (method === "Runtime.exceptionThrown") complaints.push(JSON.stringify(params["exceptionDetails"]))
  })
  for (const domain of ["Page", "Network", "Log", "Runtime"]) await ask(`${domain}.enable`)
  await ask("Network.setCacheDisabled", { cacheDisabled: true })

  const evaluate = async (expression: string) => {
    const { exceptionDetails, result } = await ask("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
      userGesture: true
    })
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`)
    return (result as { readonly value?: unknown }).value
  }
  return {
    open: (address) =>
      Effect.promise(async () => {
        ;[addresses, complaints, bytes] = [[], [], 0]
        const isLoaded = new Promise<void>((resolve) => {
          onLoad = resolve
        })
        await ask("Page.navigate", { url: address })
        await isLoaded
      }),
    evaluate: <A>(expression: string) => Effect.promise(() => evaluate(expression) as Promise<A>),
    until: (expression) => Effect.promise(() => evaluate(untilTrue(expression)).then(() => undefined)),
    loaded: Effect.sync(() => ({ addresses, bytes, complaints }))
  }
}

const complaintOf = ({ level, source, text, url }: Json): string => `${level} ${source}: ${text} ${url ?? ""}`

/** Asks again at each frame of the page. */
const untilTrue = (expression: string): string =>
  `new Promise((resolve) => { const ask = () => (${expression}) ? resolve() : requestAnimationFrame(ask); ask() })`
