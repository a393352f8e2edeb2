/** Many random requests to every operation: FUZZ_RUNS bodies for each (20 unless given), and a fifth as many for each parameter. */
import { countOf } from "../support/rules/Counts.ts"
import { fuzzBodies, fuzzQueries } from "./cases/Fuzz.ts"

const runs = countOf("FUZZ_RUNS", 20)

fuzzBodies(runs)
fuzzQueries(Math.ceil(runs / 5))
