/** A mail server in its own process. It refuses connections until it is opened, and counts the mails that it accepts. */
import type { AddressInfo } from "node:net"
import { SMTPServer } from "smtp-server"

export type MailOrder =
  | { readonly do: "listen" }
  /** Accepts mails from now on. Answers when the first one has come. */
  | { readonly do: "open" }
  /** Answers when so many recipients have a mail, or at the latest after so long. */
  | { readonly do: "await"; readonly recipients: number; readonly secondsMax: number }

export type MailReply =
  | { readonly did: "listening"; readonly port: number }
  | { readonly did: "opened" }
  | {
      readonly did: "received"
      readonly recipients: number
      readonly mails: number
      /** From the first mail to the last one. */
      readonly seconds: number
    }

const recipients = new Set<string>()
let [mails, firstAt, lastAt, isOpen] = [0, 0, 0, false]
let wake = () => {}

const server = new SMTPServer({
  authOptional: true,
  hideSTARTTLS: true,
  disableReverseLookup: true,
  logger: false,
  onConnect: (_, done) => done(isOpen ? undefined : Object.assign(new Error("closed"), { responseCode: 421 })),
  onData: (stream, { envelope }, done) => {
    stream.resume()
    stream.on("end", () => {
      lastAt = performance.now()
      if (mails++ === 0) firstAt = lastAt
      recipients.add(envelope.rcptTo[0]!.address)
      done()
      wake()
    })
  }
})
server.on("error", () => {})

const until = (isSo: () => boolean, secondsMax = 600) =>
  new Promise<void>((resolve) => {
    const patience = setTimeout(resolve, secondsMax * 1_000)
    wake = () => {
      if (!isSo()) return
      clearTimeout(patience)
      resolve()
    }
    wake()
  })

const execute = async (order: MailOrder): Promise<MailReply> => {
  switch (order.do) {
    case "listen":
      await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
      return { did: "listening", port: (server.server.address() as AddressInfo).port }
    case "open":
      isOpen = true
      await until(() => mails > 0)
      return { did: "opened" }
    case "await":
      await until(() => recipients.size >= order.recipients, order.secondsMax)
      return { did: "received", recipients: recipients.size, mails, seconds: (lastAt - firstAt) / 1_000 }
  }
}

process.on("message", (order: MailOrder) => {
  execute(order).then((reply) => process.send?.(reply))
})
