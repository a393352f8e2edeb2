/** A TCP proxy between two processes, which a fault cuts, delays or stalls, each direction apart. */
import { connect, createServer, type Server, type Socket } from "node:net"
import { Effect } from "effect"
import { freePort } from "../../support/processes/FreePort.ts"

/** To the server, or back from it. */
export type Direction = "requests" | "responses"

export interface Link {
  /** Where clients connect. */
  readonly port: number
  /** Ends all connections; new ones are ended at once. */
  readonly cut: Effect.Effect<void>
  /** Holds what is sent in a direction, as a network that loses every packet: no end tells either side. */
  readonly stall: (...directions: ReadonlyArray<Direction>) => Effect.Effect<void>
  /** Passes everything on late, in order. */
  readonly delay: (millis: number) => Effect.Effect<void>
  /** Passes on what was held, and everything from now on. */
  readonly open: Effect.Effect<void>
  /** Ends all connections and accepts new ones: what was held is lost. */
  readonly reset: Effect.Effect<void>
  /** Ends all connections; new ones lead to another port. */
  readonly lead: (target: number) => Effect.Effect<void>
}

interface State {
  target: number
  isCut: boolean
  delayMillis: number
  readonly stalled: Set<Direction>
  /** What is held, in order. */
  held: Array<() => void>
  readonly sockets: Set<Socket>
}

export const makeLink = Effect.fnUntraced(function* (target: number) {
  const state: State = { target, isCut: false, delayMillis: 0, stalled: new Set(), held: [], sockets: new Set() }
  const port = yield* freePort
  yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const made = createServer({ noDelay: true }, (near) => accept(state, near)).listen(port, "127.0.0.1", () =>
        resume(Effect.succeed(made))
      )
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        endAll(state)
      })
  )
  return {
    port,
    cut: Effect.sync(() => {
      state.isCut = true
      endAll(state)
    }),
    stall: (...directions) =>
      Effect.sync(() => {
        for (const direction of directions) state.stalled.add(direction)
      }),
    delay: (millis) =>
      Effect.sync(() => {
        state.delayMillis = millis
      }),
    open: Effect.sync(() => {
      reopen(state)
      const { held } = state
      state.held = []
      for (const pass of held) pass()
    }),
    reset: Effect.sync(() => {
      reopen(state)
      endAll(state)
    }),
    lead: (target) =>
      Effect.sync(() => {
        state.target = target
        endAll(state)
      })
  } satisfies Link as Link
})

const reopen = (state: State) => {
  state.isCut = false
  state.delayMillis = 0
  state.stalled.clear()
}

const endAll = (state: State) => {
  state.held = []
  for (const socket of state.sockets) socket.destroy()
}

const accept = (state: State, near: Socket) => {
  if (state.isCut) return near.destroy()
  const far = connect({ port: state.target, host: "127.0.0.1", noDelay: true })
  forward(state, near, far, "requests")
  forward(state, far, near, "responses")
}

const forward = (state: State, from: Socket, to: Socket, direction: Direction) => {
  state.sockets.add(from)
  /** Now, later, or when the direction is open again; in order, because each kind of fault holds until it ends. */
  const pass = (send: () => void) => {
    if (state.stalled.has(direction)) state.held.push(send)
    else if (state.delayMillis > 0) setTimeout(send, state.delayMillis)
    else send()
  }
  from.on("data", (bytes) => pass(() => to.write(bytes)))
  from.on("error", () => {})
  from.on("close", () => {
    state.sockets.delete(from)
    pass(() => to.destroy())
  })
}
