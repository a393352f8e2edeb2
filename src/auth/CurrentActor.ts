/** Who acts, as events record it. Authorization sets it for a request; what no request caused is done by the system. */
import { Context } from "effect"
import type { ManagementScope } from "./Scope.ts"

export interface Actor {
  readonly actor_type: "api_key" | "license" | "oidc_subject" | "system"
  /** The API key's or license's id, an OIDC subject, or the name of the part of the service that acts. */
  readonly actor_id: string
}

/** Who a management credential stands for and what that may do. */
export interface Principal {
  readonly actor: Actor
  readonly scopes: ReadonlySet<ManagementScope>
}

export const CurrentActor = Context.Reference<Actor>("licensing/auth/CurrentActor", {
  defaultValue: () => ({ actor_type: "system", actor_id: "service" })
})
