/** Clients and operators: their next request, chosen from what they can know; sometimes an earlier request again. */
import type { Binding } from "../../../src/licensing/model/Binding.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import type { Stored } from "../checks/Rows.ts"
import { productCode } from "../model/Admission.ts"
import { limitsFor } from "../model/Limits.ts"
import { dayMillis, type License, liveLeases, minuteMillis } from "../model/Model.ts"
import { foreignPolicy } from "../model/Moves.ts"
import { endsOf, resetsOf } from "./Ends.ts"
import { keyOf, licenseId, machinesOf, unknownLicense } from "./InitialData.ts"
import { type Call, isOfLicense } from "./Operations.ts"
import { assignment, maintained, ownLimits, policyEdit, policyFeature, subscriptionPeriod } from "./Operators.ts"
import type { Operation, Plan } from "./Plan.ts"
import type { RandomSource } from "./RandomSource.ts"
import { UsageRequests } from "./UsageRequests.ts"

/** How many recent requests may be repeated. */
const historyMax = 40

const unknown = "unheard-of"
const two = (millis: number) => [millis, millis]
const ofDevices: ReadonlySet<Operation> = new Set([
  "validate",
  "check",
  "consume",
  "take back",
  "offline",
  "deactivate"
])
const ofLeases: ReadonlySet<Operation> = new Set(["heartbeat", "checkin"])
/** Policies that a license cannot move to. */
const strayPolicies = [foreignPolicy, unknown]
const otherCodes = ["api", "export", "extra", "more", "other", "spare"]

export class Clients {
  private readonly plan: Plan
  private readonly random: RandomSource
  private readonly stray: RandomSource
  private readonly machines: ReadonlyMap<string, ReadonlyArray<Binding>>
  private readonly history: Array<Call> = []
  private readonly usage: UsageRequests
  private made = 0

  constructor(plan: Plan, random: RandomSource) {
    this.plan = plan
    this.random = random
    this.stray = random.detached()
    this.usage = new UsageRequests(random, () => `event_${++this.made}`)
    this.machines = new Map(
      plan.licenses.map(({ machines }, index) => [licenseId(index), machinesOf(licenseId(index), machines)])
    )
  }

  /** The next request, given the stored state. `only` restricts its operation. */
  next(stored: Stored, now: number, only: ReadonlyArray<Operation> = []): Call {
    const { random } = this
    const request = `req_${++this.made}`
    const node = random.between(0, this.plan.nodes - 1)
    if (only.length === 0 && this.history.length > 0 && random.chance(this.plan.repeats)) {
      const again = random.pick(this.history)
      return { ...again, request, node, isRepeated: true, command: this.renewed(again.command as object) }
    }
    const any = stored.licenses.get(licenseId(random.between(0, this.plan.licenses.length - 1)))!
    const drawn = only.length === 0 ? (this.remedy(any) ?? random.weighted(this.plan.operations)) : random.pick(only)
    const license = drawn === "renew maintenance" ? maintained(random, any, stored.licenses) : any
    const operation = this.firstOf(drawn, license, stored)
    const [subject, command] = this.draw(operation, license, stored, now)
    const meant: Call = { request, operation, node, subject, command, isRepeated: false, scope: undefined }
    const bare =
      isOfLicense(meant) && this.stray.chance(this.plan.unknownLicenses) ? { ...meant, subject: unknownLicense } : meant
    const call = isOfLicense(bare) && random.chance(this.plan.kept) ? { ...bare, scope: request } : bare
    if (isOfLicense(call)) this.history.push(call)
    if (this.history.length > historyMax) this.history.shift()
    return call
  }

  /** Sometimes an operator repairs a license that is suspended or expired. */
  private remedy({ expires, status }: License): Operation | undefined {
    if (!["suspended", "expired"].includes(status) || !this.random.chance(0.5)) return undefined
    return status === "suspended" ? "reinstate" : expires === null ? undefined : this.random.pick(["renew", "update"])
  }

  /** The operation, or mostly its precondition: a license without a device first gets one, a license without a lease a lease. */
  private firstOf(operation: Operation, license: License, { catalog }: Stored): Operation {
    const hasSeats = (limitsFor(license, catalog.policies.get(license.policy)!).max_floating_users ?? 0) > 0
    if (license.active === 0 && ofDevices.has(operation) && this.random.chance(0.6)) return "activate"
    // Mostly something is consumed first.
    if (operation === "take back" && license.open.size === 0 && this.random.chance(0.8)) return "consume"
    const isSeatless = ofLeases.has(operation) && hasSeats && liveLeases(license).length === 0
    return isSeatless && this.random.chance(0.6) ? "checkout" : operation
  }

  /** A repeated message with new ids, as the service generates them for each request. */
  private renewed(command: object | undefined): unknown {
    if (command === undefined || !("newDeviceId" in command)) return command
    return { ...command, ...this.device(), ...("leaseToken" in command ? this.lease() : undefined) }
  }

  private device = () => ({ newDeviceId: `dev_${++this.made}` })

  private lease = () => {
    const leaseToken = `lease_${++this.made}`
    return { newLeaseId: `lse_${this.made}`, leaseToken, tokenHash: sha256Hex(leaseToken) }
  }

  /** A third of the checkouts borrow the seat: mostly for a time that is allowed. */
  private borrowing(now: number) {
    const ahead = [-1, 0, minuteMillis, minuteMillis, dayMillis, dayMillis, 3 * dayMillis, 40 * dayMillis]
    return this.random.chance(0.35) && { until: now + this.random.pick(ahead) }
  }

  private draw(operation: Operation, license: License, stored: Stored, now: number): readonly [string, unknown] {
    switch (operation) {
      case "edit policy":
        return [this.random.pick(this.plan.policies).id, policyEdit(this.random)]
      case "set policy feature":
      case "delete policy feature":
        return [this.random.pick(this.plan.policies).id, policyFeature(this.random, operation, this.feature(stored))]
      case "edit feature":
        return [this.feature(stored), { code: this.random.pick(otherCodes), name: `name ${this.random.between(1, 3)}` }]
      case "create feature":
        return ["", { name: "made", code: this.random.pick(otherCodes) }]
      case "delete feature":
        return [this.unused(stored), undefined]
      case "create version":
        return [
          "",
          { version: `${this.random.between(1, 4)}.0`, released_at: now + this.random.pick([-60, 0, 2]) * dayMillis }
        ]
      case "delete version":
        return [this.random.pick([...stored.versionIds, unknown]), undefined]
      case "sweep expiry":
      case "sweep leases":
      case "sweep heartbeats":
      case "sweep periods":
        return ["", undefined]
      case "edit subscription": {
        const subscription = this.random.pick(Array.from(stored.catalog.subscriptions.values()))
        return [subscription.id, subscriptionPeriod(this.random, subscription, now)]
      }
      default:
        return [license.id, this.command(operation, license, stored, now)]
    }
  }

  private feature = ({ catalog }: Stored): string => this.random.pick([...catalog.features.keys(), unknown])

  /** A feature, mostly one that no license has. */
  private unused(stored: Stored): string {
    const licenses = Array.from(stored.licenses.values())
    const left = Array.from(stored.catalog.features.keys()).filter((id) =>
      licenses.every(({ assignments }) => !assignments.has(id))
    )
    return left.length > 0 && this.random.chance(0.6) ? this.random.pick(left) : this.feature(stored)
  }

  private command(operation: Operation, license: License, stored: Stored, now: number): unknown {
    switch (operation) {
      case "activate":
        return { ...this.runtime(license, 0.2), ...this.device() }
      case "validate":
      case "check":
      case "deactivate":
        return this.runtime(license)
      case "offline":
        return this.random.chance(0.5)
          ? { ...this.runtime(license, 0.3), activation: this.device() }
          : this.runtime(license)
      case "deactivate own":
        return { ...this.keyed(license), deviceId: this.managed(operation, license) }
      case "checkout":
        return { ...this.runtime(license, 0.2), ...this.device(), ...this.lease(), ...this.borrowing(now) }
      case "heartbeat":
      case "checkin":
        return { ...this.keyed(license), tokenHash: this.token(license) }
      case "consume":
        return { ...this.runtime(license), ...this.usage.consumption(license, stored) }
      case "take back":
        return { ...this.runtime(license), ...this.usage.reversal(license, stored) }
      case "reset device":
        return { device_id: this.managed(operation, license), release_borrowed: this.random.chance(0.3) }
      case "blacklist":
      case "unblacklist":
        return { device_id: this.managed(operation, license) }
      default:
        return this.management(operation, license, stored, now)
    }
  }

  private management(operation: Operation, license: License, stored: Stored, now: number): unknown {
    const { random } = this
    const dates = [now - dayMillis, now + 1, now + minuteMillis, now + dayMillis, now + 30 * dayMillis]
    switch (operation) {
      case "renew":
        return {
          ...(random.chance(0.5) ? { extend_by_days: random.pick([1, 30]) } : { expires_at: random.pick(dates) }),
          ...(random.chance(0.2) && { order_id: random.pick(["ord_own", "ord_own", "ord_foreign", unknown]) })
        }
      case "renew maintenance":
        return random.chance(0.5)
          ? { extend_by_days: random.pick([1, 30]) }
          : { maintenance_expires_at: random.pick(dates) }
      case "transfer":
        return {
          ...(random.chance(0.6) && { customer_id: random.pick(["", "cust_a", "cust_b", "cust_a", unknown]) }),
          ...(random.chance(0.4) && { customer_name: random.pick(["Ada", "Bob"]) }),
          reset_devices: random.chance(0.4),
          release_borrowed: random.chance(0.3),
          ...(random.chance(0.2) && { newKey: this.rotation(license) })
        }
      case "change policy":
        return {
          policy_id: random.pick(random.chance(0.1) ? strayPolicies : this.plan.policies.map(({ id }) => id)),
          ...(random.chance(0.6) && { expires_at: random.pick([dates[0]!, ...dates.slice(2)]) }),
          ...(random.chance(0.3) && { keep_features: random.chance(0.7) })
        }
      case "reset usage":
        return this.usage.reset(this.feature(stored), stored)
      case "rotate key":
        return this.rotation(license)
      case "assign":
        return {
          feature_id: random.chance(0.05) ? "feat_foreign" : this.feature(stored),
          ...assignment(random, dates)
        }
      case "unassign":
        return { feature_id: this.feature(stored) }
      case "update":
        return {
          ...(random.chance(0.3) && { customer_name: random.pick([null, "Ada", "Bob"]) }),
          ...(random.chance(0.2) && { starts_at: random.pick([null, now - dayMillis, now + minuteMillis]) }),
          ...(random.chance(0.5) && { expires_at: random.pick([null, ...dates, license.expires ?? now]) }),
          ...(random.chance(0.1) && { maintenance_expires_at: random.pick([null, ...dates]) }),
          ...(random.chance(0.2) && { metadata: random.pick([{}, { note: "edited" }]) }),
          ...(random.chance(0.2) && { subscription_id: random.pick([null, "sub_0", "sub_1", "sub_foreign", unknown]) }),
          ...ownLimits(random)
        }
      default:
        return undefined
    }
  }

  private key = (license: License): string =>
    this.random.chance(0.97) ? license.key : keyOf(license.id, this.random.between(0, this.made))

  private token(license: License): string {
    const live = liveLeases(license).map(([token]) => token)
    const others = [...license.leases.keys(), sha256Hex(unknown)]
    return this.random.pick(live.length > 0 && this.random.chance(0.7) ? live : others)
  }

  /** The license key and the application's product, where it names one: nearly always the right one. */
  private keyed(license: License) {
    const product = this.random.chance(0.05) ? "prod_foreign" : productCode
    return { keyHash: this.key(license), productCode: this.random.chance(0.5) ? product : undefined }
  }

  /** What a machine says; `active` is how often it is one that is active already. */
  private runtime(license: License, active = 0.8) {
    const machines = this.machines.get(license.id)!
    const isActive = ({ kind, key }: Binding) => license.devices.get(`${kind}:${key}`)?.status === "active"
    const known = this.random.chance(active) ? machines.filter(isActive) : []
    const binding = this.random.pick(known.length > 0 ? known : machines)
    const app_version = this.random.chance(0.1) ? this.random.pick(["1.0", "2.0", "3.0", unknown]) : undefined
    return { ...this.keyed(license), binding: { ...binding, app_version } }
  }

  private managed(operation: Operation, license: License): string {
    const devices = Array.from(license.devices.values())
    const barred = devices.filter(({ status }) => status === "blacklisted")
    const fitting = operation === "unblacklist" && barred.length > 0 ? barred : devices
    return this.random.chance(0.9) && fitting.length > 0 ? this.random.pick(fitting).id : unknown
  }

  private rotation(license: License) {
    const key_hash = keyOf(license.id, ++this.made)
    return { key_hash, license_key_prefix: "LK-11111", license_key_last4: String(this.made).padStart(4, "0").slice(-4) }
  }

  /** The time after a jump: some way ahead, next to an instant at which something ends, or slightly back. */
  leap(stored: Stored, now: number): number {
    const { random } = this
    if (random.chance(this.plan.leaps.back)) return now - random.pick([1, 300, 2000, 10_000])
    const license = random.pick(Array.from(stored.licenses.values()))
    const policy = stored.catalog.policies.get(license.policy)!
    const all = this.plan.isAboutQuotas && random.chance(0.7) ? resetsOf(license) : endsOf(license, policy)
    const ends = all.filter((end) => end > now && end < now + 40 * dayMillis)
    if (ends.length > 0 && random.chance(0.6)) return Math.max(now, random.pick(ends) + random.between(-1, 1))
    const days = random.pick([1, 1, 4, 4, 9, 35])
    return (
      now + random.pick([1, 400, 1000, minuteMillis, 11 * minuteMillis, 31 * minuteMillis, ...two(days * dayMillis)])
    )
  }
}
