/** Properties in the run of a mutant: fewer values, the same each time, and no search for a smaller case. */
import { configureGlobal } from "fast-check"

configureGlobal({ seed: 20300131, numRuns: 25, endOnFailure: true })
