/**
 * Counts what happened within the last minute, for many keys at once and in bounded memory. A count is kept by the second, so
 * that what left the window is known exactly to a second, and a key that was quiet for a minute has its whole allowance again.
 */
import { makeRecencyCache } from "./RecencyCache.ts"

/** Seconds that a count looks back. */
const windowSeconds = 60

/** Keys counted at once; beyond them half of all are forgotten, those that have been quiet for longest, and start anew. */
const keysMax = 50_000

interface WindowState {
  /** Whether there was room. What is refused is not counted. */
  readonly admitted: boolean
  /** How many more would be admitted now. */
  readonly remaining: number
  /** Whole seconds, rounded up, until at least one more is admitted than now. */
  readonly resetSeconds: number
}

/** The seconds in which something was counted, the oldest first, and how much in each. */
interface Counted {
  total: number
  readonly seconds: Array<number>
  readonly counts: Array<number>
}

export interface SlidingWindow {
  /** Counts one for the key, where there is room. Times may go backwards: a key whose clock did starts anew. */
  take(key: string, nowMillis: number): WindowState
  /** Keys that are counted. */
  size(): number
}

/** A window that admits at most `limit` for each key within any 59 seconds, and all of them again after 60. */
export const makeSlidingWindow = (limit: number, held: number = keysMax): SlidingWindow => {
  const keys = makeRecencyCache<Counted>(held)
  let turnedAt = 0

  const open = (key: string, second: number): Counted => {
    // What is forgotten at a turn was quiet for a window at least.
    if (second - turnedAt >= windowSeconds || second < turnedAt) {
      keys.turn()
      turnedAt = second
    }
    const known = keys.get(key)
    if (known !== undefined) return leaveBehind(known, second)
    const counted: Counted = { total: 0, seconds: [], counts: [] }
    keys.set(key, counted)
    return counted
  }

  const take = (key: string, nowMillis: number): WindowState => {
    const second = Math.floor(nowMillis / 1_000)
    const counted = open(key, second)
    const { counts, seconds } = counted
    const admitted = counted.total < limit
    if (admitted) {
      counted.total++
      const last = seconds.length - 1
      if (seconds[last] === second) counts[last] = counts[last]! + 1
      else {
        seconds.push(second)
        counts.push(1)
      }
    }
    return { admitted, remaining: limit - counted.total, resetSeconds: seconds[0]! + windowSeconds - second }
  }

  return { take, size: keys.size }
}

/** Drops what lies a window or more back. */
const leaveBehind = (counted: Counted, second: number): Counted => {
  const { counts, seconds } = counted
  if (seconds.length > 0 && seconds[seconds.length - 1]! > second) {
    seconds.length = 0
    counts.length = 0
    counted.total = 0
  }
  while (seconds.length > 0 && seconds[0]! <= second - windowSeconds) {
    seconds.shift()
    counted.total -= counts.shift()!
  }
  return counted
}
