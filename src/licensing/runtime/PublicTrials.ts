/**
 * Trials that begin without a license key: a device gets one trial of each product, for ever. License, activation, events and the
 * record that the device has used its trial are one transaction: a trial that is refused or fails is not used up.
 */
import { Context, Effect, identity, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { Mail } from "../../ledger/mail/Mail.ts"
import type { NewMail } from "../../ledger/mail/QueuedMail.ts"
import { bytes, instant } from "../../platform/postgres/driver/Parameters.ts"
import { transaction } from "../../platform/postgres/queries/Sql.ts"
import { recipientOf, refuseNoRecipient } from "../changes/MailRecipient.ts"
import { deviceRows } from "../engine/JournalStatements.ts"
import { PendingChanges } from "../engine/PendingChanges.ts"
import { decide, isRefused, pendingCommand } from "../engine/PendingCommand.ts"
import { LicenseLookups } from "../lookups/LicenseLookups.ts"
import { nothingPrefetched } from "../lookups/Prefetch.ts"
import { type Draft, makeDrafts } from "../management/Drafts.ts"
import type { Binding } from "../model/Binding.ts"
import type { LicenseKey } from "../model/LicenseKey.ts"
import type { Entitlement } from "../model/Payloads.ts"
import { eventRow } from "../rows/EventRows.ts"
import { activate } from "../rules/Activation.ts"
import type { Origin } from "../rules/LicenseCommand.ts"
import { CommittedState } from "../state/CommittedState.ts"

export interface TrialInput {
  readonly product_code: string
  readonly policy_code: string
  readonly binding: Binding
  readonly customer_email?: string
  readonly send_key?: boolean
}

interface StartedTrial {
  readonly entitlement: Entitlement
  readonly license_key: LicenseKey
}

type TrialRefusal = Refusal<
  | "RATE_LIMITED"
  | "VALIDATION_ERROR"
  | "NOT_FOUND"
  | "NOT_READY"
  | "TRIAL_NOT_ALLOWED"
  | "TRIAL_ALREADY_USED"
  | "VM_NOT_ALLOWED"
  | "CONTAINER_NOT_ALLOWED"
  | "VERSION_UNKNOWN"
  | "VERSION_NOT_ENTITLED"
>

interface Offer {
  readonly product_id: string
  readonly policy_id: string
  readonly customer_email?: string
}

export class PublicTrials extends Context.Service<
  PublicTrials,
  {
    /** Issues a trial license and activates the device on it. */
    start(input: TrialInput): Effect.Effect<StartedTrial, TrialRefusal>
  }
>()("licensing/licensing/runtime/PublicTrials") {
  static readonly layer = Layer.effect(
    PublicTrials,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const { inTransaction: lookups } = yield* LicenseLookups
      const drafts = yield* makeDrafts
      const mail = yield* Mail
      const { trialMail } = yield* RateLimits

      /** Activates the device on the drafted license, by the rule that any activation follows. */
      const activated = Effect.fnUntraced(function* (draft: Draft, { binding, product_code }: TrialInput) {
        const { license } = draft
        const { requestId, clientAddress } = yield* RequestContext
        const origin: Origin = {
          actor_type: "license",
          actor_id: license.id,
          request_id: requestId,
          ip_address: clientAddress
        }
        const { app_version } = binding
        const catalog = app_version === undefined ? undefined : yield* lookups.catalog(license.product_id, -1)
        const pending = new PendingChanges(newState(draft, product_code), {
          ...nothingPrefetched,
          versions: catalog?.versions
        })
        pending.entries.push(eventRow(draft.event, origin, license.created_at))
        const command = { keyHash: license.key_hash, binding, newDeviceId: yield* ids.make("device") }
        const asked = { rule: activate, command, origin, begin: identity, span: undefined, resume: () => {} }
        const [decision] = decide(pending, [pendingCommand(asked)], license.created_at)
        // A new license refuses its first device only for what the device is, or for its application's version.
        if (isRefused(decision!)) return yield* decision.refusal as TrialRefusal
        return { pending, entitlement: decision!.reply as Entitlement }
      })

      /** Waits for a concurrent trial of the same device. */
      const claim = Effect.fnUntraced(function* (
        { id, product_id, created_at }: Draft["license"],
        { hash, kind }: Binding
      ) {
        const claimed = yield* sql`
          INSERT INTO public_trials (product_id, binding_kind, binding_hash, license_id, created_at)
          VALUES (${product_id}, ${kind}, ${bytes(Buffer.from(hash(), "hex"))}, ${id}, ${instant(created_at)})
          ON CONFLICT DO NOTHING RETURNING license_id`
        if (claimed.length === 0) return yield* alreadyUsed
      })

      const issue = Effect.fnUntraced(function* (offer: Offer, input: TrialInput) {
        const [draft] = yield* Effect.mapError(drafts.draft([offer], pathOf), (error) =>
          // The policy was deleted or edited a moment ago.
          SqlError.isSqlError(error) ? error : notAllowed
        )
        const { entitlement, pending } = yield* activated(draft!, input)
        // Edited a moment ago: the policy is locked now.
        if (draft!.policy.license_type !== "trial") return yield* notAllowed
        yield* claim(draft!.license, input.binding)
        const { assignments, license } = pending
        const written = drafts.write([{ ...draft!, license, assignments }], pathOf)
        // A generated key is new.
        yield* Effect.catch(written, (error) => (SqlError.isSqlError(error) ? Effect.fail(error) : Effect.die(error)))
        for (const write of deviceRows(sql, [pending])) yield* write
        if (input.send_key === true) yield* mail.queue(keyMail(draft!))
        // Last: it locks the event counter.
        yield* events.appendRows(pending.entries)
        return { entitlement, license_key: draft!.license_key }
      }, transaction(sql))

      const start = Effect.fn("PublicTrials.start")(function* (input: TrialInput) {
        const { customer_email, send_key = false } = input
        if (send_key) yield* mail.admit("send_key")
        if (send_key && recipientOf({ customer_email, metadata: {} }) === undefined)
          return yield* refuseNoRecipient("send_key")
        const { is_reminded, ...offer } = yield* offerOf(sql, input)
        if (customer_email !== undefined && (send_key || (is_reminded && mail.isOn))) yield* trialMail(customer_email)
        return yield* issue({ ...offer, ...(customer_email && { customer_email }) }, input)
      })
      return PublicTrials.of({ start })
    })
  )
}

const keyMail = ({ license, license_key }: Draft): NewMail => ({
  kind: "license_key",
  to: recipientOf(license)!,
  license_id: license.id,
  values: { license_key }
})

const pathOf = (_: number, field: string): string => field

const unknownProduct = refuse(
  "NOT_FOUND",
  "No product has this code: use the code of the application's product.",
  "product_code"
)
/** The same for an unknown policy, so that codes of other policies cannot be guessed. */
const notAllowed = refuse(
  "TRIAL_NOT_ALLOWED",
  "The product has no policy with this code and public trials: check the code, or ask the vendor for a license key.",
  "policy_code"
)
const alreadyUsed = refuse(
  "TRIAL_ALREADY_USED",
  "This device has used its trial of the product: use the license key of that trial, or ask the vendor, who can replace a lost one."
)

interface OfferRow {
  readonly product_id: string
  readonly policy_id: string | null
  readonly public_trial: boolean | null
  readonly mail_reminders: boolean | null
  readonly used: boolean
}

/** What the codes stand for. A device that has used its trial is refused here, without a transaction. */
const offerOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { binding, policy_code, product_code }: TrialInput
) {
  const [row] = yield* Effect.orDie(sql<OfferRow>`
    SELECT product.id AS product_id, policy.id AS policy_id, policy.public_trial, policy.mail_reminders, EXISTS (
      SELECT FROM public_trials WHERE product_id = product.id AND binding_kind = ${binding.kind}
        AND binding_hash = ${bytes(Buffer.from(binding.hash(), "hex"))}
    ) AS used
    FROM products product LEFT JOIN policies policy ON policy.product_id = product.id AND policy.code = ${policy_code}
    WHERE product.code = ${product_code}`)
  if (row === undefined) return yield* unknownProduct
  const { mail_reminders, policy_id, product_id, public_trial, used } = row
  if (policy_id === null || public_trial !== true) return yield* notAllowed
  if (used) return yield* alreadyUsed
  return { product_id, policy_id, is_reminded: mail_reminders === true }
})

/** The state of a license that is not stored yet: no devices, no leases. */
const newState = ({ assignments, license, policy }: Draft, productCode: string): CommittedState =>
  new CommittedState({
    license,
    policy,
    productCode,
    catalogRevision: 0,
    assignments,
    devices: [],
    devicesComplete: true,
    leases: [],
    lapsingFrom: Number.POSITIVE_INFINITY,
    silentFrom: Number.POSITIVE_INFINITY
  })
