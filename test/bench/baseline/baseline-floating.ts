/**
 * The baseline's floating leases. A checkout locks the license row, so that seats are counted exactly; a heartbeat and
 * a checkin lock only their lease.
 */
import { randomBytes } from "node:crypto"
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify"
import type pg from "pg"
import type { Lease, License, statements } from "./baseline-sql.ts"

type Client = pg.PoolClient

/** The functions that the routes share with the others. */
interface Shared {
  readonly transaction: <A>(work: (client: Client) => Promise<A>) => Promise<A>
  readonly query: <Row>(
    client: Client,
    name: keyof typeof statements,
    values: ReadonlyArray<unknown>
  ) => Promise<Array<Row>>
  readonly admitted: (client: Client, request: FastifyRequest, name: "license" | "licenseLocked") => Promise<License>
  readonly common: (license: License, deviceId: string) => object
  readonly featuresNow: (client: Client, license: License) => Promise<ReadonlyArray<object>>
  readonly answerSigned: (reply: FastifyReply, data: object) => FastifyReply
  readonly refuse: (status: number, code: string) => never
  readonly newId: (prefix: string) => string
  readonly sha256: (text: string) => Buffer
  readonly now: () => Date
}

interface Held {
  readonly lease_token: string
}

const endOf = ({ floating_timeout_minutes, expires_at }: License, at: Date): Date => {
  const end = new Date(at.getTime() + floating_timeout_minutes * 60_000)
  return expires_at !== null && expires_at < end ? expires_at : end
}

export const floatingRoutes = (app: FastifyInstance, shared: Shared) => {
  const { admitted, answerSigned, common, featuresNow, newId, now, query, refuse, sha256, transaction } = shared

  app.post<{ Body: { readonly fingerprint: string } }>("/api/v1/license/floating/checkout", async (request, reply) => {
    const data = await transaction(async (client) => {
      const license = await admitted(client, request, "licenseLocked")
      if (license.max_floating_users === 0) refuse(403, "FLOATING_NOT_ENABLED")
      const at = now()
      const [device] = await query<{ readonly id: string }>(client, "holder", [
        newId("dev"),
        license.id,
        request.body.fingerprint,
        at
      ])
      // A device with a seat gets the same seat again with a new token.
      await query(client, "supersede", [device!.id, at])
      const [seats] = await query<{ readonly taken: number }>(client, "seats", [license.id, at])
      if (seats!.taken >= license.max_floating_users) refuse(403, "FLOATING_LIMIT_REACHED")
      const lease_token = `lease_${randomBytes(32).toString("base64url")}`
      const values = [newId("lse"), license.id, device!.id, sha256(lease_token), at, endOf(license, at)]
      const [lease] = await query<Lease>(client, "checkout", values)
      await query(client, "event", [
        "lease.checked_out",
        license.id,
        { lease_id: lease!.id, device_id: device!.id },
        at
      ])
      return {
        ...common(license, device!.id),
        lease_token,
        lease_expires_at: lease!.expires_at.toISOString(),
        features: await featuresNow(client, license)
      }
    })
    return answerSigned(reply, data)
  })

  const heldLease = async (client: Client, license: License, { lease_token }: Held): Promise<Lease> => {
    const [lease] = await query<Lease>(client, "leaseLocked", [sha256(lease_token), license.id])
    if (lease === undefined) return refuse(404, "LEASE_NOT_FOUND")
    if (lease.status !== "live") return refuse(409, "LEASE_NOT_ACTIVE")
    return lease.expires_at <= now() ? refuse(403, "LEASE_EXPIRED") : lease
  }

  app.post<{ Body: Held }>("/api/v1/license/floating/heartbeat", async (request, reply) => {
    const data = await transaction(async (client) => {
      const license = await admitted(client, request, "license")
      const lease = await heldLease(client, license, request.body)
      const at = now()
      const end = endOf(license, at)
      await query(client, "heartbeat", [lease.id, at, end])
      await query(client, "holderSeen", [lease.device_id, at])
      const features = await featuresNow(client, license)
      return { ...common(license, lease.device_id), lease_expires_at: end.toISOString(), features }
    })
    return answerSigned(reply, data)
  })

  app.post<{ Body: Held }>("/api/v1/license/floating/checkin", async (request, reply) => {
    const data = await transaction(async (client) => {
      const license = await admitted(client, request, "license")
      const lease = await heldLease(client, license, request.body)
      const at = now()
      await query(client, "checkin", [lease.id, at])
      await query(client, "holderLeft", [lease.device_id, at])
      await query(client, "event", ["lease.checked_in", license.id, { lease_id: lease.id }, at])
      return { ...common(license, lease.device_id), lease_expires_at: at.toISOString() }
    })
    return answerSigned(reply, data)
  })
}
