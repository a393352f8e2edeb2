/** What a client asks for next: drawn by its seed, with what it remembers of earlier answers. */
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { Message } from "./Caller.ts"
import { type Catalog, featureCode, type SoldLicense } from "./Catalog.ts"
import type { Call, Operation } from "./History.ts"

/** A request without credential and request id. */
export type Drawn = Omit<Call, "attempts" | "client"> & Pick<Message, "method" | "path" | "body">

export interface Memory {
  readonly client: number
  readonly round: string
  readonly licenses: ReadonlyArray<SoldLicense>
  readonly catalog: Catalog
  /** The licenses at which its machine is active, as far as it knows. */
  readonly activated: Set<string>
  /** Tokens of leases, by license; with their hashes. */
  readonly leases: Map<string, { readonly token: string; readonly hash: string }>
  /** Consumptions sent before. */
  readonly consumptions: Array<{ readonly license: string; readonly eventId: string; readonly amount: number }>
  sent: number
}

const weights: Record<Operation, number> = {
  consume: 40,
  validate: 10,
  activate: 12,
  deactivate: 4,
  checkout: 8,
  heartbeat: 5,
  checkin: 6,
  create: 3,
  suspend: 1,
  reinstate: 3,
  reset: 2,
  limits: 2
}

const repeatShare = 0.15
const activatesShare = 0.7

export const draw = (memory: Memory, random: RandomSource): Drawn => {
  const operation = random.weighted(weights)
  memory.sent++
  const { id } = random.pick(memory.licenses)
  const isUse = operation === "consume" || operation === "validate"
  // An application that is not active activates first, now and then it does not.
  if (isUse && !memory.activated.has(id) && random.chance(activatesShare)) return requests.activate(memory, id, random)
  return requests[operation](memory, id, random)
}

const runtime = (operation: Operation, license: string, body: object) =>
  ({ operation, license, method: "POST", path: `/license/${operation}`, body }) as const

const machineOf = ({ client }: Memory) => `machine-${client}`
const keyOf = ({ client, round, sent }: Memory) => `${round}-${client}-${sent}`

/** A change of the first license, so that the others stay in use. */
const stateChange = (operation: "suspend" | "reinstate") => (memory: Memory) => {
  const [license] = memory.licenses
  const key = keyOf(memory)
  return {
    operation,
    license: license!.id,
    key,
    method: "POST",
    path: `/licenses/${license!.id}/${operation}`
  } as const
}

/** A floating operation on the client's lease, or a checkout if it has none. */
const onLease =
  (operation: "heartbeat" | "checkin") =>
  (memory: Memory, license: string, random: RandomSource): Drawn => {
    const lease = memory.leases.get(license)
    if (lease === undefined) return requests.checkout(memory, license, random)
    const path = `/license/floating/${operation}`
    return { ...runtime(operation, license, { lease_token: lease.token }), path, tokenHash: lease.hash }
  }

type Draw = (memory: Memory, license: string, random: RandomSource) => Drawn

const onMachine =
  (operation: "activate" | "deactivate" | "validate"): Draw =>
  (memory, license) => {
    const fingerprint = machineOf(memory)
    return { ...runtime(operation, license, { fingerprint }), fingerprint }
  }

const requests: Record<Operation, Draw> = {
  activate: onMachine("activate"),
  deactivate: onMachine("deactivate"),
  validate: onMachine("validate"),
  consume: (memory, license, random) => {
    const fingerprint = machineOf(memory)
    const fresh = { license, eventId: keyOf(memory), amount: random.between(1, 3) }
    const isRepeat = memory.consumptions.length > 0 && random.chance(repeatShare)
    const use = isRepeat ? random.pick(memory.consumptions) : fresh
    if (!isRepeat) memory.consumptions.push(fresh)
    const body = { fingerprint, feature_code: featureCode, event_id: use.eventId, amount: use.amount }
    return { ...runtime("consume", use.license, body), fingerprint, eventId: use.eventId, amount: use.amount }
  },
  checkout: (memory, license) => {
    const fingerprint = `seat-${memory.client}`
    return { ...runtime("checkout", license, { fingerprint }), path: "/license/floating/checkout", fingerprint }
  },
  heartbeat: onLease("heartbeat"),
  checkin: onLease("checkin"),
  create: (memory) => {
    const key = keyOf(memory)
    const { policyId, productId } = memory.catalog
    const metadata = { round: memory.round, request: key }
    const body = { product_id: productId, policy_id: policyId, metadata }
    return { operation: "create", license: "", key, method: "POST", path: "/licenses", body }
  },
  suspend: stateChange("suspend"),
  reinstate: stateChange("reinstate"),
  reset: (memory, license, random) => {
    const body = {
      feature_code: featureCode,
      add_credits: random.between(1, 50),
      ...(random.chance(0.3) && { reset_consumed: true })
    }
    return {
      operation: "reset",
      license,
      key: keyOf(memory),
      method: "POST",
      path: `/licenses/${license}/usage/reset`,
      body
    }
  },
  limits: (memory, license, random) => {
    const key = keyOf(memory)
    const body = {
      max_activations: random.between(6, 11),
      max_floating_users: random.between(3, 6),
      // Each edit changes something, so that each has its event.
      metadata: { round: memory.round, edit: key }
    }
    return { operation: "limits", license, key, method: "PATCH", path: `/licenses/${license}`, body }
  }
}
