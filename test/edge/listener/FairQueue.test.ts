/** The order in which requests of the framework path are begun. */
import { EventEmitter } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { connectionOf, makeClients, makeConnections, type Pool } from "../../../src/edge/listener/Connections.ts"
import { inFairTurns, makeFairQueue } from "../../../src/edge/listener/FairQueue.ts"

/** Requests that take a millisecond each, and rounds that the test starts. */
const makeListener = () => {
  const clients = makeClients()
  const { take } = makeConnections({ clients, addressOf: (peer) => peer, maxOfClient: 0 })
  const begun: Array<string> = []
  const pending: Array<() => void> = []
  let nanos = 0n
  const queue = makeFairQueue({
    nowNanos: () => nanos,
    roundNanos: 2_000_000n,
    later: (next) => void pending.push(next)
  })
  const pool: Pool = { index: 0, inProgress: 0, max: 10, maxOfClient: 10, queue }
  const listener = inFairTurns(({ url }) => {
    begun.push(url!)
    nanos += 1_000_000n
  })
  const ask = (remoteAddress: string, url: string, destroyed = false): void => {
    const socket = Object.assign(new EventEmitter(), { remoteAddress }) as unknown as Socket
    take(socket)
    const request = { socket, url } as IncomingMessage
    const connection = connectionOf(request)!
    connection.currentClient = connection.client
    connection.currentPool = pool
    listener(request, { destroyed } as ServerResponse)
  }
  /** Starts the next round and returns the requests begun since the last. */
  const next = (): ReadonlyArray<string> => {
    pending.shift()?.()
    return begun.splice(0)
  }
  return { ask, begun, next, pending }
}

describe("Requests of the framework path", () => {
  it("are begun until a round is over, then those of other clients in turn", () => {
    const { ask, begun, next, pending } = makeListener()
    for (let index = 1; index <= 6; index++) ask("192.0.2.1", `flood ${index}`)
    ask("192.0.2.2", "probe")
    assert.deepStrictEqual(begun.splice(0), ["flood 1", "flood 2"])
    assert.deepStrictEqual(next(), ["flood 3", "probe"])
    assert.deepStrictEqual(next(), ["flood 4", "flood 5"])
    assert.deepStrictEqual(next(), ["flood 6"])
    assert.deepStrictEqual(next(), [])
    assert.isEmpty(pending)
  })

  it("are not begun if the client has disconnected", () => {
    const { ask, next } = makeListener()
    for (const url of ["1", "2"]) ask("192.0.2.1", url)
    ask("192.0.2.1", "gone", true)
    ask("192.0.2.1", "3")
    assert.deepStrictEqual(next(), ["1", "2", "3"])
  })
})
