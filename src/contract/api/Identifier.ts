/**
 * Ids: a prefix for the kind and a ULID. Rows created one after another are adjacent in an index.
 * A path id may be any text: an unknown id is "not found", even if it is malformed.
 */
import { Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"

const prefixes = {
  product: "prod",
  policy: "pol",
  feature: "feat",
  version: "ver",
  customer: "cust",
  subscription: "sub",
  order: "ord",
  license: "lic",
  device: "dev",
  lease: "lse",
  apiKey: "key",
  customField: "cfd",
  webhook: "wh",
  reportExport: "exp",
  bulkJob: "bulk",
  mail: "mail",
  portalSession: "ses",
  node: "node",
  request: "req"
} as const

type Kind = keyof typeof prefixes

export class Identifiers extends Context.Service<
  Identifiers,
  {
    /** A new id of this kind, for example `lic_01JD3Q…`. */
    make(kind: Kind): Effect.Effect<string>
  }
>()("licensing/contract/api/Identifiers") {
  static readonly layer = Layer.effect(
    Identifiers,
    Effect.gen(function* () {
      const { ulid } = yield* SecureRandom.SecureRandom
      return Identifiers.of({ make: (kind) => Effect.map(ulid, (unique) => `${prefixes[kind]}_${unique}`) })
    })
  )
}
