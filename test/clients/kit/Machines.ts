/**
 * Machines with the application kit: each has its own clock, timers, network and store, which tests move, break and edit. `pass`
 * moves the service's clock and the machine's together.
 */
import { Effect } from "effect"
import {
  type KitOptions,
  LicenseKit,
  type Store,
  type TrustedKey,
  type Verdict
} from "../../../src/clients/kit/LicenseKit.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

interface Timer {
  readonly at: number
  readonly callback: () => void
}

class Machine {
  /** How far this machine's clock is from the test's. */
  offsetMillis = 0
  isOnline = true
  /** Delays a request of this operation. */
  hold: (operation: string) => Promise<void> = async () => {}
  /** Changes each response before it arrives. */
  alter: (response: Response) => Response | Promise<Response> = (response) => response
  /** The operations that were asked, in order. */
  readonly asked: Array<string> = []
  stored: string | undefined
  store: Store = {
    read: () => this.stored,
    write: (text) => {
      this.stored = text
    }
  }
  readonly verdicts: Array<string> = []
  readonly #timers = new Set<Timer>()
  #random = 0
  readonly options: KitOptions

  constructor(options: Omit<KitOptions, "store">) {
    this.options = {
      ...options,
      store: { read: () => this.store.read(), write: (text) => this.store.write(text) },
      onVerdict: ({ decision, reason }) => this.verdicts.push(`${decision} ${reason}`),
      platform: {
        now: () => this.now(),
        fetch: async (url, request) => {
          const operation = url.replace(/.*\/api\/v1\/(license\/)?/, "")
          this.asked.push(operation)
          await this.hold(operation)
          if (!this.isOnline) throw new TypeError("fetch failed")
          return this.alter(await fetch(url, request))
        },
        after: (millis, callback) => {
          const timer = { at: this.now() + millis, callback }
          this.#timers.add(timer)
          return () => this.#timers.delete(timer)
        },
        randomBytes: (count) => Uint8Array.from({ length: count }, () => (this.#random = (this.#random * 5 + 7) % 251))
      }
    }
  }

  now(): number {
    return Date.now() + this.offsetMillis
  }

  open(more: Partial<KitOptions> = {}): Promise<LicenseKit> {
    return LicenseKit.open({ ...this.options, ...more })
  }

  get timers(): number {
    return this.#timers.size
  }

  /** Runs the timers that are due. */
  fire(): void {
    for (const timer of [...this.#timers]) {
      if (timer.at > this.now()) continue
      this.#timers.delete(timer)
      timer.callback()
    }
  }
}

/** The end of a turn of the event loop: what was resolved has gone on. */
export const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

export const said = ({ decision, reason }: Verdict): string => `${decision} ${reason}`

export const minutes = 60
export const hours = 3_600
export const days = 86_400

/** A license, and machines that use it. */
export const licensed = Effect.fnUntraced(function* (
  policy: Parameters<typeof issue>[0] = {},
  given: Parameters<typeof issue>[1] = {}
) {
  const { advance, baseUrl, client } = yield* TestServer
  const license = yield* issue(policy, given)
  const { code } = yield* client.products.get({ params: { id: license.product_id } })
  const keys = (yield* client.system.listPublicKeys()).items as ReadonlyArray<TrustedKey>
  const now = Date.parse(
    ((yield* Effect.promise(() => fetch(`${baseUrl}/health`).then((response) => response.json()))) as Health).meta
      .timestamp
  )
  const machineOf = (fingerprint: string, more: Partial<KitOptions> = {}) => {
    const machine = new Machine({ baseUrl, productCode: code, keys, binding: { fingerprint }, ...more })
    machine.offsetMillis = machines[0]?.offsetMillis ?? now - Date.now()
    machines.push(machine)
    return machine
  }
  const machines: Array<Machine> = []
  const machine = machineOf("machine")
  /** Time passes; no timer runs, as while the machines sleep. */
  const pass = (seconds: number) =>
    Effect.tap(advance(seconds), () =>
      Effect.sync(() => {
        for (const each of machines) each.offsetMillis += seconds * 1_000
      })
    )
  /** Time passes by the minute, and what is due is done. */
  const live = Effect.fnUntraced(function* (kit: LicenseKit, seconds: number, step = minutes) {
    for (let passed = 0; passed < seconds; passed += step) {
      yield* pass(step)
      const before = machine.asked.length
      machine.fire()
      yield* turn
      // The timer has sent the request already; `wake` only waits for its answer.
      if (machine.asked.length > before) yield* Effect.promise(() => kit.wake())
    }
  })
  const kit = yield* Effect.promise(() => machine.open())
  return { client, kit, keys, license, live, machine, machineOf, pass }
})

interface Health {
  readonly meta: { readonly timestamp: string }
}
