/** The management operations on a license's devices. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { expandOf, listQuery } from "../../contract/api/Paging.ts"
import { BodyOptional, Decoding, PathTables } from "../../contract/api/Requests.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"
import { Device, DeviceBindingKind, DeviceReset, DeviceStatus, deviceExpandable, deviceSorts } from "../model/Device.ts"

const text = Schema.optionalKey(Schema.String)
const params = { id: Schema.String, device_id: Schema.String }

const action = (verb: "blacklist" | "unblacklist", summary: string, description: string) =>
  HttpApiEndpoint.post(verb, `/licenses/:id/devices/:device_id/${verb}`, {
    params,
    success: Data(Device),
    error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT", "DEVICE_STATE_CONFLICT")
  }).annotateMerge(operation({ id: `${verb}Device`, summary, description, scopes: ["device:write"] }))

const all = HttpApiEndpoint.get("listAll", "/devices", {
  query: listQuery(deviceSorts, {
    license_id: text,
    product_id: text,
    status: Schema.optionalKey(DeviceStatus),
    binding_kind: Schema.optionalKey(DeviceBindingKind),
    hostname: text,
    fingerprint: text,
    last_seen_after: Schema.optionalKey(Timestamp),
    last_seen_before: Schema.optionalKey(Timestamp),
    expand: Schema.optionalKey(expandOf(deviceExpandable))
  }),
  success: Paged(Device)
}).annotateMerge(
  operation({
    id: "listAllDevices",
    summary: "List the devices of all licenses",
    description:
      "With last_seen_after, last_seen_before, or a status other than reset and blacklisted, a page before the last may have fewer rows than limit, even none: continue until next_cursor is null.",
    scopes: ["license:read"],
    reach: "rows"
  })
)

export class DevicesApi extends HttpApiGroup.make("devices")
  .add(
    all,
    HttpApiEndpoint.get("list", "/licenses/:id/devices", {
      params: { id: Schema.String },
      query: listQuery(deviceSorts, {
        status: Schema.optionalKey(DeviceStatus),
        binding_kind: Schema.optionalKey(DeviceBindingKind)
      }),
      success: Paged(Device),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "listDevices", summary: "List a license's devices", scopes: ["license:read"] })),
    HttpApiEndpoint.get("get", "/licenses/:id/devices/:device_id", {
      params,
      success: Data(Device),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getDevice", summary: "Get a device", scopes: ["license:read"] })),
    HttpApiEndpoint.post("reset", "/licenses/:id/devices/:device_id/reset", {
      params,
      payload: DeviceReset,
      success: Data(Device),
      error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT", "DEVICE_STATE_CONFLICT")
    })
      .annotateMerge(
        operation({
          id: "resetDevice",
          summary: "Reset a device",
          description:
            "Frees its slot and seat; it may be activated again. A borrowed seat stays taken until its borrowed_until, unless release_borrowed is true.",
          scopes: ["device:write"]
        })
      )
      .annotate(BodyOptional, true),
    action(
      "blacklist",
      "Blacklist a device",
      "Frees its slot and seat, unless the seat is borrowed, and blocks it from every runtime operation."
    ),
    action("unblacklist", "Lift a device's blacklisting", "The device becomes reset and may be activated again.")
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "licenses", device_id: "devices" })
  .annotate(OpenApi.Description, "The machines and container instances that a license is bound to.") {}
