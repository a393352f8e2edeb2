/** What can be done with a license, each with the effect that it has. */

import { Effect, Exit } from "effect"
import { useRef } from "react"
import type { License } from "../../../licensing/model/License.ts"
import type { Request } from "../../client/Client.ts"
import { Consequences, KeyReplaced } from "../consequences/Consequences.tsx"
import { Secret } from "../once/Secret.tsx"
import { Action } from "../parts/Dialog.tsx"
import { email, type FieldsOf, flag, lastDay, number, text } from "../parts/Fields.tsx"
import { licenseTitle } from "../parts/LicenseName.ts"
import { Time } from "../parts/Show.tsx"
import { undoOfEdit, undoOfState, unlessDone } from "../parts/Undo.ts"
import { sendsMail } from "../service/Address.ts"
import { change, changeBy, run } from "../service/Hooks.ts"
import { isUnsure, now, type Payload, send } from "../service/Service.ts"
import { isRenewable, useLicenseType } from "./Expiry.tsx"
import { termField } from "./Term.tsx"

interface Props {
  readonly license: License
}

export type Limit = "max_activations" | "max_container_instances" | "max_floating_users"

export const Reinstate = ({ license }: Props) => {
  const { id } = license
  return (
    <Action
      label="Reinstate"
      title={`Reinstate ${licenseTitle(license)}`}
      effect="The license works again, in the state that its dates give. Devices need no new activation."
      preview={() => <Consequences id={id} change={{ action: "reinstate" }} />}
      run={() => reinstate(id)}
      undo={(after) => ({ said: "The license is reinstated.", run: undoReinstatement(after) })}
    />
  )
}

export const Transitions = ({ license }: Props) => {
  const { id, status } = license
  const params = { id }
  return (
    <>
      {status === "suspended" ? (
        <Reinstate key="reinstate" license={license} />
      ) : (
        <Action
          key="suspend"
          label="Suspend"
          title={`Suspend ${licenseTitle(license)}`}
          effect="The license stops working at once, and floating seats end, except borrowed ones. Devices stay, and it can be reinstated."
          danger
          preview={() => <Consequences id={id} change={{ action: "suspend" }} />}
          run={() => suspend(id)}
          undo={(after) => ({ said: "The license is suspended.", run: undoSuspension(after) })}
        />
      )}
      <Action
        label="Revoke"
        title={`Revoke ${licenseTitle(license)}`}
        effect="The license stops working for ever: all devices are deactivated and all seats end. This cannot be undone."
        danger
        preview={() => <Consequences id={id} change={{ action: "revoke" }} />}
        run={() => change("revokeLicense", { params })}
      />
    </>
  )
}

const read = (id: string) => send("getLicense", { params: { id } })
const isSuspended = ({ status }: License) => status === "suspended"
const isOn = ({ status }: License) => status === "active" || status === "grace_period"

const suspend = (id: string) =>
  unlessDone({ noun: "license", read: read(id), isDone: isSuspended }, "suspendLicense", { params: { id } })
const reinstate = (id: string) =>
  unlessDone({ noun: "license", read: read(id), isDone: isOn }, "reinstateLicense", { params: { id } })

/** Each change of what a license grants raises its version. */
const isAs =
  (after: License) =>
  ({ entitlement_version }: License) =>
    entitlement_version === after.entitlement_version

const undoSuspension = (after: License) =>
  undoOfState({
    read: read(after.id),
    isBack: ({ status }) => status !== "suspended" && status !== "revoked",
    isOwn: isAs(after),
    back: ({ id }) => send("reinstateLicense", { params: { id } })
  })

const undoReinstatement = (after: License) =>
  undoOfState({
    read: read(after.id),
    isBack: isSuspended,
    isOwn: isAs(after),
    back: ({ id }) => send("suspendLicense", { params: { id } })
  })

type Renewal = Payload<"renewLicense">

/** A term of the calendar, or days, or a day. */
interface Asked extends Renewal {
  /** The expiry that a term leads to. */
  readonly term?: number
}

const renewal = (from: number): FieldsOf<Asked> => ({
  term: termField(from),
  extend_by_days: number("Days to add", { hint: "In place of the term above." }),
  expires_at: lastDay("Or until the end of", { hint: "In place of the term and of days." })
})

/** What is typed wins over a term. */
const renewalOf = ({ term, ...given }: Asked): Renewal =>
  given.extend_by_days !== undefined || given.expires_at !== undefined || term === undefined
    ? given
    : { expires_at: term }

export const Extend = ({ isPlain = false, license }: Props & { readonly isPlain?: boolean }) => {
  const { id, policy_id } = license
  const type = useLicenseType(policy_id)
  const before = useRef(license)
  const from = Math.max(license.expires_at ?? 0, now())
  if (type !== undefined && !isRenewable(type)) return null
  return (
    <Action
      label="Extend"
      primary={!isPlain}
      title="Extend the license"
      effect={
        <>
          {license.expires_at === undefined ? (
            "It has no expiry yet."
          ) : (
            <>
              It expires on <Time at={license.expires_at} only="day" />.
            </>
          )}{" "}
          One that has expired works again at once; a suspended one stays suspended.
        </>
      }
      fields={renewal(from)}
      preview={(asked: Asked) => <Consequences id={id} change={{ action: "renew", parameters: renewalOf(asked) }} />}
      run={(asked: Asked) => changeBy(extend({ params: { id }, payload: renewalOf(asked) }, before))}
      undo={(after) => ({ said: "The license is extended.", run: restore(before.current, "expires_at", after) })}
    />
  )
}

/** Notes the license before the extension, which an undo gives back: somebody else may have extended it meanwhile, too. */
const extend = Effect.fnUntraced(function* (request: Request<"renewLicense">, before: { current: License }) {
  if (!(yield* isUnsure("renewLicense", request))) before.current = yield* read(request.params.id)
  return yield* send("renewLicense", request)
})

/** Gives a license an earlier value, unless somebody has changed it again. */
export const restore = (before: License, name: "expires_at" | Limit, after: License) => {
  const params = { id: before.id }
  const back = undoOfEdit(
    { record: before, reread: () => run("getLicense", { params }) },
    { [name]: after[name] },
    after,
    (payload: Payload<"updateLicense">, read) => change("updateLicense", { params, payload }, read)
  )
  return back ?? (() => Promise.resolve(Exit.void))
}

type MaintenanceRenewal = Payload<"renewLicenseMaintenance">

interface AskedMaintenance extends MaintenanceRenewal {
  /** The end that a term leads to. */
  readonly term?: number
}

const maintenance = (from: number): FieldsOf<AskedMaintenance> => ({
  term: termField(from, "year"),
  maintenance_expires_at: lastDay("Or until the end of", { hint: "In place of the term above." })
})

const maintenanceOf = ({ maintenance_expires_at, term }: AskedMaintenance): MaintenanceRenewal => {
  const end = maintenance_expires_at ?? term
  return end === undefined ? {} : { maintenance_expires_at: end }
}

/** Of a license that has updates for a time. */
export const RenewMaintenance = ({
  isPlain = false,
  license: { id, maintenance_expires_at }
}: Props & { readonly isPlain?: boolean }) => {
  const from = Math.max(maintenance_expires_at ?? 0, now())
  return maintenance_expires_at === undefined ? null : (
    <Action
      label="Renew maintenance"
      primary={!isPlain}
      title="Renew the maintenance"
      effect="The license may use versions that are released until a later day. It works without them, too."
      fields={maintenance(from)}
      preview={(asked: AskedMaintenance) => (
        <Consequences id={id} change={{ action: "maintenance", parameters: maintenanceOf(asked) }} />
      )}
      run={(asked: AskedMaintenance) =>
        change("renewLicenseMaintenance", { params: { id }, payload: maintenanceOf(asked) })
      }
    />
  )
}

export const RotateKey = ({ license }: Props) => (
  <Action
    label="New key"
    title={`Replace the key of ${licenseTitle(license)}`}
    send="Replace key"
    once={() => "the key"}
    effect="The license gets a new key, and the old key stops working at once. Send the new one to the customer."
    danger
    fields={rotation}
    facts={<KeyReplaced license={license} />}
    run={(payload: Rotation) => change("rotateLicenseKey", { params: { id: license.id }, payload })}
    done={({ license_key }) => <Secret label="This is the new key." what="the key" text={license_key} />}
  />
)

type Rotation = Payload<"rotateLicenseKey">

const rotation: FieldsOf<Rotation> = sendsMail ? { send_key: flag("Mail the new key to the customer") } : {}

type Transfer = Payload<"transferLicense">

const transfer: FieldsOf<Transfer> = {
  customer_name: text("New owner’s name"),
  customer_email: email("New owner’s e-mail"),
  reset_devices: flag("Free all devices and seats"),
  release_borrowed: flag("Also free borrowed seats"),
  rotate_key: flag("Replace the key")
}

/** The new key is no part of the service's preview. */
const TransferPreview = ({ asked, license }: Props & { readonly asked: Transfer }) => {
  const { rotate_key: replacesKey = false, ...parameters } = asked
  const { release_borrowed: _, ...needed } = parameters
  // The service previews a transfer only once it has a new owner or frees devices.
  const isWhole = Object.values(needed).some((value) => value !== false)
  return (
    <>
      {isWhole && <Consequences id={license.id} change={{ action: "transfer", parameters }} />}
      {replacesKey && <KeyReplaced license={license} />}
    </>
  )
}

export const Transfer = ({ license }: Props) => (
  <Action
    label="Transfer"
    title={`Transfer ${licenseTitle(license)}`}
    effect="The license belongs to somebody else from now on. It counts as one of the transfers that the policy allows."
    fields={transfer}
    once={({ rotate_key }: Transfer) => (rotate_key === true ? "the key" : undefined)}
    preview={(asked: Transfer) => <TransferPreview license={license} asked={asked} />}
    run={(payload: Transfer) => change("transferLicense", { params: { id: license.id }, payload })}
    done={(result) =>
      "license_key" in result ? (
        <Secret label="The license is transferred, and this is its new key." what="the key" text={result.license_key} />
      ) : (
        <p>The license is transferred.</p>
      )
    }
  />
)
