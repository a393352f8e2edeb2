/**
 * Issues licenses: reads what the requests name, generates the keys that are not given, and returns them once, in one
 * transaction.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../events/EventLog.ts"
import { transaction } from "../../postgres/Sql.ts"
import { mayCompute } from "../../postgres/Transactions.ts"
import type { NewLicenseInput } from "../changes/NewLicense.ts"
import { VendorKeys } from "../keys/VendorKeys.ts"
import type { LicensesWithKeys, LicenseWithKey } from "../model/License.ts"
import * as LicenseKey from "../model/LicenseKey.ts"
import { type DraftRefusal, makeDrafts, type PathOf } from "./Drafts.ts"
import { presentLicense } from "./PresentLicense.ts"

export class Issuing extends Context.Service<
  Issuing,
  {
    /** Issues a license. The response is the only place where the full key ever appears. */
    create(input: NewLicenseInput): Effect.Effect<typeof LicenseWithKey.Type, DraftRefusal>
    /** Issues all licenses or none. A refusal names the index of the first license that was refused. */
    createBatch(inputs: ReadonlyArray<NewLicenseInput>): Effect.Effect<typeof LicensesWithKeys.Type, DraftRefusal>
  }
>()("licensing/licenses/management/Issuing") {
  static readonly layer = Layer.effect(
    Issuing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const events = yield* EventLog
      const vendorKeys = yield* VendorKeys
      const { draft, write } = yield* makeDrafts

      const draftAndWrite = Effect.fnUntraced(function* (inputs: ReadonlyArray<NewLicenseInput>, pathOf: PathOf) {
        // Until the events are appended. A thousand licenses take a tenth of a second of computing.
        if (inputs.length > 1) yield* sql`SELECT ${mayCompute(sql)}`
        const drafts = yield* draft(inputs, pathOf)
        yield* write(drafts, pathOf)
        // Last: it locks the event counter.
        yield* events.append(...drafts.map(({ event }) => event))
        return drafts
      }, transaction(sql))

      /** The responses are made after the transaction, which holds the event counter at its end. */
      const issue = Effect.fnUntraced(function* (inputs: ReadonlyArray<NewLicenseInput>, pathOf: PathOf) {
        if (inputs.some(({ license_key = "" }) => LicenseKey.isVendorKey(license_key))) yield* vendorKeys.announce
        const drafts = yield* draftAndWrite(inputs, pathOf)
        const now = yield* Clock.currentTimeMillis
        return drafts.map(({ license, license_key, policy }) => ({
          license: presentLicense(license, policy, 0, now),
          license_key
        }))
      })

      const create = Effect.fn("Issuing.create")(function* (input: NewLicenseInput) {
        const [issued] = yield* issue([input], (_, field) => field)
        return issued!
      })
      const createBatch = Effect.fn("Issuing.createBatch")(function* (inputs: ReadonlyArray<NewLicenseInput>) {
        return { licenses: yield* issue(inputs, (index, field) => `licenses[${index}].${field}`) }
      })
      return Issuing.of({ create, createBatch })
    })
  )
}
