/** The preview of a change of one license: its request, its response, and the operation. */
import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { operation } from "../../access/Management.ts"
import { Data } from "../../contract/api/Envelope.ts"
import { type Code, statuses } from "../../contract/api/ErrorCode.ts"
import { failures } from "../../contract/api/Failure.ts"
import { Count } from "../../contract/api/Int64.ts"
import { Reference } from "../../contract/api/Text.ts"
import { License, LicenseTransfer } from "../model/License.ts"
import { LicenseFeature } from "../model/LicenseFeature.ts"
import { LicenseMaintenance } from "../model/RenewalRequests.ts"
import { BulkAction, otherParameter, parameterFault, parameters } from "./BulkJob.ts"

const { customer_email, customer_id, customer_name, reset_devices } = LicenseTransfer.fields
const { maintenance_expires_at } = LicenseMaintenance.fields

const ofDevice = Schema.Struct({ device_id: Reference })

/** The changes of one license that no bulk job makes, each with its request and the part of it that decides something. */
const single = {
  transfer: {
    request: LicenseTransfer,
    takes: ["customer_id", "customer_email", "customer_name", "reset_devices", "release_borrowed"]
  },
  maintenance: { request: LicenseMaintenance, takes: ["maintenance_expires_at", "extend_by_days"] },
  reset_device: { request: ofDevice, takes: ["device_id", "release_borrowed"] },
  blacklist_device: { request: ofDevice, takes: ["device_id"] }
} as const
type Single = keyof typeof single

const PreviewAction = Schema.Literals([
  ...BulkAction.literals,
  ...(Object.keys(single) as ReadonlyArray<Single>)
]).annotate({
  identifier: "LicensePreviewAction",
  description:
    "The actions of bulk jobs, and of single licenses: a transfer, a renewal of the maintenance, a reset or blacklisting of a device."
})
export type PreviewAction = typeof PreviewAction.Type

const PreviewParameters = Schema.Struct({
  ...parameters.fields,
  customer_id,
  customer_email,
  customer_name,
  reset_devices,
  maintenance_expires_at,
  device_id: Schema.optionalKey(Reference)
}).annotate({
  description:
    "The parameters of bulk jobs. Of transfer: the owner's fields, reset_devices and release_borrowed. Of maintenance: exactly one of maintenance_expires_at and extend_by_days. Of reset_device and blacklist_device: device_id; of reset_device also release_borrowed."
})
export type PreviewParameters = typeof PreviewParameters.Type

interface Requested {
  readonly action: PreviewAction
  readonly parameters?: PreviewParameters
}

const isSingle = (action: PreviewAction): action is Single => Object.hasOwn(single, action)

const previewFault = ({ action, parameters = {} }: Requested) => {
  if (!isSingle(action)) return parameterFault({ action, parameters })
  const { request, takes } = single[action]
  const other = otherParameter(takes, action, parameters)
  if (other !== undefined) return other
  const isWhole = Schema.is(request as Schema.Codec<unknown>)(parameters)
  return isWhole ? undefined : { path: ["parameters"], issue: `Expected the parameters that ${action} needs` }
}

export const LicensePreviewRequest = Schema.Struct({
  action: PreviewAction,
  parameters: Schema.optionalKey(PreviewParameters)
})
  .annotate({ description: "A change as its operation or a bulk job makes it." })
  .check(Schema.makeFilter(previewFault))
  .annotate({ identifier: "LicensePreviewRequest" })
export type LicensePreviewRequest = typeof LicensePreviewRequest.Type

const State = Schema.Struct({
  license: License,
  features: Schema.Array(LicenseFeature).annotate({ description: "By their codes." }),
  live_leases: Count.annotate({ description: "The floating seats that are taken." })
}).annotate({ identifier: "LicensePreviewState", description: "A license with its features and what is used of it." })

export const LicensePreview = Schema.Struct({
  admitted: Schema.Boolean.annotate({ description: "Whether the change would be made." }),
  code: Schema.optionalKey(
    Schema.Literals(Object.keys(statuses) as ReadonlyArray<Code>).annotate({
      description: "The code of the refusal, if it would be refused."
    })
  ),
  message: Schema.optionalKey(Schema.String.annotate({ description: "The message of the refusal." })),
  detail: Schema.optionalKey(Schema.String.annotate({ description: "The detail of the refusal." })),
  changed: Schema.Boolean.annotate({ description: "Whether the change would alter the license." }),
  before: State,
  after: Schema.optionalKey(State.annotate({ description: "Absent if the change would be refused." }))
}).annotate({ identifier: "LicensePreview", description: "What a change would do to a license." })
export type LicensePreview = typeof LicensePreview.Type

export const preview = HttpApiEndpoint.post("preview", "/licenses/:id/preview", {
  params: { id: Schema.String },
  payload: LicensePreviewRequest,
  success: Data(LicensePreview),
  error: failures("NOT_FOUND", "VALIDATION_ERROR")
}).annotateMerge(
  operation({
    id: "previewLicenseChange",
    summary: "Preview a change of a license",
    description:
      "Decides a change by the rules of the operation of the same name and returns the license before and after it, or the refusal. Changes and records nothing.",
    scopes: ["license:write"]
  })
)
