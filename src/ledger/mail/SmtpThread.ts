/**
 * Talks to the mail server on a thread of its own: composing a mail and its dozen reads and writes take two to three milliseconds,
 * which requests would wait for. The thread starts with the first connection. If it ends, its connections have failed, and the next
 * one starts another.
 */
import { Worker } from "node:worker_threads"
import { Effect, FiberSet, type Scope } from "effect"
import type { OutgoingMail, Sender, SmtpFailure } from "./SmtpSession.ts"

export type SmtpOrder =
  | { readonly does: "open" | "end" | "drop"; readonly connection: number }
  | { readonly does: "send"; readonly connection: number; readonly mail: OutgoingMail }

/** The answer to `open` or `send`: undefined, or why it failed. */
export interface SmtpReply {
  readonly connection: number
  readonly failure: SmtpFailure | undefined
}

export interface SmtpConnection {
  /** One mail at a time. An interrupted one closes the connection. */
  send(mail: OutgoingMail): Effect.Effect<void, SmtpFailure>
}

// The file's own extension: the package has JavaScript.
const workerScript = new URL(`./SmtpWorker${import.meta.url.slice(-3)}`, import.meta.url)

// A few mails and connections at a time.
const resourceLimits = { maxOldGenerationSizeMb: 64 }

/** Connects and signs in; the connection is closed with its scope. */
export type Connect = Effect.Effect<SmtpConnection, SmtpFailure, Scope.Scope>

export const makeSmtpThread = Effect.fnUntraced(function* (
  sender: Sender,
  script = workerScript
): Effect.fn.Return<Connect, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never>()
  const waiting = new Map<number, (failure: SmtpFailure | undefined) => void>()
  let worker: Worker | undefined
  let connections = 0

  const start = (): Worker => {
    const started = new Worker(script, { name: "mail", resourceLimits, workerData: sender })
    const onEnd = (cause: NodeJS.ErrnoException | number) => {
      if (worker !== started) return
      worker = undefined
      // Without the message of an error, which may contain what a mail says.
      const error = typeof cause === "number" ? cause : (cause.code ?? cause.name)
      fork(Effect.logError("The mail thread has ended; the next connection starts another one.", { error }))
      // A copy: a fiber that continues at once may open the next connection.
      for (const resume of [...waiting.values()]) resume(threadEnded)
    }
    started.on("message", ({ connection, failure }: SmtpReply) => waiting.get(connection)?.(failure))
    started.on("error", onEnd)
    started.on("exit", onEnd)
    started.unref()
    return started
  }
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      const ending = worker
      worker = undefined
      return ending === undefined ? Effect.void : Effect.promise(() => ending.terminate())
    })
  )

  /** Waits for the answer. An interruption drops the connection. */
  const answer = (order: SmtpOrder & { readonly does: "open" | "send" }) =>
    Effect.callback<void, SmtpFailure>((resume) => {
      if (worker === undefined) return resume(Effect.fail(threadEnded))
      const { connection } = order
      waiting.set(connection, (failure) => {
        waiting.delete(connection)
        resume(failure === undefined ? Effect.void : Effect.fail(failure))
      })
      worker.postMessage(order)
      return Effect.sync(() => {
        waiting.delete(connection)
        worker?.postMessage({ does: "drop", connection } satisfies SmtpOrder)
      })
    })

  return Effect.acquireRelease(
    Effect.suspend(() => {
      worker ??= start()
      const connection = ++connections
      return Effect.as(answer({ does: "open", connection }), connection)
    }),
    (connection) => Effect.sync(() => worker?.postMessage({ does: "end", connection } satisfies SmtpOrder)),
    { interruptible: true }
  ).pipe(Effect.map((connection): SmtpConnection => ({ send: (mail) => answer({ does: "send", connection, mail }) })))
})

const threadEnded: SmtpFailure = { reason: "connection_failed", isFinal: false, isConnected: false }
