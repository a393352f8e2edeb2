/** Lists of LicenseSpring's Management API v1. */
import { Predicate, Schema } from "effect"
import {
  customerOf,
  daysOf,
  given,
  Id,
  Instant,
  instantText,
  Limit,
  licenseResources,
  reader,
  readPages,
  resourceOf
} from "./ServicePages.ts"

const idOf = (id: string | number) => `licensespring-${id}`

const Metadata = Schema.Record(Schema.String, Schema.Unknown)

const Customer = Schema.Struct({
  id: given(Id),
  email: given(Schema.String),
  first_name: given(Schema.String),
  last_name: given(Schema.String),
  company_name: given(Schema.String),
  metadata: given(Metadata)
})

const License = Schema.Struct({
  id: Id,
  // Not described by a schema: a fault would quote it.
  license_key: Schema.Unknown,
  product: Schema.Struct({ id: Id, product_name: Schema.String, short_code: Schema.String }),
  customer: given(Customer),
  enabled: given(Schema.Boolean),
  license_type: given(Schema.String),
  start_date: given(Instant),
  validity_period: given(Instant),
  valid_duration: given(Schema.String),
  maintenance_period: given(Instant),
  max_activations: given(Limit),
  allow_unlimited_activations: given(Schema.Boolean),
  is_floating: given(Schema.Boolean),
  is_floating_cloud: given(Schema.Boolean),
  floating_users: given(Limit),
  order_store_id: given(Schema.String),
  note: given(Schema.String),
  metadata: given(Metadata),
  custom_fields: given(
    Schema.Array(
      Schema.Struct({ name: given(Schema.String), product_custom_field: given(Id), value: given(Schema.String) })
    )
  ),
  created_at: given(Instant)
})

const Device = Schema.Struct({
  id: Id,
  license: Schema.Struct({ id: Id }),
  hardware_id: given(Schema.String),
  hostname: given(Schema.String),
  os: given(Schema.String),
  external_ip: given(Schema.String),
  device_active: given(Schema.Boolean),
  blacklisted: given(Schema.Boolean),
  time_activated: given(Instant),
  last_check: given(Instant),
  created_at: given(Instant)
})

const customerResource = ({ company_name, email, first_name, id, last_name, metadata }: typeof Customer.Type) =>
  customerOf("licensespring", id == null ? undefined : idOf(id), {
    ...{ email, firstName: first_name, lastName: last_name },
    metadata: { ...metadata, ...(company_name ? { company: company_name } : undefined) }
  })

/** A value of a license names the field of its product by id. */
const fieldName = ({ name, product_custom_field: id }: { name?: string | null; product_custom_field?: unknown }) =>
  name ?? `custom_field_${id}`

const licenseOf = (license: typeof License.Type) => {
  const { custom_fields: fields, license_type: type, note, order_store_id: order, product } = license
  const customer = license.customer ? customerResource(license.customer) : undefined
  const isFloating = license.is_floating === true || license.is_floating_cloud === true
  const hasTerm = type !== "perpetual" && type !== "consumption"
  return [
    resourceOf("products", idOf(product.id), { name: product.product_name, code: product.short_code }),
    ...(customer === undefined ? [] : [customer]),
    ...licenseResources({
      ...{ id: idOf(license.id), key: license.license_key, productId: idOf(product.id), customerId: customer?.id },
      ...{ status: "ACTIVE", suspended: license.enabled === false },
      created: instantText(license.created_at),
      starts: instantText(license.start_date),
      expiry: instantText(license.validity_period),
      maintenanceExpiry: instantText(license.maintenance_period),
      termDays: hasTerm ? daysOf(license.valid_duration) : undefined,
      maxMachines: license.allow_unlimited_activations === true ? 0 : (license.max_activations ?? 1),
      maxFloatingUsers: isFloating ? (license.floating_users ?? undefined) : undefined,
      metadata: {
        ...license.metadata,
        ...Object.fromEntries((fields ?? []).map((field) => [fieldName(field), field.value ?? ""])),
        ...(order ? { order } : undefined),
        ...(note ? { note } : undefined)
      }
    })
  ]
}

const statusOf = ({ blacklisted, device_active }: typeof Device.Type) =>
  blacklisted === true ? "blacklisted" : device_active === false ? "deactivated" : undefined

export const licenseSpringPage = readPages(
  {
    customers: reader(Customer, (customer) => [customerResource(customer) ?? []].flat()),
    licenses: reader(License, licenseOf),
    devices: reader(Device, (device) => [
      resourceOf(
        "machines",
        idOf(device.id),
        {
          ...{ fingerprint: device.hardware_id, hostname: device.hostname, platform: device.os },
          ...{ ip: device.external_ip, deviceStatus: statusOf(device) },
          ...{ created: instantText(device.time_activated ?? device.created_at) },
          lastHeartbeat: instantText(device.last_check)
        },
        { license: idOf(device.license.id) }
      )
    ])
  },
  (document) => (Predicate.isReadonlyObject(document) ? document["results"] : document),
  (document) => (Predicate.isReadonlyObject(document) ? document["count"] : undefined)
)
