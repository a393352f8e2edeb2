/** Previews of changes: decides them like a dry run of a bulk job, for one license, and shows it before and after. */
import { Context, Effect, Layer } from "effect"
import { CurrentActor } from "../../access/CurrentActor.ts"
import type { Refusal } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { presentAt } from "../changes/Assignments.ts"
import { blacklist, reset } from "../changes/DeviceActions.ts"
import { renewMaintenance } from "../changes/MaintenanceRenewal.ts"
import { transfer } from "../changes/Transfer.ts"
import { presentSnapshot } from "../management/PresentLicense.ts"
import { type LicenseView, snapshot } from "../model/LicenseRecords.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import { accessEndsAt } from "../rules/Lifecycle.ts"
import { type Action, actions } from "./Actions.ts"
import { makeManyDecisions } from "./Decisions.ts"
import type { LicensePreview, LicensePreviewRequest, PreviewAction, PreviewParameters } from "./Preview.ts"

type Previewed = Pick<Action<PreviewParameters>, "rule" | "commandOf">

const asGiven = (rule: unknown): Previewed => ({ rule: rule as never, commandOf: (parameters) => parameters })

const previewed: { readonly [A in PreviewAction]: Previewed } = {
  ...actions,
  transfer: asGiven(transfer),
  maintenance: asGiven(renewMaintenance),
  reset_device: asGiven(reset),
  blacklist_device: asGiven(blacklist)
}

export class Previews extends Context.Service<
  Previews,
  {
    preview(id: string, request: LicensePreviewRequest): Effect.Effect<LicensePreview, Refusal<"NOT_FOUND">>
  }
>()("licensing/licensing/bulk/Previews") {
  static readonly layer = Layer.effect(
    Previews,
    Effect.gen(function* () {
      const { preview } = yield* makeManyDecisions
      return Previews.of({
        preview: Effect.fn("Previews.preview")(function* (id, { action, parameters = {} }) {
          const { commandOf, rule } = previewed[action]
          const { clientAddress, requestId } = yield* RequestContext
          const decided = yield* preview(id, {
            // The number of seats is shown, whether or not it decides anything.
            rule: { ...rule, needs: (command) => ({ ...rule.needs?.(command), seats: true }) },
            commandOf: (license) => commandOf(parameters, license),
            origin: { ...(yield* CurrentActor), request_id: requestId, ip_address: clientAddress },
            reaches: () => true,
            isDryRun: true,
            isBare: false
          })
          if (decided === undefined) return yield* refuseUnknownLicense(id)
          const { after, before, now, refusal } = decided
          const shown = { changed: refusal === undefined && after.changed, before: stateOf(before, now) }
          if (refusal === undefined) return { admitted: true, ...shown, after: stateOf(after, now) }
          const { code, detail, message } = refusal
          return { admitted: false, code, message, ...(detail === undefined ? undefined : { detail }), ...shown }
        })
      })
    })
  )
}

const stateOf = (view: LicenseView, now: number): LicensePreview["before"] => {
  const license = presentSnapshot(snapshot(view), now)
  const accessEnds = accessEndsAt(view.license, view.policy)
  return {
    license,
    features: view.assignments.map((assignment) => presentAt(license.id, assignment, accessEnds, license.status, now)),
    live_leases: view.liveLeaseCount
  }
}
