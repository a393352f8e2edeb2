/** When a delivery that failed is tried again: delays as data, spread a little, and what the receiver asks for. */

/** Receivers are given up on by schedule; none may put a delivery off for longer than this. */
const retryAfterMillisMax = 86_400_000
/** Retries of many deliveries that failed in the same moment spread over a tenth of the delay to both sides. */
const spread = 0.1

/**
 * Milliseconds from the end of the attempt that was the `attempts`-th to the next one; undefined where it was the last.
 * `random` is from 0 up to 1. What the receiver asks for (`retryAfterMillis`) can only make it later.
 */
export const delayAfter = (
  delaysSeconds: ReadonlyArray<number>,
  attempts: number,
  random: number,
  retryAfterMillis = 0
): number | undefined => {
  const seconds = delaysSeconds[attempts - 1]
  if (seconds === undefined) return undefined
  const scheduled = Math.round(seconds * 1_000 * (1 - spread + 2 * spread * random))
  return Math.max(scheduled, Math.min(retryAfterMillis, retryAfterMillisMax))
}

/** What a header Retry-After asks for, in seconds or as a date (RFC 9110, 10.2.3), as milliseconds from now; 0 where it is neither. */
export const retryAfterMillis = (header: string | undefined, now: number): number => {
  if (header === undefined) return 0
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000
  const date = Date.parse(header)
  return Number.isNaN(date) ? 0 : Math.max(0, date - now)
}
