/** Diagnoses of licenses. The license's actor decides them like runtime requests, without changes. */
import { Context, Effect, Layer } from "effect"
import { isRefusal, type Refusal } from "../../contract/api/Failure.ts"
import { LicenseActors } from "../engine/LicenseActors.ts"
import { type Diagnosis, diagnose } from "../rules/Diagnose.ts"
import { bindingOf } from "../runtime/Bindings.ts"
import type { LicenseDiagnose } from "./Diagnosis.ts"

export class Diagnoses extends Context.Service<
  Diagnoses,
  {
    diagnose(
      id: string,
      request: LicenseDiagnose
    ): Effect.Effect<Diagnosis, Refusal<"NOT_FOUND" | "NOT_READY" | "VALIDATION_ERROR">>
  }
>()("licensing/licensing/licenses/Diagnoses") {
  static readonly layer = Layer.effect(
    Diagnoses,
    Effect.gen(function* () {
      const actors = yield* LicenseActors
      return Diagnoses.of({
        diagnose: Effect.fn("Diagnoses.diagnose")(function* (
          id,
          {
            activate = false,
            amount = 1,
            app_version,
            feature_code,
            operation = "validate",
            product_code,
            until,
            ...machine
          }
        ) {
          const isNamed = Object.values(machine).some((value) => value !== undefined)
          const binding = isNamed ? bindingOf(machine, undefined) : undefined
          if (binding !== undefined && isRefusal(binding)) return yield* binding
          return yield* actors.ask(id, diagnose, {
            activate,
            binding,
            operation,
            product_code,
            app_version,
            feature_code,
            amount,
            until
          })
        })
      })
    })
  )
}
