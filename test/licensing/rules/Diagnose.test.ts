import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import type { RuntimeCommand } from "../../../src/licensing/rules/Admission.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { type DiagnoseCommand, diagnose } from "../../../src/licensing/rules/Diagnose.ts"
import { checkout } from "../../../src/licensing/rules/Floating.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { activations, checkouts, consumptions, requests } from "../../support/rules/CommandArbitraries.ts"
import { rows as anyRows, mostly } from "../../support/rules/LicenseArbitraries.ts"
import { perform } from "../../support/rules/LicenseRules.ts"
import { activationOf, keyHash, noon, productCode, type Rows } from "../../support/rules/Licenses.ts"

const refusalOf = <Command, Reply, C extends Code>(
  rows: Rows,
  rule: Rule<Command, Reply, C>,
  command: NoInfer<Command>
) => {
  const { refused } = perform(rows, rule, command, noon)
  return refused === undefined ? { admitted: true } : { admitted: false, code: refused.code, message: refused.message }
}

/** The operation, asked right after the diagnosis, decides as the diagnosis says; so does an activation. */
const agrees = <Command extends RuntimeCommand, Reply, C extends Code>(
  operation: DiagnoseCommand["operation"],
  rule: Rule<Command, Reply, C>,
  commands: fc.Arbitrary<
    Command & { readonly feature_code?: string; readonly amount?: number; readonly until?: number | undefined }
  >
) =>
  it(`decides as ${operation} does`, () => {
    fc.assert(
      fc.property(
        anyRows,
        commands,
        mostly<string | undefined>(undefined, productCode, "other"),
        (rows, any, named) => {
          const command = { ...any, keyHash, productCode: named }
          const { binding, feature_code, amount = 1, until } = command
          const question = {
            operation,
            activate: "activation" in command,
            binding,
            product_code: named,
            app_version: binding.app_version,
            feature_code,
            amount,
            until
          }
          const { changes, reply } = perform(rows, diagnose, question, noon)
          assert.deepStrictEqual(changes, {})
          const { activation, admitted, checks, code, message } = reply!
          const decided = code === undefined ? { admitted } : { admitted, code, message }
          assert.deepStrictEqual(decided, refusalOf(rows, rule, command))
          assert.strictEqual(checks.find(({ passed }) => !passed)?.code, code)
          if (operation === "validate" && admitted) assert.isUndefined(activation)
          if (activation === undefined) return
          const activating = { ...activationOf(binding), keyHash, productCode: named, binding }
          assert.deepStrictEqual({ ...activation }, refusalOf(rows, activate, activating))
        }
      ),
      { numRuns: 400 }
    )
  })

describe("a diagnosis", () => {
  agrees("activate", activate, activations)
  agrees("validate", validate, requests)
  agrees("check", check, requests)
  agrees(
    "consume",
    consume,
    consumptions.map((command) => ({ ...command, event_id: "new" }))
  )
  agrees("checkout", checkout, checkouts(requests))
  agrees("offline", issueOffline, requests)
  agrees(
    "offline",
    issueOffline,
    requests.map((command) => ({ ...command, activation: activationOf(command.binding) }))
  )
})
