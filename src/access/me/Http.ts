import { Api } from "../../Api.ts"
import { CurrentPrincipal } from "../CurrentActor.ts"
import { operationGroup } from "../requests/OperationGroup.ts"

export const MeHttp = operationGroup(Api, "me", (handlers) =>
  handlers.handleAll({
    get: () =>
      CurrentPrincipal.useSync(({ actor, expires_at, name, product_ids, scopes }) => ({
        kind: actor.actor_type,
        id: actor.actor_id,
        name,
        scopes: [...scopes],
        ...(product_ids !== undefined && { product_ids }),
        ...(expires_at !== undefined && { expires_at })
      }))
  })
)
