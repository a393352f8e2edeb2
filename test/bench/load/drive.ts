/**
 * The driver of one side, in its own process so that its CPU time is not counted as another's. It reads its orders one
 * at a time from the parent process and answers each: create the licenses, run the load, compare the counters at the
 * end.
 *
 *   node test/bench/load/drive.ts <base url> <admin token> <connections> [<period of the consumed feature's quota>]
 */
import { randomUUID } from "node:crypto"
import { consumedFeature, each, makeSeats, managementOf, type Seat } from "./Licenses.ts"
import { type Measured, type Operation, openLoad } from "./Load.ts"

export type Order =
  | { readonly do: "prepare"; readonly operation: Operation; readonly licenses: number }
  | { readonly do: "load"; readonly operation: Operation; readonly seconds: number; readonly perSecond?: number }
  | { readonly do: "compare"; readonly operation: Operation }
  | { readonly do: "touch"; readonly operation: Operation }

export type Reply =
  | { readonly did: "prepared" | "touched" }
  | { readonly did: "loaded"; readonly measured: Measured }
  | { readonly did: "compared"; readonly miscounted: number }
  | { readonly did: "failed"; readonly reason: string }

const [base, token, connections, reset_period] = process.argv.slice(2) as [string, string, string, string?]
const run = randomUUID().slice(0, 8)
const management = await managementOf(base, token)
const prepared = new Map<
  Operation,
  { readonly seats: ReadonlyArray<Seat>; readonly load: ReturnType<typeof openLoad> }
>()

const prepare = async (operation: Operation, licenses: number): Promise<Reply> => {
  // The maximum number of seats requested at once.
  const name = `${operation.replace(" ", "-")}-${run}`
  const seats = await makeSeats(management, name, licenses, Number(connections), reset_period)
  const places = [{ base, seats }]
  const load = openLoad({ places, operation, connections: Number(connections), verify: management.verify })
  prepared.set(operation, { seats, load })
  return { did: "prepared" }
}

interface Counters {
  readonly total_consumptions: number
  readonly active_device_count: number
  readonly times_activated: number
}

/**
 * The difference between the counters and the responses: in the signed entitlement, in the license, in its device
 * count.
 */
const compare = async (operation: Operation): Promise<Reply> => {
  const { seats } = prepared.get(operation)!
  let miscounted = 0
  await each(seats.length, async (index) => {
    const seat = seats[index]!
    const license = await management.call<Counters>(`/licenses/${seat.id}`)
    const { features } = await management.runtime("/license/validate", seat, { fingerprint: seat.fingerprint })
    const { consumed } = (features as ReadonlyArray<Consumed>).find(({ code }) => code === consumedFeature)!
    const used = operation.endsWith("consume") ? seat.counted : 0
    // One more than the load's: the device that the set-up activated.
    const activated = operation === "activate" ? seat.counted + 1 : 1
    for (const [counter, answered] of [
      [consumed, used],
      [license.total_consumptions, used],
      [license.active_device_count, activated],
      [license.times_activated, activated]
    ] as const) {
      miscounted += Math.max(0, answered - counter, counter - answered - seat.unsure)
    }
  })
  if (operation === "lease") miscounted += await compareSeats(seats)
  return { did: "compared", miscounted }
}

/** The number of licenses whose floating seats are all taken at the end, with one more request. */
const filledMax = 20

/** Seats that are taken although every lease was released, and seats granted above or below the limit. */
const compareSeats = async (seats: ReadonlyArray<Seat>): Promise<number> => {
  let miscounted = 0
  await each(seats.length, async (index) => {
    miscounted += (await management.call<ReadonlyArray<object>>(`/licenses/${seats[index]!.id}/leases`)).length
  })
  const limit = Number(connections)
  for (const seat of seats.slice(0, filledMax)) {
    const fingerprints = Array.from({ length: limit + 1 }, (_, index) => `${seat.fingerprint}-${index}`)
    const checkouts = fingerprints.map((fingerprint) =>
      management.runtime("/license/floating/checkout", seat, { fingerprint }).then(
        () => 1,
        (error) => {
          if (String(error).includes("FLOATING_LIMIT_REACHED")) return 0
          throw error
        }
      )
    )
    const granted = (await Promise.all<number>(checkouts)).reduce((sum, one) => sum + one, 0)
    miscounted += Math.abs(granted - limit)
  }
  return miscounted
}

interface Consumed {
  readonly code: string
  readonly consumed: number
}

/** Uses every license once or twice, so that the service has cached each of them. */
const touch = async (operation: Operation): Promise<Reply> => {
  const { seats } = prepared.get(operation)!
  await each(seats.length, async (index) => {
    const seat = seats[index]!
    const { fingerprint } = seat
    await management.runtime("/license/validate", seat, { fingerprint })
    const usage = { feature_code: consumedFeature, event_id: "touch", amount: 1 }
    await management.runtime("/license/consume", seat, { fingerprint, ...usage })
    seat.counted++
  })
  return { did: "touched" }
}

const execute = async (order: Order): Promise<Reply> => {
  switch (order.do) {
    case "prepare":
      return prepare(order.operation, order.licenses)
    case "load":
      return { did: "loaded", measured: await prepared.get(order.operation)!.load.run(order.seconds, order.perSecond) }
    case "compare":
      return compare(order.operation)
    case "touch":
      return touch(order.operation)
  }
}

process.on("message", (order: Order) => {
  execute(order)
    .catch((error): Reply => ({ did: "failed", reason: String(error) }))
    .then((reply) => process.send?.(reply))
})
