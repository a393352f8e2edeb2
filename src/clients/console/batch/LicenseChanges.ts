/** The changes that can be made to many licenses, and how each is taken back. */
import { Effect, Exit, Schema } from "effect"
import { refuse } from "../../../contract/api/Failure.ts"
import type { License } from "../../../licensing/model/License.ts"
import { LicenseRenew } from "../../../licensing/model/RenewalRequests.ts"
import { Client } from "../../client/Client.ts"
import { type FieldsOf, lastDay, number } from "../parts/Fields.tsx"
import { type Payload, send } from "../service/Service.ts"

export type Renewal = Payload<"renewLicense">

type Sent = Effect.Effect<License, unknown, Client>

export interface LicenseChange {
  readonly label: string
  readonly danger?: true
  /** What happens to so many licenses. */
  readonly effect: (licenses: string) => string
  /** What the licenses are once it is done. */
  readonly done: string
  /** Why other licenses stay as they are. */
  readonly others: string
  readonly isFor: (license: License) => boolean
  readonly fields: FieldsOf<Renewal>
  readonly initial?: Partial<Renewal>
  /** Whether the values are right for any license. */
  readonly check: (values: Renewal) => Exit.Exit<unknown, unknown>
  readonly send: (license: License, values: Renewal) => Sent
  /** Whether it changes a license as that is now: what was so already is not taken back. */
  readonly moves: (license: License) => boolean
  readonly takeBack: (before: License, after: License) => Sent
}

const suspend = ({ id }: License) => send("suspendLicense", { params: { id } })
const reinstate = ({ id }: License) => send("reinstateLicense", { params: { id } })
const renew = ({ id }: License, payload: Renewal) => send("renewLicense", { params: { id }, payload })

export const readLicense = (id: string): Sent => send("getLicense", { params: { id } })

/** Gives a license its earlier expiry, unless somebody has changed it again. */
const restoreExpiry = ({ expires_at, id }: License, after: License) =>
  Effect.gen(function* () {
    const current = yield* readLicense(id)
    // An earlier attempt did it, and its response was lost.
    if (current.expires_at === expires_at) return current
    if (current.expires_at !== after.expires_at)
      return yield* refuse("CONFLICT", "Somebody changed the expiry since: look at the license and edit it there.")
    const payload = { expires_at: expires_at ?? null }
    return yield* Client.ifUnchanged(current)(send("updateLicense", { params: { id }, payload }))
  })

/** Types of licenses that can be renewed. */
const renewable: ReadonlySet<string> = new Set(["subscription", "time_limited", "trial"])

export const licenseChanges: ReadonlyArray<LicenseChange> = [
  {
    label: "Suspend",
    danger: true,
    effect: (licenses) =>
      `${licenses} will stop working at once, and their floating seats end. Devices stay, and the licenses can be reinstated.`,
    done: "suspended",
    others: "suspended or revoked already",
    isFor: ({ status }) => status !== "suspended" && status !== "revoked",
    moves: ({ status }) => status !== "suspended",
    fields: {},
    check: Exit.succeed,
    send: suspend,
    takeBack: reinstate
  },
  {
    label: "Reinstate",
    effect: (licenses) =>
      `${licenses} will work again, each in the state that its dates give. Devices need no new activation.`,
    done: "reinstated",
    others: "not suspended",
    isFor: ({ status }) => status === "suspended",
    moves: ({ status }) => status === "suspended",
    fields: {},
    check: Exit.succeed,
    send: reinstate,
    takeBack: suspend
  },
  {
    label: "Extend",
    effect: (licenses) =>
      `${licenses} will expire later. Those that have expired work again at once; suspended ones stay suspended.`,
    done: "extended",
    others: "revoked, or of a type that does not expire",
    isFor: ({ expanded, status }) =>
      status !== "revoked" && renewable.has(expanded?.policy?.license_type ?? "subscription"),
    moves: () => true,
    fields: {
      extend_by_days: number("Days to add", { hint: "They count from each expiry, or from today if it has passed." }),
      expires_at: lastDay("Or until the end of", { hint: "Give either days or a date." })
    },
    initial: { extend_by_days: 30 },
    check: Schema.encodeUnknownExit(LicenseRenew),
    send: renew,
    takeBack: restoreExpiry
  }
]
