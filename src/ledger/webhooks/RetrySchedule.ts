/** The delay before a retry: from a list, with jitter, or as the receiver requests. */

/** The longest delay that a receiver can request. */
export const retryAfterMillisMax = 86_400_000
/** The share of the delay that is added or subtracted at random, so that deliveries are not retried together. */
const jitter = 0.1
/** Seconds for a whole attempt: connection, request and response. */
export const attemptSecondsMax = 15
/** Consecutive exhausted deliveries that disable an endpoint. */
export const exhaustedMax = 10

/** Milliseconds between attempt number `attempts` and the next; undefined after the last. `random` is from 0 to 1. */
export const delayAfter = (
  delaysSeconds: ReadonlyArray<number>,
  attempts: number,
  random: number,
  retryAfterMillis = 0
): number | undefined => {
  const seconds = delaysSeconds[attempts - 1]
  if (seconds === undefined) return undefined
  const scheduled = Math.round(seconds * 1_000 * (1 - jitter + 2 * jitter * random))
  return Math.max(scheduled, Math.min(retryAfterMillis, retryAfterMillisMax))
}

/** A Retry-After header, in seconds or a date (RFC 9110, 10.2.3), as milliseconds from now; 0 if it is neither. */
export const retryAfterMillis = (header: string | undefined, now: number): number => {
  if (header === undefined) return 0
  if (/^\d+$/.test(header)) return Number(header) * 1_000
  const date = Date.parse(header)
  return Number.isNaN(date) ? 0 : Math.max(0, date - now)
}
