// Chooses the server among the hosts of a database's address. What must stay true: with `target_session_attrs`, connections last
// only while their server matches it; when another server takes over, all connections to the previous one end at once.
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import type { ErrorFields } from "@effect/sql-pg/PgProtocol"
import { Effect, Predicate, Redacted, Schedule } from "effect"
import { SqlError } from "effect/sql"
import type { Address, Host, WantedServer } from "../../config/DatabaseAddress.ts"
import { asConnectionError } from "./Session.ts"
import { connector } from "./Socket.ts"

/** The properties of a server. */
interface ServerFacts {
  readonly version: number
  readonly encoding: string
  readonly takesWrites: boolean
}

export interface Hosts {
  /** The URL of the current host, for new connections. */
  readonly url: () => Redacted.Redacted<string>
  /** Opens a socket to that host. */
  readonly stream: () => Duplex
  /** Queries the hosts in their order and switches to the first one that fits. Fails if none does. */
  readonly choose: Effect.Effect<ServerFacts, SqlError.SqlError>
  /** Queries the current host twice a second, and chooses again if it does not answer or does not fit. Never ends. */
  readonly follow: Effect.Effect<never>
  /** Whether the current host may change. */
  readonly isFollowed: boolean
}

/** The options that all connections share. */
export type ConnectionOptions = Omit<PgClient.PgPoolConfig, "url" | "stream">

const askEvery = "500 millis"
const chooseEvery = "200 millis"
// Limits for one of several hosts: a missing host must not delay the next one.
const connectMillis = 2_000
const answerMillis = 2_000

/** `silenceMillis` is the limit of the connections that `stream` opens. */
export const makeHosts = (address: Address, options: ConnectionOptions, silenceMillis: number): Hosts => {
  const { hosts, wanted } = address
  const isFollowed = hosts.length > 1 || wanted !== "any"
  const sockets = new Map<Socket, Host>()
  let current: Host | undefined = isFollowed ? undefined : hosts[0]

  const use = (host: Host | undefined) => {
    if (host === current) return
    current = host
    for (const [socket, of] of sockets) if (of !== host) socket.destroy(noneFits(address))
  }
  const stream = () => {
    const host = current
    if (host === undefined) return refusedStream(noneFits(address))
    if (!isFollowed) return connector(host, silenceMillis)()
    const opened = (socket: Socket) => {
      sockets.set(socket, host)
      socket.once("close", () => sockets.delete(socket))
    }
    return connector(host, silenceMillis, { opened })()
  }

  const connect = (host: Host) =>
    connectTo(
      host,
      options,
      isFollowed ? connector(host, answerMillis, { connectMillis }) : connector(host, silenceMillis)
    )
  const choose = Effect.gen(function* () {
    const failures: Array<readonly [Host, SqlError.SqlError]> = []
    // The previous host comes last, because it has just failed.
    const former = current
    const order =
      former === undefined || hosts.length === 1 ? hosts : [...hosts.filter((host) => host !== former), former]
    for (const host of order) {
      const asked = yield* Effect.result(Effect.scoped(Effect.flatMap(connect(host), ask(wanted))))
      if (asked._tag === "Success") {
        use(host)
        return asked.success
      }
      failures.push([host, asked.failure])
    }
    // A silent host may only be busy: its connections stay until another host fits.
    if (isFollowed && !failures.some(([host, error]) => host === former && isSilent(error))) use(undefined)
    return yield* failureOf(failures)
  })

  const watch = Effect.gen(function* () {
    const host = current
    if (host === undefined) return
    const connection = yield* connect(host)
    yield* Effect.repeat(ask(wanted)(connection), Schedule.spaced(askEvery))
  }).pipe(Effect.scoped, Effect.ignore)

  const follow = Effect.gen(function* () {
    yield* watch
    const former = current
    yield* choose.pipe(
      Effect.tapError((error) =>
        Effect.logWarning(`No host of ${address.name} can be used; retrying: ${reasonOf(error)}`)
      ),
      Effect.catch(() => Effect.retry(choose, Schedule.spaced(chooseEvery))),
      Effect.orDie
    )
    if (current !== former) yield* Effect.logInfo(`Switched to the database at ${current?.name}.`)
  }).pipe(Effect.forever)

  return { url: () => Redacted.make((current ?? hosts[0]).url), stream, choose, follow, isFollowed }
}

/** The innermost message, because the driver's own message is only "Failed to connect". */
export const reasonOf = ({ reason }: SqlError.SqlError): string =>
  Predicate.hasProperty(reason.cause, "message") && reason.cause.message
    ? String(reason.cause.message)
    : (reason.message ?? reason._tag)

const connectionError = (cause: Error) =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause, message: cause.message, operation: "connect" })
  })

/** An error with a code, like the system's error for an unreachable host. */
const withCode = (message: string) => Object.assign(new Error(message), { code: "EUNFIT" })
const noneFits = ({ name }: Address) => withCode(`No host of ${name} can be used now`)

/** A standby, or a server whose default is read-only. */
export const takesNoWrites = connectionError(withCode("it takes no writes"))

/** A stream that fails as soon as it is used. */
const refusedStream = (error: Error): Duplex =>
  new Duplex({ read: () => {}, write: (_, __, done) => done() }).destroy(error)

/** Recognizes PostgreSQL by its first bytes: S, N or an error after a request for TLS, otherwise a startup message. */
const isPostgres = (bytes: Uint8Array, tls: boolean): boolean => {
  const first = String.fromCharCode(bytes[0] ?? 0)
  return tls ? first === "E" || (bytes.length === 1 && "SN".includes(first)) : "REvN".includes(first)
}
const notPostgres = new SqlError.SqlError({
  reason: new SqlError.UnknownError({ cause: new Error("The server at this address is not PostgreSQL") })
})

/** Opens a connection. Servers other than PostgreSQL are detected by their first bytes, because they may never answer further. */
const connectTo = (host: Host, options: ConnectionOptions, open: () => Duplex) =>
  Effect.suspend(() => {
    let foreign = false
    const stream = () =>
      open().once("data", function (this: Duplex, bytes: Uint8Array) {
        foreign = !isPostgres(bytes, host.tls)
        if (foreign) this.destroy()
      })
    return Effect.mapError(PgConnection.make({ ...options, url: Redacted.make(host.url), stream }), (error) =>
      foreign ? notPostgres : asConnectionError(error)
    )
  })

/** Reads a server's properties. Fails if it does not fit. */
const ask = (wanted: WantedServer) =>
  Effect.fnUntraced(function* (connection: PgConnection.PgConnection) {
    const [row = []] = yield* Effect.mapError(connection.queryValues(factsQuery), asConnectionError)
    const [version, encoding, isReadOnly, isStandby] = row
    const unfit = unfitness[wanted](isReadOnly === true, isStandby === true)
    if (unfit !== undefined) return yield* connectionError(withCode(unfit))
    return {
      version: Number(version),
      encoding: String(encoding),
      takesWrites: isReadOnly === false
    } satisfies ServerFacts
  })

const factsQuery = `SELECT current_setting('server_version_num')::int4 / 10000, current_setting('server_encoding'),
  current_setting('transaction_read_only')::bool, pg_is_in_recovery()`

const unfitness: Record<WantedServer, (isReadOnly: boolean, isStandby: boolean) => string | undefined> = {
  any: () => undefined,
  "read-write": (isReadOnly) => (isReadOnly ? "it takes no writes" : undefined),
  "read-only": (isReadOnly) => (isReadOnly ? undefined : "it takes writes"),
  primary: (_, isStandby) => (isStandby ? "it is a standby" : undefined),
  standby: (_, isStandby) => (isStandby ? undefined : "it is the primary")
}

const isSilent = ({ reason: { cause } }: SqlError.SqlError): boolean =>
  Predicate.hasProperty(cause, "code") && cause.code === "ETIMEDOUT"

const networkError = /^(EAI_AGAIN|E(?!PROTO$)[A-Z0-9]+)$/

/** A pooler in front of the server rejects the startup parameters of the service. */
const protocolViolation = "08P01"

/** The server has no disk space left, which it needs for a new session. */
const diskFull = "53100"

/** Whether a retry may succeed: nothing listens at the address, or the server is starting, stopping or full. */
export const isTransient = ({ reason: { _tag, cause, message } }: SqlError.SqlError): boolean =>
  (Predicate.hasProperty(cause, "code") && cause.code === diskFull) ||
  (_tag === "ConnectionError" &&
    ((Predicate.hasProperty(cause, "severity") && (cause as ErrorFields).code !== protocolViolation) ||
      (Predicate.hasProperty(cause, "code") && networkError.test(String(cause.code))) ||
      message === "PgConnection: Connection closed during startup"))

/** The only failure, or one that names all hosts. */
const failureOf = (failures: ReadonlyArray<readonly [Host, SqlError.SqlError]>): SqlError.SqlError => {
  const [first] = failures
  if (failures.length === 1 && first !== undefined) return first[1]
  const reasons = failures.map(([{ host, port }, error]) => `${host}:${port}: ${reasonOf(error)}`).join("; ")
  return connectionError(failures.every(([, error]) => isTransient(error)) ? withCode(reasons) : new Error(reasons))
}
