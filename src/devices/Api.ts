/** The management operations on a license's devices. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Data, Paged } from "../api/Envelope.ts"
import { failures } from "../api/Failure.ts"
import { pageQuery } from "../api/Paging.ts"
import { Decoding, PathTables } from "../api/Requests.ts"
import { Idempotency } from "../auth/Idempotency.ts"
import { ManagementAuthorization, operation } from "../auth/Management.ts"
import { Device, DeviceBindingKind, DeviceStatus } from "./Device.ts"

export class DevicesApi extends HttpApiGroup.make("devices")
  .add(
    HttpApiEndpoint.get("list", "/licenses/:id/devices", {
      params: { id: Schema.String },
      query: {
        ...pageQuery,
        status: Schema.optionalKey(DeviceStatus),
        binding_kind: Schema.optionalKey(DeviceBindingKind)
      },
      success: Paged(Device),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "listDevices", summary: "List a license's devices", scopes: ["license:read"] })),
    HttpApiEndpoint.get("get", "/licenses/:id/devices/:device_id", {
      params: { id: Schema.String, device_id: Schema.String },
      success: Data(Device),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getDevice", summary: "Get a device", scopes: ["license:read"] }))
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "licenses", device_id: "devices" })
  .annotate(OpenApi.Description, "The machines and container instances that a license is bound to.") {}
