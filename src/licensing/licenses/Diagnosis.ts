/** The request and the response of a diagnosis: the request of a support case, and the result of each check. */
import { Schema } from "effect"
import { type Code, statuses } from "../../contract/api/ErrorCode.ts"
import { PositiveCount } from "../../contract/api/Int64.ts"
import { isMinCharacters, Text } from "../../contract/api/Text.ts"
import { LicenseStatus } from "../model/License.ts"
import { diagnosed } from "../rules/Diagnose.ts"
import { borrowUntil, machineFields, productCode } from "../runtime/RuntimeRequests.ts"

export const LicenseDiagnose = Schema.Struct({
  ...machineFields,
  product_code: productCode,
  operation: Schema.optionalKey(
    Schema.Literals(diagnosed).annotate({ description: "The operation of the application.", default: diagnosed[0] })
  ),
  until: borrowUntil,
  activate: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Whether offline activates a device that is not active first.",
      default: false
    })
  ),
  feature_code: Schema.optionalKey(Text(64).check(isMinCharacters(1))),
  amount: Schema.optionalKey(
    PositiveCount.annotate({ description: "The amount of the feature to use; 1 by default.", default: 1 })
  )
})
  .annotate({
    description: "An operation's checks need the fields that the operation takes; consume needs feature_code."
  })
  .check(
    Schema.makeFilter(
      ({ feature_code, operation }) =>
        operation !== "consume" || feature_code !== undefined || { path: ["feature_code"], issue: "Missing key" }
    )
  )
  .annotate({ identifier: "LicenseDiagnoseRequest" })
export type LicenseDiagnose = typeof LicenseDiagnose.Type

const RefusalCode = Schema.Literals(Object.keys(statuses) as ReadonlyArray<Code>)

const decision = {
  admitted: Schema.Boolean.annotate({ description: "Whether every check passed." }),
  code: Schema.optionalKey(
    RefusalCode.annotate({ description: "The code of the refusal: that of the first failed check." })
  ),
  message: Schema.optionalKey(
    Schema.String.annotate({ description: "The message of the refusal, as the application gets it." })
  )
}

export const LicenseDiagnosis = Schema.Struct({
  ...decision,
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
  }),
  activation: Schema.optionalKey(
    Schema.Struct(decision).annotate({
      description: "What an activation would decide about the binding, if the binding is not active."
    })
  )
}).annotate({
  identifier: "LicenseDiagnosis",
  description: "What the service would decide about a request, check by check."
})
