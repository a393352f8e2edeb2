/**
 * Sends one request to a receiver and returns its response. Connections are reused. Each connects to IP addresses that
 * were checked when it was opened, without a second name lookup. Redirects are not followed and only the status is
 * stored, because both could leak data of a private network.
 */
import { Agent, buildConnector, type Dispatcher } from "@effect/platform-node/Undici"
import { Context, Effect, FiberSet, Layer, Schema } from "effect"
import { NetAddress } from "effect/net"
import { Addresses, AddressRefused, AddressUnknown } from "./DeliveryAddress.ts"
import { attemptSecondsMax } from "./RetrySchedule.ts"

/** Milliseconds to connect to one of a host's addresses; at most three are tried. */
const connectMillis = 4_000
const addressesMax = 3
/** Bytes of a response that are read, so that its connection can be reused; longer responses are aborted. */
const responseBytesMax = 65_536

export interface EndpointResponse {
  readonly status: number
  /** The header Retry-After. */
  readonly retryAfter: string | undefined
}

const noResponseReasons = ["address_refused", "address_unknown", "connection_failed", "tls_failed", "timeout"] as const

/** No complete response arrived. */
export class NoResponse extends Schema.TaggedError<NoResponse>()("Unanswered", {
  reason: Schema.Literals(noResponseReasons)
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
>()("licensing/ledger/webhooks/Sender") {
  static readonly layer = Layer.effect(
    Sender,
    Effect.gen(function* () {
      const connect = yield* makeConnector
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent({ connect, allowH2: false, maxHeaderSize: 16_384, ...socketTimeouts })),
        (agent) => Effect.promise(() => agent.destroy())
      )
      return Sender.of({
        post: (url, headers, body) =>
          Effect.timeoutOrElse(exchange(agent, url, headers, body), {
            duration: `${attemptSecondsMax} seconds`,
            orElse: () => Effect.fail(new NoResponse({ reason: "timeout" }))
          })
      })
    })
  )
}

// The service's clock limits the whole exchange and then closes the socket. These limits must not be shorter.
const socketMillisMax = 4 * attemptSecondsMax * 1_000
const socketTimeouts = { headersTimeout: socketMillisMax, bodyTimeout: socketMillisMax }

type Connector = buildConnector.connector

/** Connects only to checked addresses, one after another until one succeeds. */
const makeConnector = Effect.gen(function* () {
  const addresses = yield* Addresses
  const fork = yield* FiberSet.makeRuntime<never>()
  const open = buildConnector({ allowH2: false, timeout: connectMillis })

  const openTo = (options: buildConnector.Options, address: NetAddress.IpAddress) =>
    Effect.callback<Parameters<buildConnector.Callback>, Error>((resume) => {
      // The certificate must match the host name, not the IP address.
      const servername = NetAddress.ipFromString(options.hostname)._tag === "Success" ? "" : bareName(options.hostname)
      const tls = options.protocol === "https:" ? { servername } : { servername: undefined }
      open({ ...options, ...tls, hostname: NetAddress.formatIp(address) } as never, (...outcome) =>
        resume(outcome[0] === null ? Effect.succeed(outcome) : Effect.fail(outcome[0]))
      )
    })

  return ((options, callback) => {
    fork(
      addresses.resolve(options).pipe(
        Effect.flatMap((allowed) =>
          Effect.firstSuccessOf(allowed.slice(0, addressesMax).map((to) => openTo(options, to)))
        ),
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
    let response: EndpointResponse | undefined
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
          if (ended) started.abort(aborted)
        },
        onResponseStart: (_, status, { "retry-after": retryAfter }) => {
          if (status >= 200) response = { status, retryAfter: String(retryAfter ?? "") || undefined }
        },
        onResponseData: (_, chunk) => {
          received += chunk.length
          if (received <= responseBytesMax) return
          end(Effect.succeed(response!))
          controller?.abort(aborted)
        },
        onResponseEnd: () => end(Effect.succeed(response!)),
        onResponseError: (_, error) => end(Effect.fail(new NoResponse({ reason: reasonOf(error) })))
      }
    )
    return Effect.sync(() => {
      ended = true
      controller?.abort(aborted)
    })
  })

const aborted = new Error("The request was aborted")

const reasonOf = (error: Error): NoResponse["reason"] => {
  if (error instanceof AddressRefused) return "address_refused"
  if (error instanceof AddressUnknown) return "address_unknown"
  const code = "code" in error ? String(error.code) : ""
  if (/TIMEOUT|TIMEDOUT/.test(code)) return "timeout"
  return /CERT|TLS|SSL|SIGNED|ISSUER|ALTNAME/.test(code) ? "tls_failed" : "connection_failed"
}
