/** The management operations on licenses. Reads use SQL; all changes use the license's actor. */

import { Clock, Context, Effect, identity, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { IfMatch } from "../../access/preconditions/RecordTag.ts"
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { Refusal } from "../../contract/api/Failure.ts"
import { limitDefault, type Page, type PageRequest, pageOf } from "../../contract/api/Paging.ts"
import { Mail } from "../../ledger/mail/Mail.ts"
import { after } from "../../platform/postgres/queries/Sql.ts"
import * as Assignments from "../changes/Assignments.ts"
import { type RotatedKey, rotateKey } from "../changes/KeyRotation.ts"
import { type MaintenanceCommand, renewMaintenance } from "../changes/MaintenanceRenewal.ts"
import { changePolicy, type PolicyChangeCommand } from "../changes/PolicyChange.ts"
import { type RenewCommand, renew } from "../changes/Renewal.ts"
import { transfer } from "../changes/Transfer.ts"
import { type UpdateCommand, update } from "../changes/Update.ts"
import { resetUsage, type UsageResetCommand } from "../changes/UsageReset.ts"
import { LicenseActors } from "../engine/LicenseActors.ts"
import type { License, LicenseStatus, LicenseTransfer, LicenseWithKey } from "../model/License.ts"
import type { LicenseFeature } from "../model/LicenseFeature.ts"
import * as LicenseKey from "../model/LicenseKey.ts"
import type { LicenseSnapshot } from "../model/LicenseRecords.ts"
import type { LicenseKeyRotation } from "../model/RenewalRequests.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import { type AssignmentRow, assignmentColumns, assignmentOf } from "../rows/AssignmentRows.ts"
import * as Lifecycle from "../rules/Lifecycle.ts"
import { type LicenseFilter, LicenseList } from "./LicenseList.ts"
import { presentSnapshot } from "./PresentLicense.ts"

type Changed<C extends Code = never, A = License> = Effect.Effect<
  A,
  Refusal<C | "NOT_FOUND" | "LICENSE_STATE_CONFLICT" | "NOT_READY">
>

export class Licenses extends Context.Service<
  Licenses,
  {
    list(filter: LicenseFilter): Effect.Effect<Page<License>>
    get(id: string): Effect.Effect<License, Refusal<"NOT_FOUND">>
    update(id: string, input: UpdateCommand): Changed<"CONFLICT" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR">
    suspend(id: string): Changed
    reinstate(id: string): Changed
    revoke(id: string): Changed
    renew(
      id: string,
      input: RenewCommand
    ): Changed<
      "LICENSE_NOT_RENEWABLE" | "LINKAGE_MISMATCH" | "EXPIRY_NOT_IN_FUTURE" | "RENEWAL_NOT_LATER" | "VALIDATION_ERROR"
    >
    renewMaintenance(
      id: string,
      input: MaintenanceCommand
    ): Changed<"LINKAGE_MISMATCH" | "EXPIRY_NOT_IN_FUTURE" | "RENEWAL_NOT_LATER" | "VALIDATION_ERROR">
    /** With `rotate_key` the response also contains the new key. */
    transfer(
      id: string,
      input: typeof LicenseTransfer.Type
    ): Changed<"CONFLICT" | "TRANSFER_NOT_ALLOWED" | "TRANSFER_LIMIT_REACHED", License | typeof LicenseWithKey.Type>
    changePolicy(
      id: string,
      input: PolicyChangeCommand
    ): Changed<"LINKAGE_MISMATCH" | "EXPIRY_NOT_IN_FUTURE" | "VALIDATION_ERROR">
    /**
     * Replaces the license's key at once. Only the response contains the new key, and with `send_key` a mail. `signedInBy` is for a
     * request at the customer's page.
     */
    rotateKey(
      id: string,
      input: typeof LicenseKeyRotation.Type,
      signedInBy?: "key" | "link"
    ): Changed<"VALIDATION_ERROR", typeof LicenseWithKey.Type>
    features(id: string, request: PageRequest): Effect.Effect<Page<LicenseFeature>, Refusal<"NOT_FOUND">>
    assign(
      id: string,
      input: Assignments.AssignCommand
    ): Changed<"LINKAGE_MISMATCH" | "VALIDATION_ERROR", LicenseFeature>
    remove(id: string, featureId: string): Changed<never, void>
    resetUsage(id: string, input: UsageResetCommand): Changed<"VALIDATION_ERROR", LicenseFeature>
  }
>()("licensing/licensing/management/Licenses") {
  static readonly layer = Layer.effect(
    Licenses,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const actors = yield* LicenseActors
      const mail = yield* Mail
      const reads = yield* LicenseList
      const random = yield* SecureRandom.SecureRandom

      const get = Effect.fn("Licenses.get")(function* (id: string) {
        return (yield* reads.find(id)) ?? (yield* refuseUnknownLicense(id))
      })

      const features = Effect.fn("Licenses.features")(function* (
        id: string,
        { limit = limitDefault, cursor }: PageRequest
      ) {
        yield* get(id)
        const now = yield* Clock.currentTimeMillis
        const rows = yield* Effect.orDie(sql<ListedRow>`
          SELECT * FROM (
            SELECT ${sql.literal(assignmentColumns)}, a.feature_id AS id, l.status,
              l.expires_at + make_interval(days => p.grace_period_days) AS access_ends
            FROM license_features a JOIN features f ON f.id = a.feature_id JOIN licenses l ON l.id = a.license_id
              JOIN policies p ON p.id = l.policy_id WHERE a.license_id = ${id}
          ) AS assignment WHERE ${after(sql, cursor)} ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`)
        const page = pageOf(rows, limit)
        return {
          ...page,
          items: page.items.map((row) =>
            Assignments.presentAt(id, assignmentOf(row), row.access_ends ?? undefined, row.status, now)
          )
        }
      })

      const newKey = Effect.map(
        Effect.provideService(LicenseKey.generate, SecureRandom.SecureRandom, random),
        (license_key) => ({
          license_key,
          stored: LicenseKey.stored(license_key),
          presentWithKey: (rotated: LicenseSnapshot) =>
            Effect.map(present(rotated), (license) => ({ license, license_key }))
        })
      )

      const rotate: Licenses["Service"]["rotateKey"] = Effect.fn("Licenses.rotateKey")(function* (
        id,
        { send_key = false },
        signedInBy
      ) {
        if (send_key) yield* mail.admit("send_key")
        const { license_key, stored, presentWithKey } = yield* newKey
        const mailsOf = ({ recipient }: RotatedKey) =>
          mail.rowsOf(
            recipient === undefined
              ? []
              : [{ kind: "rotated_key", to: recipient, license_id: id, values: { license_key } }]
          )
        const command = { ...stored, send_key, signedInBy }
        return yield* actors.askWith(
          id,
          rotateKey,
          command,
          identity,
          presentWithKey,
          undefined,
          send_key ? mailsOf : undefined
        )
      })

      const transferTo: Licenses["Service"]["transfer"] = Effect.fn("Licenses.transfer")(function* (
        id,
        { rotate_key, ...input }
      ) {
        if (rotate_key !== true) return yield* actors.askWith(id, transfer, input, identity, present)
        const { stored, presentWithKey } = yield* newKey
        return yield* actors.askWith(id, transfer, { ...input, newKey: stored }, identity, presentWithKey)
      })

      return Licenses.of({
        list: reads.page,
        get,
        update: (id, input) =>
          Effect.flatMap(IfMatch, (ifMatch) => actors.askWith(id, update, { ...input, ifMatch }, identity, present)),
        suspend: (id) => actors.askWith(id, Lifecycle.suspend, undefined, identity, present),
        reinstate: (id) => actors.askWith(id, Lifecycle.reinstate, undefined, identity, present),
        revoke: (id) => actors.askWith(id, Lifecycle.revoke, undefined, identity, present),
        renew: (id, input) => actors.askWith(id, renew, input, identity, present),
        renewMaintenance: (id, input) => actors.askWith(id, renewMaintenance, input, identity, present),
        transfer: transferTo,
        changePolicy: (id, input) => actors.askWith(id, changePolicy, input, identity, present),
        rotateKey: rotate,
        features,
        assign: (id, input) => actors.ask(id, Assignments.assign, input),
        remove: (id, featureId) => actors.ask(id, Assignments.unassign, { feature_id: featureId }),
        resetUsage: (id, input) => actors.ask(id, resetUsage, input)
      })
    })
  )
}

const present = (snapshot: LicenseSnapshot) =>
  Effect.map(Clock.currentTimeMillis, (now) => presentSnapshot(snapshot, now))

type ListedRow = AssignmentRow & {
  readonly id: string
  readonly created_at: number
  readonly status: LicenseStatus
  readonly access_ends: number | null
}
