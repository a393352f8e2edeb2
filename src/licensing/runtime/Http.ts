import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"

import { LicenseCredential } from "./credentials/RuntimeAuthorization.ts"
import { Runtime } from "./Runtime.ts"
import { Trials } from "./Trials.ts"

export const RuntimeHttp = operationGroup(
  Api,
  "runtime",
  Effect.fn(function* (handlers) {
    const runtime = yield* Runtime
    const trials = yield* Trials
    return handlers.handleAll({
      activate: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.activate(license, payload)),
      validate: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.validate(license, payload)),
      check: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.check(license, payload)),
      consume: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.consume(license, payload)),
      deactivate: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.deactivate(license, payload)),
      offline: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.offline(license, payload)),
      listOwnDevices: ({ query }) => Effect.flatMap(LicenseCredential, (license) => runtime.ownDevices(license, query)),
      deactivateOwnDevice: ({ params, payload }) =>
        Effect.flatMap(LicenseCredential, (license) => runtime.deactivateOwn(license, { ...payload, ...params })),
      checkout: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.checkout(license, payload)),
      heartbeat: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.heartbeat(license, payload)),
      trial: ({ payload }) => trials.start(payload),
      checkin: ({ payload }) => Effect.flatMap(LicenseCredential, (license) => runtime.checkin(license, payload))
    })
  })
)
