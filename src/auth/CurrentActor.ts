/** The actor that events record. Authorization sets it for a request; work without a request is done by the system. */
import { Context } from "effect"
import type { ManagementScope } from "./Scope.ts"

export interface Actor {
  readonly actor_type: "api_key" | "license" | "oidc_subject" | "system"
  /** The API key's or license's id, an OIDC subject, or the name of a part of the service. */
  readonly actor_id: string
}

/** The actor of a management credential, and its scopes. */
export interface Principal {
  readonly actor: Actor
  readonly scopes: ReadonlySet<ManagementScope>
}

export const CurrentActor = Context.Reference<Actor>("licensing/auth/CurrentActor", {
  defaultValue: () => ({ actor_type: "system", actor_id: "service" })
})
