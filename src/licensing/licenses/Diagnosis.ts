/** The request and the response of a diagnosis: the request of a support case, and the result of each check. */
import { Schema } from "effect"
import { type Code, statuses } from "../../contract/api/ErrorCode.ts"
import { PositiveCount } from "../../contract/api/Int64.ts"
import { isMinCharacters, Text } from "../../contract/api/Text.ts"
import { LicenseStatus } from "../model/License.ts"
import { machineFields } from "../runtime/RuntimeRequests.ts"

export const LicenseDiagnose = Schema.Struct({
  ...machineFields,
  feature_code: Schema.optionalKey(Text(64).check(isMinCharacters(1))),
  amount: Schema.optionalKey(
    PositiveCount.annotate({ description: "The amount of the feature to use; 1 by default.", default: 1 })
  )
}).annotate({ identifier: "LicenseDiagnoseRequest" })
export type LicenseDiagnose = typeof LicenseDiagnose.Type

const RefusalCode = Schema.Literals(Object.keys(statuses) as ReadonlyArray<Code>)

export const LicenseDiagnosis = Schema.Struct({
  admitted: Schema.Boolean.annotate({ description: "Whether every check passed." }),
  code: Schema.optionalKey(
    RefusalCode.annotate({ description: "The code of the refusal: that of the first failed check." })
  ),
  message: Schema.optionalKey(
    Schema.String.annotate({ description: "The sentence of the refusal, as the application is told." })
  ),
  status: LicenseStatus,
  checks: Schema.Array(
    Schema.Struct({
      name: Schema.String.annotate({ description: "The name of the check." }),
      passed: Schema.Boolean.annotate({ description: "Whether the check passed." }),
      code: Schema.optionalKey(RefusalCode.annotate({ description: "The code of the failed check." })),
      detail: Schema.optionalKey(
        Schema.String.annotate({ description: "Why the check failed, and what the vendor can do." })
      )
    })
  ).annotate({
    description: "The checks in the order of refusals; those that the request gives no value for are absent."
  })
}).annotate({
  identifier: "LicenseDiagnosis",
  description: "What the service would decide about a request, check by check."
})
