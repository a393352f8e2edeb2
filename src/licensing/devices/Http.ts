import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { Devices } from "./Devices.ts"
import { ExpandedDevices } from "./ExpandedDevices.ts"

export const DevicesHttp = operationGroup(
  Api,
  "devices",
  Effect.fn(function* (handlers) {
    const all = yield* ExpandedDevices
    const devices = yield* Devices
    return handlers.handleAll({
      listAll: ({ query }) => all.list(query),
      list: ({ params, query }) => devices.list(params.id, query),
      get: ({ params }) => devices.get(params.id, params.device_id),
      reset: ({ params, payload }) => devices.reset(params.id, params.device_id, payload),
      blacklist: ({ params }) => devices.blacklist(params.id, params.device_id),
      unblacklist: ({ params }) => devices.unblacklist(params.id, params.device_id)
    })
  })
)
