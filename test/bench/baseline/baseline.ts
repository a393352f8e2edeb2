/**
 * The baseline that the service is measured against: the same operations as a careful engineer writes them by hand in a
 * day. Fastify, node-postgres with prepared statements, node:crypto, and for every counted operation one transaction
 * with row locks. Same routes, same envelopes, real Ed25519 signatures over canonical bytes.
 *
 *   DATABASE_URL=postgres://… PORT=8090 TOKEN=… node test/bench/baseline/baseline.ts
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto"
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import pg from "pg"
import { floatingRoutes } from "./baseline-floating.ts"
import { type Assignment, type Device, type License, schema, statements } from "./baseline-sql.ts"

const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"] ?? "", max: 16 })
const app = Fastify()

const sha256 = (text: string | Buffer) => createHash("sha256").update(text).digest()
const newId = (prefix: string) => `${prefix}_${randomBytes(12).toString("hex")}`
const now = () => new Date()

const signingKey = generateKeyPairSync("ed25519")
const publicKey = signingKey.publicKey.export({ type: "spki", format: "der" }).subarray(-32)
const kid = sha256(publicKey).toString("hex").slice(0, 16)

class Refusal extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}
const refuse = (status: number, code: string): never => {
  throw new Refusal(status, code)
}

const meta = () => ({ request_id: newId("req"), timestamp: now().toISOString() })

const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const record = value as Record<string, unknown>
  const members = Object.keys(record).filter((name) => record[name] !== undefined)
  return `{${members
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(record[name])}`)
    .join(",")}}`
}

/** Signs once and sends exactly the bytes that were signed. */
const answerSigned = (reply: FastifyReply, data: object) => {
  const bytes = canonical(data)
  const value = sign(null, Buffer.from(bytes), signingKey.privateKey).toString("base64")
  return reply
    .type("application/json")
    .send(
      `{"data":${bytes},"signature":${JSON.stringify({ alg: "Ed25519", kid, value })},"meta":${JSON.stringify(meta())}}`
    )
}

app.setErrorHandler((error, _, reply) => {
  const { status, code } = error instanceof Refusal ? error : { status: 500, code: "INTERNAL_ERROR" }
  if (status === 500) process.stderr.write(`${error}\n`)
  return reply.code(status).send({ error: { code, message: code }, meta: meta() })
})

type Client = pg.Pool | pg.PoolClient

/** Named statements are prepared once per connection. */
const query = async <Row>(client: Client, name: keyof typeof statements, values: ReadonlyArray<unknown>) =>
  (await client.query<Row>({ name, text: statements[name], values })).rows

const transaction = async <A>(work: (client: pg.PoolClient) => Promise<A>): Promise<A> => {
  const client = await pool.connect()
  try {
    await client.query("BEGIN")
    const result = await work(client)
    await client.query("COMMIT")
    return result
  } catch (error) {
    await client.query("ROLLBACK")
    throw error
  } finally {
    client.release()
  }
}

const credential = (request: FastifyRequest, scheme: string): string | undefined => {
  const [given, secret] = (request.headers.authorization ?? "").split(" ")
  return given === scheme ? secret : undefined
}

/** The license of the key, if it may be used now. */
const admitted = async (client: Client, request: FastifyRequest, name: "license" | "licenseLocked") => {
  const key = credential(request, "License")
  if (key === undefined) throw new Refusal(401, "LICENSE_KEY_MISSING")
  const [license] = await query<License>(client, name, [sha256(key)])
  if (license === undefined) throw new Refusal(401, "LICENSE_KEY_INVALID")
  if (license.status !== "active") throw new Refusal(403, "LICENSE_SUSPENDED")
  if (license.expires_at !== null && license.expires_at <= now()) throw new Refusal(403, "LICENSE_EXPIRED")
  return license
}

const activeDevice = async (client: Client, license: License, fingerprint: string) => {
  const [device] = await query<Device>(client, "device", [license.id, fingerprint])
  if (device === undefined) throw new Refusal(404, "DEVICE_NOT_FOUND")
  if (device.status !== "active") throw new Refusal(403, "DEVICE_NOT_ACTIVE")
  return device
}

const common = (license: License, device_id: string) => ({
  license_id: license.id,
  status: license.status,
  license_type: license.license_type,
  entitlement_version: Number(license.entitlement_version),
  issued_at: now().toISOString(),
  device_id,
  expires_at: license.expires_at?.toISOString()
})

const featuresNow = async (client: Client, license: License) => {
  const assignments = await query<Assignment>(client, "assignments", [license.id])
  return assignments.map(({ code, enabled, max_consumptions, total_consumptions }) => {
    if (max_consumptions === null) return { code, enabled }
    const [quota, consumed] = [Number(max_consumptions), Number(total_consumptions)]
    return { code, enabled, quota, consumed, remaining: quota - consumed }
  })
}

const entitlementNow = async (client: Client, license: License, device: Device) => ({
  ...common(license, device.id),
  next_check_at: new Date(Date.now() + license.validation_interval_minutes * 60_000).toISOString(),
  features: await featuresNow(client, license)
})

interface Binding {
  readonly fingerprint: string
}

app.post<{ Body: Binding }>("/api/v1/license/activate", async (request, reply) => {
  const data = await transaction(async (client) => {
    const license = await admitted(client, request, "licenseLocked")
    const { fingerprint } = request.body
    const [known] = await query<Device>(client, "device", [license.id, fingerprint])
    if (known?.status === "active" && known.holds_slot) return entitlementNow(client, license, known)
    if (license.max_activations > 0 && license.active_device_count >= license.max_activations) {
      throw new Refusal(403, "ACTIVATION_LIMIT_REACHED")
    }
    const at = now()
    const [device] = await query<Device>(client, "activate", [newId("dev"), license.id, fingerprint, at])
    await query(client, "countActivation", [license.id])
    await query(client, "event", ["license.activated", license.id, { device_id: device!.id }, at])
    return entitlementNow(client, license, device!)
  })
  return answerSigned(reply, data)
})

app.post<{ Body: Binding }>("/api/v1/license/validate", async (request, reply) => {
  const license = await admitted(pool, request, "license")
  const device = await activeDevice(pool, license, request.body.fingerprint)
  await query(pool, "seen", [device.id, now()])
  return answerSigned(reply, await entitlementNow(pool, license, device))
})

interface Consumption extends Binding {
  readonly feature_code: string
  readonly event_id: string
  readonly amount?: number
}

app.post<{ Body: Consumption }>("/api/v1/license/consume", async (request, reply) => {
  const data = await transaction(async (client) => {
    const license = await admitted(client, request, "licenseLocked")
    const { fingerprint, feature_code, event_id, amount = 1 } = request.body
    const device = await activeDevice(client, license, fingerprint)
    const [assignment] = await query<Assignment>(client, "assignment", [license.id, feature_code])
    if (!assignment?.enabled) throw new Refusal(403, "FEATURE_NOT_ENTITLED")
    const used = Number(assignment.total_consumptions) + amount
    if (assignment.max_consumptions !== null && used > Number(assignment.max_consumptions)) {
      throw new Refusal(403, "USAGE_LIMIT_EXCEEDED")
    }
    const at = now()
    const usage = [license.id, event_id, assignment.feature_id, amount, used, at]
    // An event id that was counted before returns no row: nothing more is written then.
    if ((await query(client, "usage", usage)).length === 1) {
      await query(client, "countUsage", [license.id, assignment.feature_id, used])
      await query(client, "countTotal", [license.id, amount])
      await query(client, "event", ["usage.consumed", license.id, { feature_code, event_id, amount }, at])
    }
    return entitlementNow(client, license, device)
  })
  return answerSigned(reply, data)
})

floatingRoutes(app, { admitted, answerSigned, common, featuresNow, newId, now, query, refuse, sha256, transaction })

const tokenHash = sha256(process.env["TOKEN"] ?? "")
const management = {
  preHandler: async (request: FastifyRequest) => {
    if (!sha256(credential(request, "Bearer") ?? "").equals(tokenHash)) throw new Refusal(401, "TOKEN_INVALID")
  }
}

type Body = Readonly<Record<string, unknown>>
interface ById {
  Params: { readonly id: string }
  Body: Body
}

const create = async (reply: FastifyReply, prefix: string, name: keyof typeof statements, values: Array<unknown>) => {
  const id = newId(prefix)
  await query(pool, name, [id, ...values])
  reply.code(201)
  return id
}

app.post<{ Body: Body }>("/api/v1/products", management, async ({ body }, reply) => ({
  data: { id: await create(reply, "prod", "createProduct", [body["name"], body["code"]]) },
  meta: meta()
}))
app.post<ById>("/api/v1/products/:id/policies", management, async ({ body, params }, reply) => {
  const values = [params.id, body["name"], body["code"], body["license_type"], body["max_activations"] ?? 1]
  values.push(body["max_floating_users"] ?? 0)
  return { data: { id: await create(reply, "pol", "createPolicy", values) }, meta: meta() }
})
app.post<ById>("/api/v1/products/:id/features", management, async ({ body, params }, reply) => ({
  data: { id: await create(reply, "feat", "createFeature", [params.id, body["name"], body["code"]]) },
  meta: meta()
}))
app.post<{ Body: Body }>("/api/v1/licenses", management, async ({ body }, reply) => {
  const license_key = `LK-${randomBytes(20).toString("hex").toUpperCase()}`
  const values = [body["product_id"], body["policy_id"], sha256(license_key), body["expires_at"] ?? null]
  return { data: { license: { id: await create(reply, "lic", "createLicense", values) }, license_key }, meta: meta() }
})
app.post<ById>("/api/v1/licenses/:id/features", management, async ({ body, params }) => {
  await query(pool, "assign", [params.id, body["feature_id"], body["max_consumptions"] ?? null])
  return { data: { license_id: params.id, feature_id: body["feature_id"] }, meta: meta() }
})
app.get<ById>("/api/v1/licenses/:id", management, async ({ params }) => {
  const [license] = await query<License>(pool, "licenseById", [params.id])
  if (license === undefined) throw new Refusal(404, "NOT_FOUND")
  const { id, active_device_count, times_activated, total_consumptions } = license
  const counters = { active_device_count, times_activated, total_consumptions: Number(total_consumptions) }
  return { data: { id, ...counters }, meta: meta() }
})
app.get<ById>("/api/v1/licenses/:id/leases", management, async ({ params }) => ({
  data: await query(pool, "liveLeases", [params.id, now()]),
  page_info: { next_cursor: null },
  meta: meta()
}))
app.get("/api/v1/system/public-keys", async () => {
  const key = { kid, algorithm: "Ed25519", public_key: publicKey.toString("base64"), status: "active" }
  return { data: [key], page_info: { next_cursor: null }, meta: meta() }
})
app.get("/readyz", async () => ({ data: { status: "ready" }, meta: meta() }))

await pool.query(schema)
await app.listen({ host: "127.0.0.1", port: Number(process.env["PORT"] ?? 8090) })
