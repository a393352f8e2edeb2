/**
 * Sends queued mails, each at least once. A pass claims due mails and sends them over a few connections. If a node crashes, its
 * leases end and the mails are sent again with the same Message-ID. Mails that were not sent in time are given up.
 */
import { Clock, Context, Effect, Layer, Random, Result } from "effect"
import { SqlClient } from "effect/sql"
import { dayMillis } from "../../contract/api/Timestamp.ts"
import { makeBatcher } from "../../platform/postgres/driver/Batcher.ts"
import { pauseFor, retryTransaction } from "../../platform/postgres/driver/Transactions.ts"
import { MasterKey } from "../../platform/signing/MasterKey.ts"
import { sendHeartbeat } from "../../platform/workers/PassHeartbeat.ts"
import { Mail } from "./Mail.ts"
import { outagePause, retryDelay } from "./MailRetries.ts"
import * as Rows from "./MailRows.ts"
import { MailTemplates } from "./MailTemplates.ts"
import type { MailContent, MailValues } from "./QueuedMail.ts"
import { type MailConnection, MailNotSent, Smtp } from "./Smtp.ts"

/** Mails claimed at once. */
const batchMax = 200
/** Connections of a node, and the mails for which one more is worth its sign-in. */
const connectionsMax = 4
const mailsPerConnection = 5
/** After each mail, on each connection. Without it the mail thread takes a core for itself, which small machines do not have to spare. */
const pauseMillis = 5
/** No mail of a claim is begun after this time. With the longest attempt that is less than the lease. */
const sendingMillisMax = 60_000
const leaseMillis = 180_000
/** Longer than the day that reports read, so that they also know the last success. */
const countsMillisMax = 30 * dayMillis
const outcomesMax = 256
/** Refusals that every mail would get, until a setting or the server is corrected. */
const reasonsForAll: ReadonlySet<string> = new Set(["sender_refused", "sign_in_refused"])

export class MailWorker extends Context.Service<
  MailWorker,
  {
    /** Sends all due mails, and removes those that were not sent in time. */
    readonly pass: Effect.Effect<void, unknown>
  }
>()("licensing/ledger/mail/MailWorker") {
  static readonly layer = Layer.effect(
    MailWorker,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { isOn } = yield* Mail
      const outages = makeOutages(sql)
      const sendAll = yield* makeSending

      const removeLate = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const late = yield* Rows.removeExpired(sql, { now, countsBefore: now - countsMillisMax, limit: batchMax })
        for (const mail of late) yield* Effect.logWarning("A mail was not sent in time and is given up.", { ...mail })
        return late.length
      })

      const sendDue = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (outages.isPaused(now)) return false
        const leasedUntil = now + leaseMillis
        const claimed = yield* retryTransaction(Rows.claimMails(sql, { now, leasedUntil, limit: batchMax }))
        if (claimed.length === 0) return false
        const failure = yield* sendAll(claimed)
        yield* failure === undefined ? outages.ended : outages.noted(failure)
        return failure === undefined && claimed.length === batchMax
      })

      const pass = Effect.gen(function* () {
        while ((yield* removeLate) === batchMax) yield* sendHeartbeat
        if (!isOn) return
        while (yield* sendDue) yield* sendHeartbeat
      })
      return MailWorker.of({ pass: Effect.withSpan(pass, "MailWorker.pass") })
    })
  )
}

/** While the server takes no mails, they wait without attempts of their own. */
const makeOutages = (sql: SqlClient.SqlClient) => {
  let failures = 0
  let until = 0
  return {
    isPaused: (now: number) => now < until,
    noted: ({ reason }: MailNotSent) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (failures === 0) yield* Effect.logError("Mail cannot be sent; retrying.", { reason })
        failures++
        until = now + outagePause(failures)
        yield* Rows.recordOutage(sql, reason, now)
      }),
    ended: Effect.suspend(() => {
      const wasOut = failures > 0
      failures = 0
      return wasOut ? Effect.logInfo("Mail is sent again.") : Effect.void
    })
  }
}

const makeSending = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { connect } = yield* Smtp
  const prepare = yield* makePrepare
  const record = yield* makeRecorder

  /** Returns whether the connection can take another mail. Fails if the server takes none. */
  const attempt = Effect.fn("MailWorker.attempt")(function* (connection: MailConnection, mail: Rows.ClaimedMail) {
    const release = Effect.ignore(Rows.releaseMails(sql, [mail]))
    const sending = Effect.flatMap(prepare(mail), connection.send)
    const result = yield* Effect.onInterrupt(Effect.result(sending), () => release)
    if (Result.isFailure(result) && reasonsForAll.has(result.failure.reason)) {
      yield* release
      return yield* result.failure
    }
    yield* Effect.uninterruptible(record(yield* outcomeOf(mail, result)))
    yield* sendHeartbeat
    return Result.isSuccess(result) || result.failure.isConnected
  })

  /** Sends waiting mails over one connection at a time. Fails if the server takes no connection or no mail. */
  const sendSome = Effect.fnUntraced(function* (waiting: Array<Rows.ClaimedMail>, until: number) {
    const inTime = Effect.map(Clock.currentTimeMillis, (now) => now < until)
    const overOneConnection = Effect.gen(function* () {
      const connection = yield* connect
      while (yield* inTime) {
        const mail = waiting.shift()
        if (mail === undefined || !(yield* attempt(connection, mail))) return
        yield* pauseFor(pauseMillis)
      }
    })
    while (waiting.length > 0 && (yield* inTime)) yield* Effect.scoped(overOneConnection)
  })

  /** Returns why the server takes no mails. Mails that were not tried are released. */
  return Effect.fnUntraced(function* (claimed: ReadonlyArray<Rows.ClaimedMail>) {
    const waiting = [...claimed]
    const until = (yield* Clock.currentTimeMillis) + sendingMillisMax
    const count = Math.min(connectionsMax, Math.ceil(claimed.length / mailsPerConnection))
    const lanes = Array.from({ length: count }, () => Effect.result(sendSome(waiting, until)))
    const results = yield* Effect.ensuring(
      Effect.all(lanes, { concurrency: count }),
      Effect.suspend(() => (waiting.length === 0 ? Effect.void : Effect.ignore(Rows.releaseMails(sql, waiting))))
    )
    // A server may take fewer connections; one is enough.
    return results.every(Result.isFailure) ? results[0]!.failure : undefined
  })
})

/** Decrypts and renders a mail. */
const makePrepare = Effect.gen(function* () {
  const masterKey = yield* MasterKey
  const templates = yield* MailTemplates

  return Effect.fnUntraced(function* (mail: Rows.ClaimedMail) {
    const bytes = yield* Effect.mapError(
      masterKey.open(mail.content_sealed, Rows.sealedFor(mail.id)),
      () => new MailNotSent({ reason: "content_unreadable", isFinal: false, isConnected: true })
    )
    const { to, values } = JSON.parse(Buffer.from(bytes).toString("utf8")) as MailContent
    const content = { to, values: { ...licenseValuesOf(mail, to.name), ...values } }
    return { ...templates.render(mail.kind, content), id: mail.id, to, created_at: mail.created_at }
  })
})

const licenseValuesOf = (mail: Rows.ClaimedMail, customer_name: string | undefined): MailValues => {
  const { license_id, license_key_last4, license_key_prefix, maintenance_expires_at, policy_name, product_name } = mail
  const values = {
    ...{ license_id, product_name, policy_name, customer_name, maintenance_expires_at },
    license_key_hint: license_id === null ? undefined : `${license_key_prefix}…${license_key_last4}`,
    expires_at: mail.license_expires_at
  }
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value != null && value !== "")) as MailValues
}

const outcomeOf = Effect.fnUntraced(function* (
  { attempts, expires_at, id, kind, leased_until, license_id }: Rows.ClaimedMail,
  result: Result.Result<void, MailNotSent>
) {
  const outcome = { id, leased_until }
  if (Result.isSuccess(result)) return { ...outcome, failure: undefined, due_at: undefined } satisfies Rows.MailOutcome
  const { isFinal, reason } = result.failure
  const due_at = (yield* Clock.currentTimeMillis) + retryDelay(attempts + 1, yield* Random.next)
  const isGivenUp = isFinal || due_at >= expires_at
  const facts = { mail: id, kind, license: license_id ?? undefined, reason }
  yield* isGivenUp
    ? Effect.logWarning("A mail cannot be delivered and is given up.", facts)
    : Effect.logDebug("A mail was not sent; retrying later.", facts)
  return { ...outcome, failure: reason, due_at: isGivenUp ? undefined : due_at } satisfies Rows.MailOutcome
})

/** Writes outcomes in batches. If that fails, the lease ends and the mails are sent again. */
const makeRecorder = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const run = Effect.fnUntraced(function* (outcomes: ReadonlyArray<Rows.MailOutcome>) {
    yield* Effect.catch(retryTransaction(Rows.recordMails(sql, outcomes, yield* Clock.currentTimeMillis)), (error) =>
      Effect.logWarning("The outcomes of mails cannot be written; the mails will be repeated.", error)
    )
    return outcomes.map(() => undefined)
  })
  return (yield* makeBatcher<Rows.MailOutcome, undefined>({
    name: "mails.record_outcomes",
    concurrency: 1,
    batchMax: outcomesMax,
    run
  })).request
})
