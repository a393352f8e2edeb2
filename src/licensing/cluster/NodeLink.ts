/**
 * Connections between nodes: TLS 1.2 with a pre-shared key that is derived from the master key. Both sides prove that they have it,
 * and no other process can read or write a byte. There is no certificate, and nothing is parsed before the handshake is complete.
 * During a rotation of the master key a node accepts both keys, and dials with the one that encrypts.
 */
import { connect, createServer, type TLSSocket } from "node:tls"
import { Effect, type Scope } from "effect"
import type { NodeAddress } from "../../platform/config/Setting.ts"
import type { MasterKey } from "../../platform/signing/MasterKey.ts"
import { encodeFrames, type FromOwner, frameReader, type ToOwner } from "./Wire.ts"

/** With forward secrecy: who learns the master key later cannot read what was recorded. */
const tls = { ciphers: "ECDHE-PSK-CHACHA20-POLY1305", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const
const purpose = "cluster"
/** From a connection's beginning to the end of its handshake. */
const handshakeMillisMax = 2_000
const keepAliveMillis = 10_000
/** Far more than nodes that could share a database. */
const linksMax = 256

export interface Link<Out extends ToOwner | FromOwner> {
  /** Sends all but a single command or outcome that is too large, whose id it passes to `onTooLarge`. */
  send(message: Out, onTooLarge?: (id: number) => void): void
  close(): void
  /** Bytes that wait for the other side to read. */
  backlog(): number
}

interface LinkEvents {
  /** The text of a frame. */
  onText(text: string): void
  /** Called once, also if the other node closes the connection. */
  onClose(): void
}

const linkOver = <Out extends ToOwner | FromOwner>(socket: TLSSocket): Link<Out> => ({
  send: (message, onTooLarge) => {
    for (const frame of encodeFrames(message, onTooLarge)) socket.write(frame)
  },
  close: () => void socket.destroy(),
  backlog: () => socket.writableLength
})

const receive = (socket: TLSSocket, { onClose, onText }: LinkEvents): void => {
  const read = frameReader(onText)
  socket.setNoDelay(true)
  socket.setKeepAlive(true, keepAliveMillis)
  socket.on("data", (bytes: Buffer) => {
    if (!read(bytes)) socket.destroy()
  })
  socket.on("close", onClose)
}

/** Accepts links until the scope ends. Fails if the address cannot be listened on. */
export const listen = (
  { host, port }: NodeAddress,
  masterKey: MasterKey["Service"],
  onLink: (link: Link<FromOwner>) => LinkEvents
): Effect.Effect<void, Error, Scope.Scope> => {
  const sockets = new Set<TLSSocket>()
  const server = createServer({
    ...tls,
    handshakeTimeout: handshakeMillisMax,
    pskCallback: (_, identity) => masterKey.derive(purpose, identity)?.secret ?? null
  })
  server.maxConnections = linksMax
  server.on("secureConnection", (socket) => {
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
    // The close event follows.
    socket.on("error", () => {})
    receive(socket, onLink(linkOver(socket)))
  })
  // A caller without the key, or one that does not complete its handshake.
  server.on("tlsClientError", (_, socket) => void socket.destroy())
  const opened = Effect.callback<void, Error>((resume) => {
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen(port, host, () => resume(Effect.void))
  })
  return Effect.acquireRelease(opened, () =>
    Effect.sync(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })
  )
}

/** Opens a link. `onClose` follows if that fails. */
export const dial = (
  { host, port }: NodeAddress,
  masterKey: MasterKey["Service"],
  events: LinkEvents
): Link<ToOwner> => {
  const { keyId, secret } = masterKey.derive(purpose)!
  const socket = connect({
    ...tls,
    host,
    port,
    pskCallback: () => ({ identity: keyId, psk: secret }),
    // There is no certificate: the key proves who the other side is.
    checkServerIdentity: () => undefined
  })
  socket.setTimeout(handshakeMillisMax, () => socket.destroy())
  socket.once("secureConnect", () => socket.setTimeout(0))
  socket.on("error", () => {})
  receive(socket, events)
  return linkOver(socket)
}
