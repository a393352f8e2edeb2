/**
 * The mail thread: composes mails and sends them over the connections that it is told to open. It ends with the thread that
 * started it.
 */
import { parentPort, workerData } from "node:worker_threads"
import { openSession, type Sender, type SmtpFailure, type SmtpSession } from "./SmtpSession.ts"
import type { SmtpOrder, SmtpReply } from "./SmtpThread.ts"

const port = parentPort!
const sender = workerData as Sender
const sessions = new Map<number, SmtpSession>()

const reply = (connection: number, failure: SmtpFailure | undefined): void =>
  port.postMessage({ connection, failure } satisfies SmtpReply)

const open = (connection: number): void => {
  const session = openSession(sender, (failure) => {
    if (failure !== undefined) sessions.delete(connection)
    reply(connection, failure)
  })
  sessions.set(connection, session)
}

port.on("message", (order: SmtpOrder) => {
  const { connection } = order
  if (order.does === "open") return open(connection)
  const session = sessions.get(connection)
  if (order.does === "send") return session?.send(order.mail, (failure) => reply(connection, failure))
  session?.[order.does]()
  sessions.delete(connection)
})
