/** The refusals of a consumption that are about the feature and its quota, in order. */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import type { ConsumeCommand } from "../../../src/licensing/rules/Consumption.ts"
import type { Rows } from "./Licenses.ts"

/** A code, and whether it applies to the request. */
export type RefusalCheck<Command> = readonly [code: Code, stops: (rows: Rows, command: Command, now: number) => boolean]

const assigned = ({ assignments }: Rows, { feature_code }: ConsumeCommand) =>
  assignments.find((assignment) => assignment.feature_code === feature_code)

/** The earlier use of the event id, as "feature amount". */
const countedAs = ({ ledger }: Rows, { event_id }: ConsumeCommand) =>
  ledger.filter((entry) => entry.event_id === event_id).map(({ feature_id, amount }) => `${feature_id} ${amount}`)[0]

const isNew = (rung: RefusalCheck<ConsumeCommand>): RefusalCheck<ConsumeCommand> => [
  rung[0],
  (rows, command, now) => countedAs(rows, command) === undefined && rung[1](rows, command, now)
]

export const usage: ReadonlyArray<RefusalCheck<ConsumeCommand>> = [
  [
    "EVENT_ID_CONFLICT",
    (rows, command) =>
      (countedAs(rows, command) ?? `feat_${command.feature_code} ${command.amount}`) !==
      `feat_${command.feature_code} ${command.amount}`
  ],
  isNew(["FEATURE_NOT_ENTITLED", (rows, command) => assigned(rows, command) === undefined]),
  isNew(["FEATURE_DISABLED", (rows, command) => assigned(rows, command)?.enabled === false]),
  isNew(["FEATURE_EXPIRED", (rows, command, now) => (assigned(rows, command)?.expires_at ?? now + 1) <= now]),
  isNew([
    "USAGE_LIMIT_EXCEEDED",
    (rows, command) => {
      const { max_consumptions, total_consumptions = 0 } = assigned(rows, command) ?? {}
      return (
        max_consumptions !== undefined && BigInt(total_consumptions) + BigInt(command.amount) > BigInt(max_consumptions)
      )
    }
  ]),
  isNew([
    "VALIDATION_ERROR",
    (rows, command) =>
      [rows.license.total_consumptions, assigned(rows, command)?.total_consumptions ?? 0].some(
        (total) => BigInt(total) + BigInt(command.amount) >= 2n ** 53n
      )
  ])
]
