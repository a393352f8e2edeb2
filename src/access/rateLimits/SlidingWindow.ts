/**
 * Counts events of the last minute for many keys, in bounded memory. Counts are per second, so events leave the window with a
 * precision of one second. A key without events for a minute has its full allowance again.
 */
import { makeRecencyCache } from "./RecencyCache.ts"

/** Length of the window. */
const windowSeconds = 60

/** Keys counted at the same time. Beyond this number the least recently used half is evicted and starts again from zero. */
const keysMax = 50_000

interface WindowState {
  /** Whether the event is within the limit. Refused events are not counted. */
  readonly admitted: boolean
  /** The number of further events that would be admitted now. */
  readonly remaining: number
  /** Whole seconds, rounded up, until at least one more event than now is admitted. */
  readonly resetSeconds: number
}

/** The seconds with events, the oldest first, and the number of events in each. */
interface KeyCount {
  total: number
  readonly seconds: Array<number>
  readonly counts: Array<number>
}

export interface SlidingWindow {
  /** Counts one event for the key, if the limit admits it. If the clock goes backwards, the key starts again from zero. */
  take(key: string, nowMillis: number): WindowState
  /** The number of keys with a count. */
  size(): number
}

/** A window that admits at most `limit` events per key within any 59 seconds, and all of them again after 60. */
export const makeSlidingWindow = (limit: number, entriesMax: number = keysMax): SlidingWindow => {
  const keys = makeRecencyCache<KeyCount>(entriesMax)
  let advancedAt = 0

  const countOf = (key: string, second: number): KeyCount => {
    // The evicted entries had no event for at least the length of the window.
    if (second - advancedAt >= windowSeconds || second < advancedAt) {
      keys.advance()
      advancedAt = second
    }
    const existing = keys.get(key)
    if (existing !== undefined) return dropExpired(existing, second)
    const count: KeyCount = { total: 0, seconds: [], counts: [] }
    keys.set(key, count)
    return count
  }

  const take = (key: string, nowMillis: number): WindowState => {
    const second = Math.floor(nowMillis / 1_000)
    const count = countOf(key, second)
    const { counts, seconds } = count
    const admitted = count.total < limit
    if (admitted) {
      count.total++
      const last = seconds.length - 1
      if (seconds[last] === second) counts[last] = counts[last]! + 1
      else {
        seconds.push(second)
        counts.push(1)
      }
    }
    return { admitted, remaining: limit - count.total, resetSeconds: seconds[0]! + windowSeconds - second }
  }

  return { take, size: keys.size }
}

/** Drops the seconds that have left the window. */
const dropExpired = (count: KeyCount, second: number): KeyCount => {
  const { counts, seconds } = count
  if (seconds.length > 0 && seconds[seconds.length - 1]! > second) {
    seconds.length = 0
    counts.length = 0
    count.total = 0
  }
  while (seconds.length > 0 && seconds[0]! <= second - windowSeconds) {
    seconds.shift()
    count.total -= counts.shift()!
  }
  return count
}
