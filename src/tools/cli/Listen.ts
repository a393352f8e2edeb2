/** A webhook receiver for development: verifies and prints deliveries. It needs no database and no settings. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Clock, Console, Effect, Layer, Option, Redacted, Schema } from "effect"
import { Flag } from "effect/cli"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NetAddress } from "effect/net"
import { verifyWebhook } from "../../ledger/webhooks/VerifyWebhook.ts"
import { flag, untilSignal } from "./Output.ts"

export const listenFlags = {
  port: Flag.Int("port").pipe(
    Flag.withDescription("The port to listen on, on this machine."),
    Flag.withDefault(4242),
    Flag.withSchema(Schema.Number.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })))
  ),
  secret: Flag.Redacted("secret").pipe(
    Flag.withDescription("The endpoint's secret. Without it deliveries are printed but not verified."),
    Flag.optional
  ),
  json: flag("json", "Print one line of JSON for each delivery.")
}

interface Flags {
  readonly port: number
  readonly secret: Option.Option<Redacted.Redacted<string>>
  readonly json: boolean
}

/** Listens until interrupted. The response to an invalid delivery is 400, so that the sender retries. */
export const listen = Effect.fnUntraced(function* ({ json, port, secret }: Flags) {
  const { address } = yield* HttpServer.HttpServer.pipe(
    Effect.tap((server) =>
      server.serve(Option.isSome(secret) ? verify(Redacted.value(secret.value), json) : print(json))
    ),
    Effect.provide(yield* Layer.build(server(port)))
  )
  const url = NetAddress.isInetAddress(address) ? `http://127.0.0.1:${address.port}/` : ""
  yield* Console.error(
    `Listening on ${url} for deliveries; the service must run with LICENSING_WEBHOOK_ALLOW_LOCAL=true.`
  )
  if (Option.isNone(secret)) yield* Console.error("No --secret: nothing is verified.")
  return yield* untilSignal(Effect.never)
}, Effect.scoped)

const server = (port: number) =>
  NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port, gracefulShutdownTimeout: "1 second" })

const readRequest = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const body = new Uint8Array(yield* Effect.orDie(request.arrayBuffer))
  return { headers: request.headers, body, text: new TextDecoder().decode(body) }
})

const show = (json: boolean, delivery: Readonly<Record<string, unknown>>, text: string) =>
  Console.log(json ? JSON.stringify(delivery) : `${text}\n`)

const print = (json: boolean) =>
  Effect.gen(function* () {
    const { headers, text } = yield* readRequest
    const [type, id] = [headers["x-service-event-type"], headers["x-service-delivery-id"]]
    yield* show(json, { type, delivery_id: id, body: text }, `${type ?? "no delivery"} ${id ?? ""}\n${text}`)
    return HttpServerResponse.empty({ status: 204 })
  })

const verify = (secret: string, json: boolean) =>
  Effect.gen(function* () {
    const { body, headers, text } = yield* readRequest
    const nowSeconds = (yield* Clock.currentTimeMillis) / 1_000
    const result = verifyWebhook({ secret, headers, body, nowSeconds })
    if (!result.valid) {
      const id = headers["x-service-delivery-id"]
      const refused = { verified: false, reason: result.reason, delivery_id: id, body: text }
      yield* show(json, refused, `REFUSED, ${result.reason}: ${id ?? "no delivery id"}\n${text}`)
      return HttpServerResponse.empty({ status: 400 })
    }
    const { deliveryId, event, type } = result
    const verified = { verified: true, type, delivery_id: deliveryId, event }
    yield* show(json, verified, `verified ${type} ${deliveryId}\n${JSON.stringify(event, null, 2)}`)
    return HttpServerResponse.empty({ status: 204 })
  })
