/** The operations of the contract as a type: types cannot read the annotations that have the operationIds. */
import { operations } from "../../src/clients/client/Operations.ts"

export const operationNameFiles = (): Readonly<Record<string, string>> => ({
  "src/clients/client/OperationNames.ts": [
    "/** The group and the name in it of each operation, by its operationId. Generated from the contract. */",
    "export interface OperationNames {",
    ...operations.map(({ endpoint, group, id }) => `  readonly ${id}: readonly ["${group}", "${endpoint}"]`),
    "}",
    ""
  ].join("\n")
})
