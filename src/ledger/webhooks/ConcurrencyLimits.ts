/**
 * The concurrency limits of deliveries from this node, one for each endpoint, so that an endpoint without responses
 * does not slow down others. A limit rises by one with each success and is halved by each failure.
 */
const limitInitial = 8
const limitMax = 32
/** From this number of concurrent deliveries on, each endpoint's limit is one, to limit sockets and memory. */
const inProgressMany = 1_024

interface EndpointLoad {
  inProgress: number
  limit: number
  /** Whether the last claim used the whole capacity, so that more deliveries are probably due. */
  hasMore: boolean
}

export interface Capacity {
  /** Deliveries that can start now, for endpoints with a load. */
  readonly known: Map<string, number>
  /** The same for any other endpoint. */
  readonly initial: number
}

export class ConcurrencyLimits {
  readonly #loads = new Map<string, EndpointLoad>()
  #inProgress = 0

  get capacity(): Capacity {
    const isCrowded = this.#inProgress >= inProgressMany
    const known = Array.from(this.#loads, ([id, { inProgress, limit }]) => {
      return [id, Math.max(0, (isCrowded ? 1 : limit) - inProgress)] as const
    })
    return { known: new Map(known), initial: isCrowded ? 1 : limitInitial }
  }

  /** Counts started deliveries by endpoint. They were claimed with this capacity. */
  begin(counts: ReadonlyMap<string, number>, capacity: Capacity): void {
    for (const [id, free] of capacity.known) {
      const load = this.#loads.get(id)
      if (load !== undefined && free > 0) load.hasMore = false
    }
    for (const [id, count] of counts) {
      const load = this.#loads.get(id) ?? { inProgress: 0, limit: limitInitial, hasMore: false }
      this.#loads.set(id, load)
      load.hasMore = count >= (capacity.known.get(id) ?? capacity.initial)
      load.inProgress += count
      this.#inProgress += count
    }
  }

  /** Counts the end of a delivery. Returns whether another claim for the endpoint is worthwhile. */
  end(id: string, succeeded: boolean): boolean {
    const load = this.#loads.get(id)!
    load.inProgress--
    this.#inProgress--
    load.limit = succeeded ? Math.min(load.limit + 1, limitMax) : Math.max(load.limit >> 1, 1)
    // A healthy endpoint without deliveries in progress needs no entry.
    if (load.inProgress === 0 && load.limit >= limitInitial) this.#loads.delete(id)
    // A claim of at least a quarter of the limit, so that a statement claims several deliveries.
    return load.hasMore && (load.limit - load.inProgress) * 4 >= load.limit
  }
}
