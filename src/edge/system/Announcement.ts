/**
 * The message after the start: the addresses, the database, and the next step. The first admin token is one line on standard
 * output; it is never part of a log record.
 */
import { resolve } from "node:path"
import { Console, Effect, Layer, Option, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { NetAddress } from "effect/net"
import { Settings } from "../../platform/config/Config.ts"
import { addressOf } from "../../platform/config/DatabaseAddress.ts"
import { FirstToken } from "./FirstToken.ts"

export const layer = (format: "pretty" | "json") =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const facts = yield* collect
      const { unused } = yield* FirstToken
      if (format === "json") yield* Effect.logInfo("The service is ready.", facts)
      else yield* Console.log(["", "The licensing service is ready.", "", ...lines(facts), ""].join("\n"))
      if (Option.isNone(unused)) return
      yield* Console.log(`Admin token, shown until it is used: ${Redacted.value(unused.value)}`)
      if (format === "pretty") yield* Console.log(firstSteps(facts.api))
    })
  )

const firstSteps = (api: string) => `
Next, in another terminal (continued in README.md, "The first license"):

  TOKEN=...    # the admin token: store it
  curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
    ${api}/products -d '{"name": "Editor", "code": "editor"}'

"npx node src/main.ts doctor" checks this installation. Ctrl-C stops the service.
`

const collect = Effect.gen(function* () {
  const settings = yield* Settings
  const { address } = yield* HttpServer.HttpServer
  const origin = settings.baseUrl ?? originOf(address)
  const data = resolve(settings.dataDir)
  const database =
    settings.databaseUrl === undefined
      ? `embedded PostgreSQL in ${data}`
      : `PostgreSQL at ${addressOf(Redacted.value(settings.databaseUrl))?.name}`
  return {
    api: `${origin}/api/v1`,
    reference: `${origin}/docs`,
    database,
    ...(settings.masterKey === undefined ? { master_key: `${data}/master.key (keep a copy of it)` } : undefined),
    ...(settings.clockOffsetSeconds === 0 ? undefined : { clock: `${settings.clockOffsetSeconds} s ahead` })
  }
})

const lines = (facts: { readonly [name: string]: string }) =>
  Object.entries(facts).map(([name, value]) => `  ${(labels[name] ?? name).padEnd(13)}${value}`)

const labels: { readonly [name: string]: string } = {
  api: "API",
  reference: "Reference",
  database: "Database",
  master_key: "Master key",
  clock: "Clock"
}

/** A server that listens on all addresses is shown as localhost. */
const originOf = (address: NetAddress.SocketAddress): string => {
  if (!NetAddress.isInetAddress(address)) return NetAddress.formatSocketAddress(address)
  const host = NetAddress.isUnspecified(address.address) ? "localhost" : NetAddress.formatUrlHost(address.address)
  return `http://${host}:${address.port}`
}
