import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { MetricsAccess } from "../../insight/ops/MetricsAccess.ts"
import { KeyRing } from "../../platform/signing/KeyRing.ts"
import { Readiness } from "./Readiness.ts"

export const SystemHttp = operationGroup(
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

export const ProbesHttp = operationGroup(
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
