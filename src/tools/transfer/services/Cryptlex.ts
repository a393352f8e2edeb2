/** Lists of Cryptlex's Web API v3. */
import { Schema } from "effect"
import {
  customerOf,
  daysOf,
  given,
  Instant,
  instantText,
  Limit,
  licenseResources,
  reader,
  readPages,
  resourceOf
} from "./ServicePages.ts"

const Metadata = given(Schema.Array(Schema.Struct({ key: Schema.String, value: Schema.String })))
const metadataOf = (list: typeof Metadata.Type | undefined) =>
  Object.fromEntries((list ?? []).map(({ key, value }) => [key, value]))

const Product = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  displayName: given(Schema.String),
  metadata: Metadata,
  createdAt: given(Instant)
})

const userFields = {
  email: given(Schema.String),
  firstName: given(Schema.String),
  lastName: given(Schema.String)
}
const User = Schema.Struct({
  id: Schema.String,
  ...userFields,
  role: given(Schema.String),
  metadata: Metadata,
  createdAt: given(Instant)
})

const License = Schema.Struct({
  id: Schema.String,
  // Not described by a schema: a fault would quote it.
  key: Schema.Unknown,
  productId: Schema.String,
  userId: given(Schema.String),
  user: given(Schema.Struct({ id: given(Schema.String), ...userFields })),
  revoked: given(Schema.Boolean),
  suspended: given(Schema.Boolean),
  type: given(Schema.String),
  /** 0 and -1 are unlimited. */
  allowedActivations: given(Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1))),
  allowedFloatingClients: given(Limit),
  allowVmActivation: given(Schema.Boolean),
  allowContainerActivation: given(Schema.Boolean),
  /** Seconds, before subscriptions had intervals. */
  validity: given(Limit),
  subscriptionInterval: given(Schema.String),
  expiresAt: given(Instant),
  maintenanceExpiresAt: given(Instant),
  metadata: Metadata,
  createdAt: given(Instant)
})

const Activation = Schema.Struct({
  id: Schema.String,
  licenseId: Schema.String,
  fingerprint: given(Schema.String),
  hostname: given(Schema.String),
  os: given(Schema.String),
  ipAddress: given(Schema.String),
  metadata: Metadata,
  lastSyncedAt: given(Instant),
  createdAt: given(Instant)
})

const daySeconds = 86_400

/** No number of seats is unlimited here. */
const seatsMax = 2_147_483_647

/** What a license forbids, and only policies can forbid here. */
const prohibitions = ["allowVmActivation", "allowContainerActivation"] as const

const licenseOf = (license: typeof License.Type) => {
  const { allowedActivations: slots, type, user, userId, validity } = license
  const customer = user ? customerOf("cryptlex", userId ?? user.id ?? undefined, user) : undefined
  const isHosted = type === "hosted-floating"
  const hosted = slots != null && slots <= 0 ? seatsMax : slots
  const seats = isHosted ? hosted : type === "on-premise-floating" ? license.allowedFloatingClients : undefined
  return [
    ...(customer === undefined ? [] : [customer]),
    ...licenseResources({
      ...{ id: license.id, key: license.key, productId: license.productId },
      customerId: customer?.id ?? userId ?? undefined,
      status: license.revoked === true ? "REVOKED" : "ACTIVE",
      suspended: license.suspended === true,
      created: instantText(license.createdAt),
      expiry: instantText(license.expiresAt),
      maintenanceExpiry: instantText(license.maintenanceExpiresAt),
      termDays: daysOf(license.subscriptionInterval) ?? (validity ? Math.ceil(validity / daySeconds) : undefined),
      maxMachines: isHosted ? 0 : Math.max(0, slots ?? 1),
      maxFloatingUsers: seats ?? undefined,
      metadata: metadataOf(license.metadata),
      unread: prohibitions.filter((name) => license[name] === false)
    })
  ]
}

export const cryptlexPage = readPages(
  {
    products: reader(Product, ({ createdAt, displayName, id, metadata, name }) => [
      resourceOf("products", id, {
        name: displayName || name,
        metadata: metadataOf(metadata),
        created: instantText(createdAt)
      })
    ]),
    users: reader(User, ({ createdAt, id, metadata, role, ...user }) => [
      customerOf("cryptlex", id, {
        ...user,
        ...{ role: role ?? "user", metadata: metadataOf(metadata), created: instantText(createdAt) }
      })!
    ]),
    licenses: reader(License, licenseOf),
    activations: reader(Activation, ({ createdAt, id, ipAddress, lastSyncedAt, licenseId, metadata, os, ...rest }) => [
      resourceOf(
        "machines",
        id,
        {
          ...rest,
          ...{ platform: os, ip: ipAddress, metadata: metadataOf(metadata) },
          ...{ created: instantText(createdAt), lastHeartbeat: instantText(lastSyncedAt) }
        },
        { license: licenseId }
      )
    ])
  },
  (document) => document
)
