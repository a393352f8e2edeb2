/** The limits of a license: its own, otherwise its policy's. */
import type { License } from "./License.ts"

export const limitNames = [
  "max_activations",
  "max_container_instances",
  "max_floating_users",
  "max_transfers",
  "offline_grace_days",
  "self_deactivations_per_month"
] as const

export interface Limits {
  readonly max_activations: number
  readonly max_container_instances?: number | undefined
  readonly max_floating_users?: number | undefined
  readonly max_transfers: number
  readonly offline_grace_days: number
  readonly self_deactivations_per_month: number
}

export type LimitName = (typeof limitNames)[number]

/** The limits of one license; absent = the policy's. */
export type OwnLimits = { readonly [K in LimitName]?: Limits[K] | undefined }

/** For most licenses, which have no own limits, the result is the policy itself, which costs no memory. */
export const limitsOf = (own: OwnLimits, policy: Limits): Limits =>
  limitNames.every((name) => own[name] === undefined)
    ? policy
    : {
        max_activations: own.max_activations ?? policy.max_activations,
        max_container_instances: own.max_container_instances ?? policy.max_container_instances,
        max_floating_users: own.max_floating_users ?? policy.max_floating_users,
        max_transfers: own.max_transfers ?? policy.max_transfers,
        offline_grace_days: own.offline_grace_days ?? policy.offline_grace_days,
        self_deactivations_per_month: own.self_deactivations_per_month ?? policy.self_deactivations_per_month
      }

/** The limits that are set, as responses show them. */
export const shownLimits = (limits: Limits) =>
  Object.fromEntries(
    limitNames.flatMap((name) => (limits[name] === undefined ? [] : [[name, limits[name]]]))
  ) as unknown as License["limits"]
