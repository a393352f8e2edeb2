/**
 * Revisions of rows that nodes cache. A revision is a random number, not a count. After a restore, or a failover to a standby that
 * lags, a count would assign a lost revision again, and a node with a cached state of the lost revision would accept it as current.
 *
 * A revision has 52 bits: it is an exact JavaScript number, and the generator behind `Random` has no more bits. A cached state with a
 * lost revision is compared once with a later revision and then dropped. So a failover that loses a million cached revisions
 * confuses one of them with a probability of 10^6 / 2^52 = 2 in 10^10.
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
