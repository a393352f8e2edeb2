/** Defaults of settings that the documents for callers also state. */

/** Seconds between an attempt of a webhook delivery and the next. */
export const webhookRetrySecondsDefault: ReadonlyArray<number> = [
  5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400
]

/** Requests per minute. */
export const ratesDefault = { runtime: 3_000, activation: 120, management: 6_000, failures: 30, portal: 20 } as const
