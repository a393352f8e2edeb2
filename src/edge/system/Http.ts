import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../Api.ts"
import { MetricsAccess } from "../../insight/ops/MetricsAccess.ts"
import { KeyRing } from "../../platform/signing/KeyRing.ts"
import { Readiness } from "./Readiness.ts"

export const SystemHttp = HttpApiBuilder.group(
  Api,
  "system",
  Effect.fn(function* (handlers) {
    const keyRing = yield* KeyRing
    return handlers.handleAll({
      listPublicKeys: () => Effect.map(keyRing.published, (items) => ({ items }))
    })
  })
)

const alive = Effect.succeed({ status: "ok" } as const)

export const ProbesHttp = HttpApiBuilder.group(
  Api,
  "probes",
  Effect.fn(function* (handlers) {
    const readiness = yield* Readiness
    const { metrics } = yield* MetricsAccess
    return handlers.handleAll({
      health: () => alive,
      healthz: () => alive,
      readyz: () => readiness.check,
      metrics: ({ request }) => metrics(request)
    })
  })
)
