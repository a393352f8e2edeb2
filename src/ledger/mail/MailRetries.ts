/** The delays before a mail is tried again, and before the server is asked again when it cannot be reached. */

/** Seconds; the last is repeated until the mail expires. Servers that greylist accept the second or third attempt. */
const delaysSeconds = [60, 300, 900, 1_800, 3_600, 7_200, 14_400] as const
/** The share that is added or subtracted at random. */
const jitter = 0.1

/** Milliseconds between attempt number `attempts` and the next. `random` is from 0 to 1. */
export const retryDelay = (attempts: number, random: number): number => {
  const seconds = delaysSeconds[attempts - 1] ?? delaysSeconds.at(-1)!
  return Math.round(seconds * 1_000 * (1 - jitter + 2 * jitter * random))
}

/** Milliseconds without attempts after this many failed connections in a row: 5 s, 10 s, up to 5 minutes. */
export const outagePause = (failures: number): number => Math.min(5_000 * 2 ** (failures - 1), 300_000)
