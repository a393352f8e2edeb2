/** The actor that events record. Authorization sets it for a request; work without a request is done by the system. */
import { Context } from "effect"
import type { ManagementScope } from "./Scope.ts"

export interface Actor {
  readonly actor_type: "api_key" | "license" | "oidc_subject" | "system"
  /** The API key's or license's id, an OIDC subject, or the name of a part of the service. */
  readonly actor_id: string
}

/** Who a management credential stands for, and what it may do. */
export interface Principal {
  readonly actor: Actor & { readonly actor_type: "api_key" | "oidc_subject" }
  readonly name: string
  readonly scopes: ReadonlySet<ManagementScope>
  readonly expires_at: number | undefined
  readonly product_ids: ProductIds
}

/** The products that a token is for; undefined: all. */
export type ProductIds = ReadonlyArray<string> | undefined

/** The credential of a management request. Authorization provides it to the operation. */
export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Principal>()(
  "licensing/access/CurrentPrincipal"
) {}

export const CurrentActor = Context.Reference<Actor>("licensing/access/CurrentActor", {
  defaultValue: () => ({ actor_type: "system", actor_id: "service" })
})

/**
 * The products of the request's token. An operation that reaches `rows` answers only with what belongs to them. Work
 * without a request is for all products.
 */
export const CurrentProducts = Context.Reference<ProductIds>("licensing/access/CurrentProducts", {
  defaultValue: () => undefined
})
