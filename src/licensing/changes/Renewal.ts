/**
 * Renews a license (docs/API.md, "Renewal, transfer, usage reset, key rotation"). A renewal never shortens the license.
 * Days are added to the stored expiry if it is in the future, otherwise to now. A pending term begins with the renewal,
 * or at the license's later start, and the days are added to its end. The order or subscription of the renewal is checked
 * and recorded in the event; the license's links stay.
 */
import { dayMillis, formatTimestamp, latest } from "../../contract/api/Timestamp.ts"
import { changesOf } from "../../ledger/events/Changes.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import { wholeIntervals } from "../model/Heartbeat.ts"
import type { LicenseStatus } from "../model/License.ts"
import { type LicenseRecord, type LicenseSnapshot, type LicenseView, snapshot } from "../model/LicenseRecords.ts"
import type { LicenseRenew } from "../model/RenewalRequests.ts"
import { accept, licenseEvent, type Rule, reject } from "../rules/LicenseCommand.ts"
import { statusAt } from "../rules/Lifecycle.ts"
import {
  begunFeatures,
  changesOfBegun,
  pendingTermEndsAt,
  refuseTerms,
  renewable,
  termBeginsAt,
  termBegun
} from "../rules/Terms.ts"
import { type Links, namedLinks } from "./Linkage.ts"

export type RenewCommand = typeof LicenseRenew.Type

type RenewCode =
  | "LICENSE_STATE_CONFLICT"
  | "LICENSE_NOT_RENEWABLE"
  | "NOT_FOUND"
  | "LINKAGE_MISMATCH"
  | "EXPIRY_NOT_IN_FUTURE"
  | "RENEWAL_NOT_LATER"
  | "VALIDATION_ERROR"

export const statusAfterRenewal = {
  active: "active",
  grace_period: "active",
  expired: "active",
  suspended: "suspended",
  revoked: "conflict"
} as const satisfies Record<LicenseStatus, LicenseStatus | "conflict">

export const renew: Rule<RenewCommand, LicenseSnapshot, RenewCode> = {
  name: "renew",
  needs: ({ order_id, subscription_id }) => ({ links: { order: order_id, subscription: subscription_id } }),
  decide: (view, command, now) => {
    const { license, policy } = view
    const from = statusAt(license, policy, now)
    const status = statusAfterRenewal[from]
    if (status === "conflict") {
      return reject("LICENSE_STATE_CONFLICT", `A license that is ${from} cannot be renewed: issue a new one.`, {
        detail: from
      })
    }
    if (!renewable.has(policy.license_type)) {
      const remedy = policy.license_type === "perpetual" ? "renew its maintenance" : "update its expires_at"
      return reject(
        "LICENSE_NOT_RENEWABLE",
        `A license of the type ${policy.license_type} has no term to renew: ${remedy} instead.`,
        { detail: policy.license_type }
      )
    }
    const links = namedLinks(view, command)
    if ("accepted" in links) return links
    const expires_at = expiryOf(view, command, now)
    const refused = refuseExpiry(view, command, expires_at, now)
    if (refused !== undefined) return refused
    const begins = termBeginsAt({ ...license, expires_at }, now) ?? now
    const begun = begunFeatures(view, begins, now)
    return accept(
      {
        license: {
          expires_at,
          term_days: undefined,
          ...termBegun(license, begins),
          status,
          ...(from === "expired" ? wholeIntervals(license, policy, license.starts_at, now) : undefined),
          updated_at: now
        },
        entitlement: true,
        assignments: begun.map(({ after }) => after),
        events: [renewedEvent(view, command, links, { from, status, expires_at }, changesOfBegun(begun))]
      },
      snapshot
    )
  }
}

const expiryOf = (view: LicenseView, { expires_at, extend_by_days = 0 }: RenewCommand, now: number): number =>
  expires_at ??
  Math.max(view.license.expires_at ?? pendingTermEndsAt(view, now) ?? now, now) + extend_by_days * dayMillis

const refuseExpiry = ({ license, policy }: LicenseView, command: RenewCommand, expires_at: number, now: number) => {
  if (expires_at <= now) {
    return reject("EXPIRY_NOT_IN_FUTURE", "The renewal would end in the past: choose a later expires_at.", {
      detail: "expires_at"
    })
  }
  if (license.expires_at !== undefined && expires_at <= license.expires_at) {
    return reject(
      "RENEWAL_NOT_LATER",
      `The license already lasts until ${formatTimestamp(license.expires_at)}: choose a later expires_at, or update the license to shorten it.`,
      { detail: "expires_at" }
    )
  }
  if (expires_at > latest) {
    return reject("VALIDATION_ERROR", "The renewal would end after the year 9999: extend by fewer days.", {
      detail: command.extend_by_days === undefined ? "expires_at" : "extend_by_days"
    })
  }
  return refuseTerms(policy.license_type, { ...license, expires_at })
}

const renewedEvent = (
  { license }: LicenseView,
  command: RenewCommand,
  links: Links,
  to: { readonly from: LicenseStatus; readonly status: LicenseStatus; readonly expires_at: number },
  features: NewEvent["metadata"]
): NewEvent => {
  return licenseEvent("license.renewed", license.id, {
    ...changesOf<Pick<LicenseRecord, "expires_at">>(license, to, ["expires_at"]),
    ...(to.from === to.status ? undefined : { status: { old: to.from, new: to.status } }),
    ...features,
    ...paidFor(command, links)
  })
}

/** What was bought, in the event of a renewal. */
export const paidFor = (
  { extend_by_days, order_id, subscription_id }: Pick<RenewCommand, "extend_by_days" | "order_id" | "subscription_id">,
  { order }: Links
): { readonly [name: string]: string | number } => {
  const bought = { extend_by_days, order_id, subscription_id: subscription_id ?? order?.subscription_id }
  return Object.fromEntries(
    Object.entries(bought).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  )
}
