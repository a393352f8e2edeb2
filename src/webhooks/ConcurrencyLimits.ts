/**
 * How many deliveries a node may have under way to each endpoint. Every endpoint has places of its own, so that one that hangs
 * takes none from another. Their number follows what the endpoint does: it rises with each success and is halved by each
 * failure, so a fast receiver is sent much at once and a dead one holds a single connection.
 */
const placesFirst = 8
const placesMax = 32
/** Deliveries under way in all from which on every endpoint has one place only: bounds sockets and memory. */
const underwayMany = 1_024

interface EndpointLoad {
  underway: number
  places: number
  /** The last look filled every free place: there is probably more to deliver. */
  hungry: boolean
}

export interface Capacity {
  /** Free places of the endpoints that something is known of. */
  readonly known: ReadonlyMap<string, number>
  /** Free places of any other one. */
  readonly first: number
}

export class ConcurrencyLimits {
  readonly #standings = new Map<string, EndpointLoad>()
  #underway = 0

  get rooms(): Capacity {
    const crowded = this.#underway >= underwayMany
    const known = Array.from(this.#standings, ([id, { places, underway }]) => {
      return [id, Math.max(0, (crowded ? 1 : places) - underway)] as const
    })
    return { known: new Map(known), first: crowded ? 1 : placesFirst }
  }

  /** Deliveries begin that were found for these rooms: how many to which endpoint. */
  begin(found: ReadonlyMap<string, number>, rooms: Capacity): void {
    for (const [id, room] of rooms.known) {
      const standing = this.#standings.get(id)
      if (standing !== undefined && room > 0) standing.hungry = false
    }
    for (const [id, count] of found) {
      const standing = this.#standings.get(id) ?? { underway: 0, places: placesFirst, hungry: false }
      this.#standings.set(id, standing)
      standing.hungry = count >= (rooms.known.get(id) ?? rooms.first)
      standing.underway += count
      this.#underway += count
    }
  }

  /** A delivery has ended. Says whether it is worth looking for more. */
  end(id: string, succeeded: boolean): boolean {
    const standing = this.#standings.get(id)!
    standing.underway--
    this.#underway--
    standing.places = succeeded ? Math.min(standing.places + 1, placesMax) : Math.max(standing.places >> 1, 1)
    // An endpoint that does well and has nothing under way is like one that was never seen.
    if (standing.underway === 0 && standing.places >= placesFirst) this.#standings.delete(id)
    // Several at a time, where several have ended.
    return standing.hungry && (standing.places - standing.underway) * 4 >= standing.places
  }
}
