/**
 * The vectors of `schema/vectors/hostile.json`: responses and offline envelopes that no service sends. A client refuses each with a
 * verdict, and never with a crash.
 */
import type { Json } from "../../src/contract/api/CanonicalJson.ts"
import { algorithm } from "../../src/platform/signing/SigningKey.ts"
import { hostileEnvelopes, licenseKey } from "./hostileEnvelopes.ts"
import { type Hostile, hostileResponses, type Input } from "./hostileResponses.ts"
import { active, base64, expected, type Members } from "./responseVectors.ts"

const chunks = (input: Input): Json =>
  (typeof input === "string" ? [[input, 1] as const] : input).map(([bytes, times]) => ({
    base64: base64(Buffer.from(bytes)),
    times
  }))

export const vectorsOf = (list: ReadonlyArray<Hostile>, member: string, shared?: Members): ReadonlyArray<Members> =>
  list.map(({ expected: own, input, name, rule }) => ({
    name,
    [member]: chunks(input),
    ...(own || shared ? { expected: { ...shared, ...own } } : undefined),
    verdict: rule === undefined ? "believe" : "distrust",
    ...(rule === undefined ? undefined : { rule })
  }))

export const hostile = (): Json => ({
  description:
    "Inputs that no service sends. A client gives each its verdict and never crashes. An input is the concatenation of its chunks, each the bytes of `base64`, `times` times. `expected`, `verdict` and `rule` as in responses.json. What is not one JSON object of at most 1 MiB in UTF-8, nested at most 32 levels and without a name twice in the envelope or in its signature breaks the rule signature. An offline envelope that does not open breaks the rule envelope, which comes before all others; what it opens to is judged as a response.",
  keys: [{ kid: active.kid, algorithm, public_key: base64(active.publicKey) }],
  expected,
  responses: vectorsOf(hostileResponses, "body"),
  license_key: licenseKey,
  envelopes: vectorsOf(hostileEnvelopes, "envelope", { kind: "offline", nonce: null })
})
