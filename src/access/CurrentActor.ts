/** The actor that events record. Authorization sets it for a request; outside a request it is the system. */
import { Context } from "effect"
import type { ManagementScope } from "./Scope.ts"

export interface Actor {
  readonly actor_type: "api_key" | "license" | "oidc_subject" | "system"
  /** The API key's or license's id, an OIDC subject, or the name of a part of the service. */
  readonly actor_id: string
  /** The name of the API key or person. */
  readonly actor_name?: string | undefined
}

/** The owner of a management credential, with its permissions. */
export interface Principal {
  readonly actor: Actor & { readonly actor_type: "api_key" | "oidc_subject" }
  readonly name: string
  readonly scopes: ReadonlySet<ManagementScope>
  readonly expires_at: number | undefined
  readonly product_ids: ProductIds
}

/** The products that a token is limited to; undefined: all. */
export type ProductIds = ReadonlyArray<string> | undefined

/** The credential of a management request. Authorization provides it to the operation. */
export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Principal>()(
  "licensing/access/CurrentPrincipal"
) {}

export const CurrentActor = Context.Reference<Actor>("licensing/access/CurrentActor", {
  defaultValue: () => ({ actor_type: "system", actor_id: "service" })
})

/**
 * The products of the request's token. An operation with the reach `rows` returns only records of these products. Outside a
 * request there is no limit.
 */
export const CurrentProducts = Context.Reference<ProductIds>("licensing/access/CurrentProducts", {
  defaultValue: () => undefined
})
