/**
 * Sends one request to a receiver and says how it answered. Connections stay open between requests, and each goes to addresses
 * that were judged when it was opened: the platform is given numbers, so nothing is left to be looked up again. Nothing of an
 * answer is kept but its status, and no redirect is followed, for both would carry what a private network says to the outside.
 */
import { Agent, buildConnector, type Dispatcher } from "@effect/platform-node/Undici"
import { Context, Effect, FiberSet, Layer, Schema } from "effect"
import { NetAddress } from "effect/net"
import { Addresses, AddressRefused, AddressUnknown } from "./Address.ts"

/** Seconds for all of it: connecting, the answer's head, its body. */
const patienceSeconds = 15
/** Milliseconds to wait for each of a host's addresses, of which at most three are tried. */
const connectMillis = 4_000
const addressesMax = 3
/** Bytes of an answer that are read, so that its connection can be used again; longer ones are cut off. */
const answerBytesMax = 65_536

export interface EndpointResponse {
  readonly status: number
  /** The header Retry-After. */
  readonly retryAfter: string | undefined
}

const unansweredReasons = ["address_refused", "address_unknown", "connection_failed", "tls_failed", "timeout"] as const

/** No complete answer came. */
export class NoResponse extends Schema.TaggedError<NoResponse>()("Unanswered", {
  reason: Schema.Literals(unansweredReasons)
}) {}

export class Sender extends Context.Service<
  Sender,
  {
    post(
      url: URL,
      headers: { readonly [name: string]: string },
      body: Uint8Array
    ): Effect.Effect<EndpointResponse, NoResponse>
  }
>()("licensing/webhooks/Sender") {
  static readonly layer = Layer.effect(
    Sender,
    Effect.gen(function* () {
      const connect = yield* makeConnector
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent({ connect, allowH2: false, maxHeaderSize: 16_384, ...timeouts })),
        (agent) => Effect.promise(() => agent.destroy())
      )
      return Sender.of({
        post: (url, headers, body) =>
          Effect.timeoutOrElse(exchange(agent, url, headers, body), {
            duration: `${patienceSeconds} seconds`,
            orElse: () => Effect.fail(new NoResponse({ reason: "timeout" }))
          })
      })
    })
  )
}

// The whole is timed by the service's clock; these only make sure that no socket outlives it.
const timeouts = { headersTimeout: patienceSeconds * 1_000, bodyTimeout: patienceSeconds * 1_000 }

type Connector = buildConnector.connector

/** Opens connections to judged addresses only, one after the other until one is there. */
const makeConnector = Effect.gen(function* () {
  const addresses = yield* Addresses
  const fork = yield* FiberSet.makeRuntime<never>()
  const open = buildConnector({ allowH2: false, timeout: connectMillis })

  const openTo = (options: buildConnector.Options, address: NetAddress.IpAddress) =>
    Effect.callback<Parameters<buildConnector.Callback>, Error>((resume) => {
      // The certificate has to be that of the name, not of the number.
      const servername = NetAddress.ipFromString(options.hostname)._tag === "Success" ? "" : bareName(options.hostname)
      const tls = options.protocol === "https:" ? { servername } : { servername: undefined }
      open({ ...options, ...tls, hostname: NetAddress.formatIp(address) } as never, (...outcome) =>
        resume(outcome[0] === null ? Effect.succeed(outcome) : Effect.fail(outcome[0]))
      )
    })

  return ((options, callback) => {
    fork(
      addresses.resolve(options.hostname).pipe(
        Effect.flatMap((found) => Effect.firstSuccessOf(found.slice(0, addressesMax).map((to) => openTo(options, to)))),
        Effect.match({
          onFailure: (error) => callback(error, null),
          onSuccess: (outcome) => callback(...outcome)
        })
      )
    )
  }) as Connector
})

const bareName = (hostname: string) => hostname.replace(/\.$/, "")

const exchange = (agent: Agent, url: URL, headers: { readonly [name: string]: string }, body: Uint8Array) =>
  Effect.callback<EndpointResponse, NoResponse>((resume) => {
    let controller: Dispatcher.DispatchController | undefined
    let answer: EndpointResponse | undefined
    let received = 0
    let ended = false
    const end = (effect: Effect.Effect<EndpointResponse, NoResponse>) => {
      if (ended) return
      ended = true
      resume(effect)
    }
    agent.dispatch(
      { origin: url.origin, path: url.pathname + url.search, method: "POST", headers, body },
      {
        onRequestStart: (started) => {
          controller = started
          if (ended) started.abort(abandoned)
        },
        onResponseStart: (_, status, { "retry-after": retryAfter }) => {
          if (status >= 200) answer = { status, retryAfter: String(retryAfter ?? "") || undefined }
        },
        onResponseData: (_, chunk) => {
          received += chunk.length
          if (received <= answerBytesMax) return
          end(Effect.succeed(answer!))
          controller?.abort(abandoned)
        },
        onResponseEnd: () => end(Effect.succeed(answer!)),
        onResponseError: (_, error) => end(Effect.fail(new NoResponse({ reason: reasonOf(error) })))
      }
    )
    return Effect.sync(() => {
      ended = true
      controller?.abort(abandoned)
    })
  })

const abandoned = new Error("The request was given up")

const reasonOf = (error: Error): NoResponse["reason"] => {
  if (error instanceof AddressRefused) return "address_refused"
  if (error instanceof AddressUnknown) return "address_unknown"
  const code = "code" in error ? String(error.code) : ""
  if (/TIMEOUT|TIMEDOUT/.test(code)) return "timeout"
  return /CERT|TLS|SSL|SIGNED|ISSUER|ALTNAME/.test(code) ? "tls_failed" : "connection_failed"
}
