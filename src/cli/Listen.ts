/** A receiver for development: it verifies what a webhook endpoint is sent, and prints it. Needs no database and no settings. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Clock, Console, Effect, Layer, Option, Redacted, Schema } from "effect"
import { Flag } from "effect/cli"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NetAddress } from "effect/net"
import { verifyWebhook } from "../webhooks/VerifyWebhook.ts"

export const listenFlags = {
  port: Flag.Int("port").pipe(
    Flag.withDescription("Where to listen on this machine."),
    Flag.withDefault(4242),
    Flag.withSchema(Schema.Number.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })))
  ),
  secret: Flag.Redacted("secret").pipe(
    Flag.withDescription("The endpoint's secret. Without it deliveries are printed and not verified."),
    Flag.optional
  )
}

interface Flags {
  readonly port: number
  readonly secret: Option.Option<Redacted.Redacted<string>>
}

/** Listens until it is interrupted. A delivery that does not verify is answered 400, so that its sender tries again. */
export const listen = Effect.fnUntraced(function* ({ port, secret }: Flags) {
  const { address } = yield* HttpServer.HttpServer.pipe(
    Effect.tap((server) => server.serve(Option.isSome(secret) ? verified(Redacted.value(secret.value)) : printed)),
    Effect.provide(yield* Layer.build(server(port)))
  )
  const url = NetAddress.isInetAddress(address) ? `http://127.0.0.1:${address.port}/` : ""
  yield* Console.error(
    `Listening on ${url} for deliveries; the service must run with LICENSING_WEBHOOK_ALLOW_LOCAL=true.`
  )
  if (Option.isNone(secret)) yield* Console.error("No --secret: nothing is verified.")
  return yield* Effect.never
}, Effect.scoped)

const server = (port: number) =>
  NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port, gracefulShutdownTimeout: "1 second" })

const received = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const body = new Uint8Array(yield* Effect.orDie(request.arrayBuffer))
  return { headers: request.headers, body, text: new TextDecoder().decode(body) }
})

const printed = Effect.gen(function* () {
  const { headers, text } = yield* received
  yield* Console.log(
    `${headers["x-service-event-type"] ?? "no delivery"} ${headers["x-service-delivery-id"] ?? ""}\n${text}\n`
  )
  return HttpServerResponse.empty({ status: 204 })
})

const verified = (secret: string) =>
  Effect.gen(function* () {
    const { body, headers, text } = yield* received
    const nowSeconds = (yield* Clock.currentTimeMillis) / 1_000
    const result = verifyWebhook({ secret, headers, body, nowSeconds })
    if (!result.valid) {
      yield* Console.log(
        `REFUSED, ${result.reason}: ${headers["x-service-delivery-id"] ?? "no delivery id"}\n${text}\n`
      )
      return HttpServerResponse.empty({ status: 400 })
    }
    yield* Console.log(`verified ${result.type} ${result.deliveryId}\n${JSON.stringify(result.event, null, 2)}\n`)
    return HttpServerResponse.empty({ status: 204 })
  })
