/**
 * Revisions of rows that nodes cache. A revision is a random number and not a count: after a failover to a standby that
 * lags, or a restore, a count would give a lost revision a second time, and a node that remembers the lost one would
 * take its cached state for the current one.
 *
 * 52 bits, so that a revision is an exact JavaScript number, as the driver reads and compares it, and because the
 * generator behind `Random` has no more. A cached state whose revision was lost is compared once with a later one; then
 * it is dropped. So a failover that loses a million cached revisions confuses one of them with a probability of
 * 10^6 / 2^52 = 2 in 10^10.
 */
import { Effect, Random } from "effect"

const revisionsMax = 2 ** 52

/** Draws revisions for callers outside a fiber. */
export const makeRevisions = Effect.map(
  Random.Random,
  (random) => (): number => 1 + Math.floor(random.nextDoubleUnsafe() * revisionsMax)
)

/** A revision that no row had before. */
export const nextRevision = Effect.map(makeRevisions, (next) => next())
