/**
 * The features that come with policies. Every change raises the policy's revision, so that no license is moved to the
 * policy with features that it no longer has. The policy's lock serializes changes with the creation of licenses.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { limitDefault, newestFirst, type Page, type PageRequest } from "../../contract/api/Paging.ts"
import { changesOf } from "../../ledger/events/Changes.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { instant, int8, json } from "../../platform/postgres/driver/Parameters.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import { after, constraints, decodeRows, transaction } from "../../platform/postgres/queries/Sql.ts"
import { PolicyFeature, type PolicyFeatureSet, policyFeaturesMax } from "./PolicyFeature.ts"
import { allowanceFault, allowanceNames } from "./ResetPeriod.ts"

const decodeFeatures = decodeRows(PolicyFeature)

type Input = typeof PolicyFeatureSet.Type

export class PolicyFeatures extends Context.Service<
  PolicyFeatures,
  {
    list(policyId: string, request: PageRequest): Effect.Effect<Page<PolicyFeature>, Refusal<"NOT_FOUND">>
    set(
      policyId: string,
      featureId: string,
      input: Input
    ): Effect.Effect<PolicyFeature, Refusal<"NOT_FOUND" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR">>
    delete(policyId: string, featureId: string): Effect.Effect<void, Refusal<"NOT_FOUND">>
  }
>()("licensing/vendor/policies/PolicyFeatures") {
  static readonly layer = Layer.effect(
    PolicyFeatures,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const events = yield* EventLog
      const inTransaction = transaction(sql)

      const list = Effect.fn("PolicyFeatures.list")(
        function* (policyId: string, { limit = limitDefault, cursor }: PageRequest) {
          const [policy] = yield* sql`SELECT id FROM policies WHERE id = ${policyId}`
          if (policy === undefined) return yield* unknownPolicy(policyId)
          const rows = yield* decodeFeatures(sql`
            SELECT * FROM (
              SELECT ${sql.literal(columns)}, pf.feature_id AS id
              FROM policy_features pf JOIN features f ON f.id = pf.feature_id WHERE pf.policy_id = ${policyId}
            ) AS listed WHERE ${after(sql, cursor)} ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`)
          const items = rows.slice(0, limit)
          const last = items.at(-1)
          return rows.length > limit && last !== undefined
            ? { items, next: { sort: newestFirst, value: String(last.created_at), id: last.feature_id } }
            : { items }
        },
        Effect.catchTag("SqlError", Effect.die)
      )

      /** Locks the policy, and the feature's code, which events contain. */
      const locked = Effect.fnUntraced(function* (policyId: string, featureId: string) {
        const [policy] = yield* sql<{ readonly product_id: string }>`
          SELECT product_id FROM policies WHERE id = ${policyId} FOR UPDATE`
        if (policy === undefined) return yield* unknownPolicy(policyId)
        const [entry] = yield* decodeFeatures(sql`
          SELECT ${sql.literal(columns)} FROM policy_features pf JOIN features f ON f.id = pf.feature_id
          WHERE pf.policy_id = ${policyId} AND pf.feature_id = ${featureId} FOR KEY SHARE OF f`)
        return { ...policy, entry }
      })

      const record = Effect.fnUntraced(function* (
        policyId: string,
        code: string,
        entries: { readonly old: PolicyFeature | undefined; readonly new: PolicyFeature | undefined },
        now: number
      ) {
        const revision = int8(yield* nextRevision)
        yield* sql`UPDATE policies SET revision = ${revision}, updated_at = ${instant(now)} WHERE id = ${policyId}`
        yield* events.append({
          event_type: "policy.updated",
          resource_type: "policy",
          resource_id: policyId,
          metadata: { changes: { [`features.${code}`]: { old: shown(entries.old), new: shown(entries.new) } } }
        })
      })

      const set = Effect.fn("PolicyFeatures.set")(function* (policyId: string, featureId: string, input: Input) {
        const { expires_with_license, ...given } = input
        const { entry, product_id } = yield* locked(policyId, featureId)
        const [feature] = yield* sql<{ readonly product_id: string; readonly code: string; readonly name: string }>`
          SELECT product_id, code, name FROM features WHERE id = ${featureId} FOR KEY SHARE`
        if (feature === undefined) return yield* unknownFeature(featureId)
        if (feature.product_id !== product_id) return yield* foreignFeature
        const fault = allowanceFault(input)
        if (fault !== undefined) return yield* refuse("VALIDATION_ERROR", fault.message, fault.field)
        const now = yield* Clock.currentTimeMillis
        const changed: PolicyFeature = {
          policy_id: policyId,
          feature_id: featureId,
          feature_code: feature.code,
          feature_name: feature.name,
          enabled: true,
          metadata: {},
          ...given,
          ...(expires_with_license === true ? { expires_with_license } : undefined),
          created_at: entry?.created_at ?? now,
          updated_at: now
        }
        if (entry === undefined) yield* refuseFull(policyId)
        else if (Object.keys(changesOf(entry, changed, settable)).length === 0) return entry
        yield* sql`
          INSERT INTO policy_features (policy_id, feature_id, enabled, max_consumptions, expires_after_days, expires_with_license, reset_period,
            reset_anchor, rollover_max, overage_max, metadata, created_at, updated_at)
          VALUES (${policyId}, ${featureId}, ${changed.enabled}, ${int8(changed.max_consumptions ?? null)},
            ${changed.expires_after_days ?? null}, ${changed.expires_with_license ?? null}, ${changed.reset_period ?? null}, ${changed.reset_anchor ?? null},
            ${int8(changed.rollover_max ?? null)}, ${int8(changed.overage_max ?? null)}, ${json(changed.metadata)},
            ${instant(changed.created_at)}, ${instant(now)})
          ON CONFLICT (policy_id, feature_id) DO UPDATE SET enabled = excluded.enabled,
            max_consumptions = excluded.max_consumptions, expires_after_days = excluded.expires_after_days,
            expires_with_license = excluded.expires_with_license,
            reset_period = excluded.reset_period, reset_anchor = excluded.reset_anchor,
            rollover_max = excluded.rollover_max, overage_max = excluded.overage_max,
            metadata = excluded.metadata, updated_at = excluded.updated_at`.pipe(
          constraints({ policy_features_feature_id_fkey: () => unknownFeature(featureId) })
        )
        yield* record(policyId, feature.code, { old: entry, new: changed }, now)
        return changed
      }, inTransaction)

      const refuseFull = Effect.fnUntraced(function* (policyId: string) {
        const [row] = yield* sql<{ readonly count: number }>`
          SELECT count(*) AS count FROM policy_features WHERE policy_id = ${policyId}`
        if (row!.count < policyFeaturesMax) return
        return yield* refuse(
          "VALIDATION_ERROR",
          `The policy has ${policyFeaturesMax} features, the maximum: remove one first.`,
          "feature_id"
        )
      })

      const remove = Effect.fn("PolicyFeatures.delete")(function* (policyId: string, featureId: string) {
        const { entry } = yield* locked(policyId, featureId)
        if (entry === undefined) {
          return yield* refuse(
            "NOT_FOUND",
            "The policy does not have this feature: use the feature_id of one of its features.",
            "feature_id"
          )
        }
        yield* sql`DELETE FROM policy_features WHERE policy_id = ${policyId} AND feature_id = ${featureId}`
        yield* record(policyId, entry.feature_code, { old: entry, new: undefined }, yield* Clock.currentTimeMillis)
      }, inTransaction)

      return PolicyFeatures.of({ list, set, delete: remove })
    })
  )
}

const columns = `pf.policy_id, pf.feature_id, f.code AS feature_code, f.name AS feature_name, pf.enabled, pf.max_consumptions,
  pf.expires_after_days, pf.expires_with_license, pf.reset_period, pf.reset_anchor, pf.rollover_max, pf.overage_max, pf.metadata, pf.created_at, pf.updated_at`

const settable = [
  "enabled",
  "max_consumptions",
  "expires_after_days",
  "expires_with_license",
  ...allowanceNames,
  "metadata"
] as const

const shown = (entry: PolicyFeature | undefined) =>
  entry === undefined
    ? null
    : Object.fromEntries(
        settable.flatMap((field) => (entry[field] === undefined ? [] : [[field, entry[field] as never] as const]))
      )

const unknownPolicy = (id: string) => refuseUnknownId("policy", id)
const unknownFeature = (id: string) => refuseUnknownId("feature", id, "feature_id")

const foreignFeature = refuse(
  "LINKAGE_MISMATCH",
  "The feature belongs to another product than the policy: choose a feature of the policy's product.",
  "feature_id"
)
