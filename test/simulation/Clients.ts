/** Clients and operators: what they send next, from what they can know, and now and then what they sent before. */
import type { Binding } from "../../src/licenses/model/Binding.ts"
import { sha256Hex } from "../../src/signing/Digest.ts"
import type { Dice } from "./Dice.ts"
import { accessEnd, dayMillis, type License, liveLeases, minuteMillis } from "./model/Model.ts"
import type { Plan, Verb } from "./Plan.ts"
import type { Stored } from "./Rows.ts"
import { isOfLicense, type Order } from "./Verbs.ts"
import { keyOf, licenseId, machinesOf, nowhere } from "./World.ts"

/** What was sent lately and may be sent again. */
const historyMax = 40

const unknown = "unheard-of"
const ofDevices: ReadonlySet<Verb> = new Set(["validate", "check", "consume", "offline", "deactivate"])
const ofLeases: ReadonlySet<Verb> = new Set(["heartbeat", "checkin"])
const otherCodes = ["api", "export", "extra", "more", "other", "spare"]

export class Clients {
  private readonly plan: Plan
  private readonly dice: Dice
  private readonly stray: Dice
  private readonly machines: ReadonlyMap<string, ReadonlyArray<Binding>>
  private readonly history: Array<Order> = []
  private readonly eventIds: Array<string> = []
  private made = 0

  constructor(plan: Plan, dice: Dice) {
    this.plan = plan
    this.dice = dice
    this.stray = dice.aside()
    this.machines = new Map(
      plan.licenses.map(({ machines }, index) => [licenseId(index), machinesOf(licenseId(index), machines)])
    )
  }

  /** The next request, in a world that looks like this. `only` narrows what it may be. */
  next(stored: Stored, now: number, only: ReadonlyArray<Verb> = []): Order {
    const { dice } = this
    const request = `req_${++this.made}`
    const node = dice.between(0, this.plan.nodes - 1)
    if (only.length === 0 && this.history.length > 0 && dice.chance(this.plan.repeats)) {
      const again = dice.pick(this.history)
      return { ...again, request, node, isRepeated: true, command: this.renewed(again.command as object) }
    }
    const license = stored.licenses.get(licenseId(dice.between(0, this.plan.licenses.length - 1)))!
    const drawn = only.length === 0 ? (this.remedy(license) ?? dice.weighted(this.plan.verbs)) : dice.pick(only)
    const verb = this.firstOf(drawn, license, stored)
    const [subject, command] = this.draw(verb, license, stored, now)
    const meant: Order = { request, verb, node, subject, command, isRepeated: false, scope: undefined }
    const bare = isOfLicense(meant) && this.stray.chance(this.plan.astray) ? { ...meant, subject: nowhere } : meant
    const order = isOfLicense(bare) && dice.chance(this.plan.kept) ? { ...bare, scope: request } : bare
    if (isOfLicense(order)) this.history.push(order)
    if (this.history.length > historyMax) this.history.shift()
    return order
  }

  /** What an operator does, now and then, about a license that nobody can use. */
  private remedy({ expires, status }: License): Verb | undefined {
    if (!["suspended", "expired"].includes(status) || !this.dice.chance(0.5)) return undefined
    return status === "suspended" ? "reinstate" : expires === null ? undefined : this.dice.pick(["renew", "update"])
  }

  /** A command, or mostly what must come before it: a license without a device gets one first, one without a lease a lease. */
  private firstOf(verb: Verb, license: License, { around }: Stored): Verb {
    const hasSeats = (around.policies.get(license.policy)!.max_floating_users ?? 0) > 0
    if (license.active === 0 && ofDevices.has(verb) && this.dice.chance(0.6)) return "activate"
    const isSeatless = ofLeases.has(verb) && hasSeats && liveLeases(license).length === 0
    return isSeatless && this.dice.chance(0.6) ? "checkout" : verb
  }

  /** A message that is repeated: what the service makes for it is made anew. */
  private renewed(command: object | undefined): unknown {
    if (command === undefined || !("newDeviceId" in command)) return command
    return { ...command, ...this.device(), ...("leaseToken" in command ? this.lease() : undefined) }
  }

  private device = () => ({ newDeviceId: `dev_${++this.made}` })

  private lease = () => {
    const leaseToken = `lease_${++this.made}`
    return { newLeaseId: `lse_${this.made}`, leaseToken, tokenHash: sha256Hex(leaseToken) }
  }

  private draw(verb: Verb, license: License, stored: Stored, now: number): readonly [string, unknown] {
    switch (verb) {
      case "edit policy":
        return [this.dice.pick(this.plan.policies).id, this.policyEdit()]
      case "edit feature":
        return [this.feature(stored), { code: this.dice.pick(otherCodes), name: `name ${this.dice.between(1, 3)}` }]
      case "create feature":
        return ["", { name: "made", code: this.dice.pick(otherCodes) }]
      case "delete feature":
        return [this.unused(stored), undefined]
      case "create version":
        return [
          "",
          { version: `${this.dice.between(1, 4)}.0`, released_at: now + this.dice.pick([-60, 0, 2]) * dayMillis }
        ]
      case "delete version":
        return [this.dice.pick([...stored.versionIds, unknown]), undefined]
      case "sweep expiry":
      case "sweep leases":
      case "sweep heartbeats":
        return ["", undefined]
      default:
        return [license.id, this.command(verb, license, stored, now)]
    }
  }

  private feature = ({ around }: Stored): string => this.dice.pick([...around.features.keys(), unknown])

  /** A feature, of those that no license has where there are any. */
  private unused(stored: Stored): string {
    const licenses = Array.from(stored.licenses.values())
    const left = Array.from(stored.around.features.keys()).filter((id) =>
      licenses.every(({ assignments }) => !assignments.has(id))
    )
    return left.length > 0 && this.dice.chance(0.6) ? this.dice.pick(left) : this.feature(stored)
  }

  private command(verb: Verb, license: License, stored: Stored, now: number): unknown {
    switch (verb) {
      case "activate":
        return { ...this.runtime(license, 0.2), ...this.device() }
      case "validate":
      case "check":
      case "deactivate":
      case "offline":
        return this.runtime(license)
      case "checkout":
        return { ...this.runtime(license, 0.2), ...this.device(), ...this.lease() }
      case "heartbeat":
      case "checkin":
        return { keyHash: this.key(license), tokenHash: this.token(license) }
      case "consume":
        return { ...this.runtime(license), ...this.usage(stored) }
      case "reset device":
      case "blacklist":
      case "unblacklist":
        return { device_id: this.managed(verb, license) }
      default:
        return this.management(verb, license, stored, now)
    }
  }

  private management(verb: Verb, license: License, stored: Stored, now: number): unknown {
    const { dice } = this
    const dates = [now - dayMillis, now + 1, now + minuteMillis, now + dayMillis, now + 30 * dayMillis]
    switch (verb) {
      case "renew":
        return {
          ...(dice.chance(0.5) ? { extend_by_days: dice.pick([1, 30]) } : { expires_at: dice.pick(dates) }),
          ...(dice.chance(0.2) && { order_id: dice.pick(["ord_own", "ord_own", "ord_foreign", unknown]) })
        }
      case "transfer":
        return {
          ...(dice.chance(0.6) && { customer_id: dice.pick(["", "cust_a", "cust_b", "cust_a", unknown]) }),
          ...(dice.chance(0.4) && { customer_name: dice.pick(["Ada", "Bob"]) }),
          reset_devices: dice.chance(0.4),
          ...(dice.chance(0.2) && { newKey: this.rotation(license) })
        }
      case "reset usage":
        return this.usageReset(stored)
      case "rotate key":
        return this.rotation(license)
      case "assign":
        return {
          feature_id: dice.chance(0.05) ? "feat_foreign" : this.feature(stored),
          ...(dice.chance(0.3) && { enabled: dice.chance(0.7) }),
          ...(dice.chance(0.6) && { max_consumptions: dice.pick([null, 0, 5, 10, 50]) }),
          ...(dice.chance(0.2) && { expires_at: dice.pick([null, ...dates]) }),
          ...(dice.chance(0.2) && { metadata: dice.pick([{}, { note: "assigned" }]) })
        }
      case "unassign":
        return { feature_id: this.feature(stored) }
      case "update":
        return {
          ...(dice.chance(0.3) && { customer_name: dice.pick([null, "Ada", "Bob"]) }),
          ...(dice.chance(0.2) && { starts_at: dice.pick([null, now - dayMillis, now + minuteMillis]) }),
          ...(dice.chance(0.5) && { expires_at: dice.pick([null, ...dates, license.expires ?? now]) }),
          ...(dice.chance(0.1) && { maintenance_expires_at: dice.pick([null, ...dates]) }),
          ...(dice.chance(0.2) && { metadata: dice.pick([{}, { note: "edited" }]) })
        }
      default:
        return undefined
    }
  }

  private key = (license: License): string =>
    this.dice.chance(0.97) ? license.key : keyOf(license.id, this.dice.between(0, this.made))

  private token(license: License): string {
    const live = liveLeases(license).map(([token]) => token)
    const others = [...license.leases.keys(), sha256Hex(unknown)]
    return this.dice.pick(live.length > 0 && this.dice.chance(0.7) ? live : others)
  }

  /** What a machine says; `active` is how often it is one that is active already. */
  private runtime(license: License, active = 0.8) {
    const machines = this.machines.get(license.id)!
    const isActive = ({ kind, key }: Binding) => license.devices.get(`${kind}:${key}`)?.status === "active"
    const known = this.dice.chance(active) ? machines.filter(isActive) : []
    const binding = this.dice.pick(known.length > 0 ? known : machines)
    const app_version = this.dice.chance(0.1) ? this.dice.pick(["1.0", "2.0", "3.0", unknown]) : undefined
    return { keyHash: this.key(license), binding: { ...binding, app_version } }
  }

  private managed(verb: Verb, license: License): string {
    const devices = Array.from(license.devices.values())
    const barred = devices.filter(({ status }) => status === "blacklisted")
    const fitting = verb === "unblacklist" && barred.length > 0 ? barred : devices
    return this.dice.chance(0.9) && fitting.length > 0 ? this.dice.pick(fitting).id : unknown
  }

  private usage({ around }: Stored) {
    const { dice } = this
    const isNew = this.eventIds.length === 0 || dice.chance(0.85)
    const event_id = isNew ? `event_${++this.made}` : dice.pick(this.eventIds)
    if (isNew) this.eventIds.push(event_id)
    const feature_code = dice.chance(0.03) ? unknown : dice.pick([...around.features.values(), "api"])
    return { event_id, feature_code, amount: dice.chance(0.01) ? Number.MAX_SAFE_INTEGER : dice.between(1, 6) }
  }

  private usageReset(stored: Stored) {
    const { dice } = this
    const byId = { feature_id: this.feature(stored) }
    const byCode = { feature_code: dice.pick([...stored.around.features.values(), unknown]) }
    const total = dice.pick([{}, { reset_consumed: true }, { total_consumptions: dice.pick([0, 3, 10]) }])
    return {
      ...dice.pick([byId, byCode]),
      ...(dice.chance(0.3) && { max_consumptions: dice.pick([0, 5, 20]) }),
      ...(dice.chance(0.4) && { add_credits: dice.pick([1, 3, 10, 20, Number.MAX_SAFE_INTEGER]) }),
      ...total
    }
  }

  private rotation(license: License) {
    const key_hash = keyOf(license.id, ++this.made)
    return { key_hash, license_key_prefix: "LK-11111", license_key_last4: String(this.made).padStart(4, "0").slice(-4) }
  }

  private policyEdit() {
    const { dice } = this
    const edits = {
      max_activations: dice.pick([0, 1, 2, 3]),
      max_floating_users: dice.pick([null, 0, 1, 2, 3]),
      max_container_instances: dice.pick([null, 0, 1, 2]),
      floating_timeout_minutes: dice.pick([1, 30]),
      grace_period_days: dice.pick([0, 3]),
      validation_interval_minutes: dice.pick([10, 1440]),
      require_heartbeat: dice.chance(0.5),
      allow_offline_activation: dice.chance(0.7),
      allow_vm: dice.chance(0.7),
      allow_container: dice.chance(0.7),
      max_transfers: dice.pick([0, 1, 3])
    }
    return Object.fromEntries(Object.entries(edits).filter(() => dice.chance(0.2)))
  }

  /** Where time may leap to: by some way, right beside an instant at which something ends, or a little back, as clocks are set. */
  leap(stored: Stored, now: number): number {
    const { dice } = this
    if (dice.chance(this.plan.leaps.back)) return now - dice.pick([1, 300, 2000, 10_000])
    const license = dice.pick(Array.from(stored.licenses.values()))
    const policy = stored.around.policies.get(license.policy)!
    const heard = Array.from(license.devices.values(), ({ activated, validated }) =>
      Math.max(activated ?? 0, validated ?? 0)
    )
    const silences = heard.map((at) => at + policy.validation_interval_minutes * minuteMillis + 30_000)
    const assigned = Array.from(license.assignments.values(), ({ expires }) => expires ?? 0)
    const ends = [
      license.expires ?? 0,
      license.starts ?? 0,
      accessEnd(license, policy),
      ...liveLeases(license).map(([, lease]) => lease.ends),
      ...silences,
      ...assigned
    ].filter((end) => end > now && end < now + 40 * dayMillis)
    if (ends.length > 0 && dice.chance(0.6)) return Math.max(now, dice.pick(ends) + dice.between(-1, 1))
    return now + dice.pick([1, 400, 1000, minuteMillis, 11 * minuteMillis, 31 * minuteMillis, dayMillis, 4 * dayMillis])
  }
}
