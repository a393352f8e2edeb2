/**
 * The whole service on a free port and a new database, for tests over HTTP.
 *
 * `layer(TestServer.layer)("…", (it) => …)` starts one for a file. Time is real, not a test clock's; `advance` moves the service's
 * time of day.
 */

import { Context, Effect, Layer, Redacted, References } from "effect"
import { FetchHttpClient, HttpServer } from "effect/http"
import { NetAddress } from "effect/net"
import { SiteFolder } from "../../../src/edge/documents/publishing/Site.ts"
import { Shutdown } from "../../../src/edge/system/Shutdown.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { databaseAt, over } from "../../../src/platform/Foundation.ts"
import { KeyRing } from "../../../src/platform/signing/KeyRing.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import * as Server from "../../../src/Server.ts"
import { Database, layerPatient } from "../database/Database.ts"
import { type Credentials, type GroupedClient, groupedClient } from "./GroupedClient.ts"
import { type Answer, abandon, exchange, type Message, send } from "./Http.ts"

const adminToken = "test-admin-token-of-more-than-32-characters"

// All tests use one address, so rate limits are off; tests of limits set them.
const unlimited = { rateRuntime: 0, rateActivation: 0, rateManagement: 0, rateFailures: 0 }

// On a busy machine a request takes longer than the service allows by default; tests of deadlines set them.
const requestTimeoutSeconds = 60

/** The folder of the documentation site: by default none, whether or not the checkout has one. */
export const PublishedSite = Context.Reference<URL>("licensing/test/PublishedSite", {
  defaultValue: () => new URL("file:///nonexistent/")
})

/** The master key, unless the settings name another. */
export const masterKey = Redacted.make(Buffer.alloc(32, 7).toString("base64"))

export class TestServer extends Context.Service<
  TestServer,
  {
    /** `http://127.0.0.1:<port>` */
    readonly baseUrl: string
    readonly port: number
    /** The token of the first API key, which has the scope `admin`. */
    readonly adminToken: string
    /** A typed client with these credentials. */
    connect(credentials: Credentials): Effect.Effect<GroupedClient>
    /** A typed client with the admin token. */
    readonly client: GroupedClient
    /** Sends one request, with the admin token unless it has an `authorization` header or is `anonymous`. */
    send(message: Message & { readonly anonymous?: boolean }): Effect.Effect<Answer>
    /** Writes bytes to a new connection and returns its only answer. */
    exchange(bytes: string | Uint8Array): Effect.Effect<Answer>
    /** Writes bytes to a new connection and resets it. */
    abandon(bytes: string): Effect.Effect<void>
    /** Moves the service's time of day ahead. */
    advance(seconds: number): Effect.Effect<void>
  }
>()("licensing/test/TestServer") {
  static readonly layer = TestServer.layerWith({})

  /** With other settings than the defaults. */
  static layerWith(settings: Parameters<typeof Settings.layerTest>[0]) {
    return TestServer.layerOver(settings).pipe(Layer.provideMerge(Database.layerUrl))
  }

  /** On the test's database. */
  static layerOver(settings: Parameters<typeof Settings.layerTest>[0] = {}) {
    // Each build has its own clock: test files of a worker share this layer.
    return Layer.unwrap(
      Effect.sync(() => {
        const clock = { offsetMillis: 0 }
        const advance = (seconds: number) =>
          Effect.sync(() => {
            clock.offsetMillis += seconds * 1_000
          })
        return TestServer.layerWithClock(settings, { clock: RehearsalClock.layer(() => clock.offsetMillis), advance })
      })
    )
  }

  /** With a clock of the test's own. */
  static layerWithClock(
    settings: NonNullable<Parameters<typeof Settings.layerTest>[0]>,
    { advance, clock }: { readonly clock: Layer.Layer<never>; advance(seconds: number): Effect.Effect<void> }
  ) {
    const stores = Layer.merge(
      Layer.unwrap(Database.useSync(({ url }) => databaseAt(url))),
      MasterKey.layerFromKey(settings.masterKey ?? masterKey, settings.masterKeyNext)
    )
    return Layer.effect(
      TestServer,
      Effect.gen(function* () {
        const { address } = yield* HttpServer.HttpServer
        const port = NetAddress.isInetAddress(address) ? address.port : 0
        const baseUrl = `http://127.0.0.1:${port}`
        const connect = (credentials: Credentials) =>
          groupedClient(baseUrl, credentials).pipe(Effect.provide(FetchHttpClient.layer))
        return TestServer.of({
          baseUrl,
          port,
          adminToken,
          connect,
          client: yield* connect({ token: adminToken }),
          send: ({ anonymous = false, ...message }) =>
            send(port, {
              ...message,
              headers: { ...(anonymous ? undefined : { authorization: `Bearer ${adminToken}` }), ...message.headers }
            }),
          exchange: (bytes) => exchange(port, bytes),
          abandon: (bytes) => abandon(port, bytes),
          advance
        })
      })
    ).pipe(
      Layer.provideMerge(Server.layer),
      Layer.provideMerge(over(stores)),
      Layer.provide(Shutdown.layerTest),
      Layer.provide(Layer.effect(SiteFolder, Effect.service(PublishedSite))),
      Layer.provideMerge(
        Settings.layerTest({
          port: 0,
          logLevel: "None",
          bootstrapToken: Redacted.make(adminToken),
          ...unlimited,
          requestTimeoutSeconds,
          ...settings
        })
      ),
      Layer.provide(clock),
      Layer.provideMerge(layerPatient),
      Layer.orDie
    )
  }
}

/** For tests whose service answers thousands of requests with its real log. */
export const layerSilent = Layer.succeed(References.MinimumLogLevel, "None")

/** Starts another instance on the test's database. The scope stops it. */
export const startServer = Effect.fnUntraced(function* (settings: Parameters<typeof TestServer.layerOver>[0] = {}) {
  const context = yield* Layer.build(Layer.fresh(TestServer.layerOver(settings)))
  return { ...Context.get(context, TestServer), keyRing: Context.get(context, KeyRing) }
})
