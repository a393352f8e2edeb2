/** Issues licenses in one transaction: reads the named records, generates missing keys, and returns all keys once. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Refusal } from "../../contract/api/Failure.ts"
import { StoredResponse } from "../../contract/api/StoredResponse.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { Mail } from "../../ledger/mail/Mail.ts"
import { transaction } from "../../platform/postgres/queries/Sql.ts"
import type { NewLicenseInput } from "../changes/NewLicense.ts"
import type { LicensesWithKeys, LicenseWithKey } from "../model/License.ts"
import * as LicenseKey from "../model/LicenseKey.ts"
import { type Draft, type DraftRefusal, makeDrafts, type PathOf } from "./Drafts.ts"
import { makeKeyMails } from "./KeyMails.ts"
import { presentLicense } from "./PresentLicense.ts"
import { VendorKeys } from "./VendorKeys.ts"

type IssueRefusal = DraftRefusal | Refusal<"IDEMPOTENCY_IN_PROGRESS">

export class Issuing extends Context.Service<
  Issuing,
  {
    /** Only this response contains the full key. */
    create(input: NewLicenseInput): Effect.Effect<typeof LicenseWithKey.Type, IssueRefusal>
    /** Issues all licenses or none. A refusal names the index of the first refused license. */
    createBatch(inputs: ReadonlyArray<NewLicenseInput>): Effect.Effect<typeof LicensesWithKeys.Type, IssueRefusal>
  }
>()("licensing/licensing/management/Issuing") {
  static readonly layer = Layer.effect(
    Issuing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const events = yield* EventLog
      const vendorKeys = yield* VendorKeys
      const { draft, write } = yield* makeDrafts
      const mail = yield* Mail
      const keyMails = yield* makeKeyMails

      const resultOf = (drafts: ReadonlyArray<Draft>, now: number): typeof LicensesWithKeys.Type => ({
        licenses: drafts.map(({ license, license_key, policy }) => ({
          license: presentLicense(license, policy, 0, now),
          license_key
        }))
      })

      /** With an Idempotency-Key the response is stored before the events lock their counter. */
      const issue = Effect.fnUntraced(function* <A>(
        inputs: ReadonlyArray<NewLicenseInput>,
        pathOf: PathOf,
        shown: (result: typeof LicensesWithKeys.Type) => A
      ) {
        if (inputs.some(({ license_key = "" }) => LicenseKey.isVendorKey(license_key))) yield* vendorKeys.announce
        const mailed = inputs.findIndex(({ send_key }) => send_key === true)
        if (mailed >= 0) yield* mail.admit(pathOf(mailed, "send_key"))
        const recorder = yield* StoredResponse
        const written = Effect.gen(function* () {
          const drafts = yield* draft(inputs, pathOf)
          const mails = mailed < 0 ? [] : yield* keyMails(inputs, drafts, pathOf)
          yield* write(drafts, pathOf)
          const result = shown(resultOf(drafts, yield* Clock.currentTimeMillis))
          if (recorder !== undefined) yield* recorder.store(result)
          yield* mail.queue(...mails)
          yield* events.append(...drafts.map(({ event }) => event))
          return result
        })
        const result = yield* transaction(sql)(written)
        recorder?.committed()
        return result
      })

      const create = Effect.fn("Issuing.create")((input: NewLicenseInput) =>
        issue(
          [input],
          (_, field) => field,
          ({ licenses: [issued] }) => issued!
        )
      )
      const createBatch = Effect.fn("Issuing.createBatch")((inputs: ReadonlyArray<NewLicenseInput>) =>
        issue(
          inputs,
          (index, field) => `licenses[${index}].${field}`,
          (result) => result
        )
      )
      return Issuing.of({ create, createBatch })
    })
  )
}
