/** Licenses for the back office: reads come from SQL, every change goes through the license's actor. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse } from "../api/Failure.ts"
import { limitDefault, type Page, type PageRequest } from "../api/Paging.ts"
import { after } from "../postgres/Sql.ts"
import * as Assignments from "./Assignments.ts"
import type { License, LicenseFeature } from "./License.ts"
import { LicenseActors } from "./LicenseActors.ts"
import { type LicenseFilter, LicenseList } from "./LicenseList.ts"
import type { Nullable, Owned } from "./LicenseRows.ts"
import type { Assignment, LicenseSnapshot } from "./LicenseState.ts"
import * as Lifecycle from "./Lifecycle.ts"
import { shownLicense } from "./Shown.ts"
import { type UpdateCommand, update } from "./Update.ts"

type Changed<C extends "LINKAGE_MISMATCH" | "VALIDATION_ERROR" = never> = Effect.Effect<
  License,
  Refusal<C | "NOT_FOUND" | "LICENSE_STATE_CONFLICT" | "NOT_READY">
>

export class Licenses extends Context.Service<
  Licenses,
  {
    list(filter: LicenseFilter): Effect.Effect<Page<License>>
    get(id: string): Effect.Effect<License, Refusal<"NOT_FOUND">>
    update(id: string, input: UpdateCommand): Changed<"VALIDATION_ERROR">
    suspend(id: string): Changed
    reinstate(id: string): Changed
    revoke(id: string): Changed
    features(id: string, request: PageRequest): Effect.Effect<Page<LicenseFeature>, Refusal<"NOT_FOUND">>
    assign(
      id: string,
      input: Assignments.AssignCommand
    ): Effect.Effect<LicenseFeature, Refusal<"NOT_FOUND" | "LICENSE_STATE_CONFLICT" | "LINKAGE_MISMATCH" | "NOT_READY">>
    remove(
      id: string,
      featureId: string
    ): Effect.Effect<void, Refusal<"NOT_FOUND" | "LICENSE_STATE_CONFLICT" | "NOT_READY">>
  }
>()("licensing/licenses/Licenses") {
  static readonly layer = Layer.effect(
    Licenses,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const actors = yield* LicenseActors
      const reads = yield* LicenseList

      const get = Effect.fn("Licenses.get")(function* (id: string) {
        return (yield* reads.find(id)) ?? (yield* refuse("NOT_FOUND", `No license has the id ${id}.`, "id"))
      })

      const features = Effect.fn("Licenses.features")(function* (
        id: string,
        { limit = limitDefault, cursor }: PageRequest
      ) {
        yield* get(id)
        const rows = yield* Effect.orDie(sql<Nullable<Assignment> & Owned & { readonly id: string }>`
          SELECT * FROM (
            SELECT a.license_id, a.feature_id, a.feature_id AS id, f.code AS feature_code, f.name AS feature_name, a.enabled,
              a.max_consumptions, a.total_consumptions, a.expires_at, a.metadata, a.created_at, a.updated_at
            FROM license_features a JOIN features f ON f.id = a.feature_id WHERE a.license_id = ${id}
          ) AS assignment WHERE ${after(sql, cursor)} ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`)
        return assignmentPage(rows, limit)
      })

      return Licenses.of({
        list: reads.page,
        get,
        update: (id, input) => actors.ask(id, update, input, shown),
        suspend: (id) => actors.ask(id, Lifecycle.suspend, undefined, shown),
        reinstate: (id) => actors.ask(id, Lifecycle.reinstate, undefined, shown),
        revoke: (id) => actors.ask(id, Lifecycle.revoke, undefined, shown),
        features,
        assign: (id, input) => actors.ask(id, Assignments.assign, input),
        remove: (id, featureId) => actors.ask(id, Assignments.unassign, { feature_id: featureId })
      })
    })
  )
}

const shown = ({ license, policy }: LicenseSnapshot) =>
  Effect.map(Clock.currentTimeMillis, (now) => shownLicense(license, policy, now))

const assignmentPage = (rows: ReadonlyArray<Nullable<Assignment> & Owned>, limit: number): Page<LicenseFeature> => {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const page = items.map((row) => Assignments.shownAssignment(row.license_id, row))
  return rows.length > limit && last !== undefined
    ? { items: page, next: { createdAt: last.created_at, id: last.feature_id } }
    : { items: page }
}
