/** The preview of a change of one license: its request, its response, and the operation. */
import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { operation } from "../../access/Management.ts"
import { Data } from "../../contract/api/Envelope.ts"
import { type Code, statuses } from "../../contract/api/ErrorCode.ts"
import { failures } from "../../contract/api/Failure.ts"
import { Count } from "../../contract/api/Int64.ts"
import { License } from "../model/License.ts"
import { LicenseFeature } from "../model/LicenseFeature.ts"
import { BulkAction, parameterFault, parameters } from "./BulkJob.ts"

export const LicensePreviewRequest = Schema.Struct({ action: BulkAction, parameters: Schema.optionalKey(parameters) })
  .annotate({ description: "A change as a bulk job makes it." })
  .check(Schema.makeFilter(parameterFault))
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
  changed: Schema.Boolean.annotate({ description: "Whether the license would differ; false if it is so already." }),
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
