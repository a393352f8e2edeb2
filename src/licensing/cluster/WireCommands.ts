/** Commands on their way between nodes: which may be handed over, and how the owner makes a command of what it receives. */
import { Exit } from "effect"
import type { Code } from "../../contract/api/ErrorCode.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { sha256Hex } from "../../platform/signing/Digest.ts"
import type { HandedSpan } from "../../platform/telemetry/Traces.ts"
import type { PendingCommand } from "../engine/PendingCommand.ts"
import type { Binding } from "../model/Binding.ts"
import { digestsOf } from "../model/BindingDigests.ts"
import { activate, check, deactivate, validate } from "../rules/Activation.ts"
import { consume } from "../rules/Consumption.ts"
import { checkin, checkout, heartbeat } from "../rules/Floating.ts"
import type { Rule } from "../rules/LicenseCommand.ts"
import type { HandedOver, RefusalParts } from "./Wire.ts"

type AnyRule = Rule<unknown, unknown, Code>

/**
 * The operations that are handed over. Each may be decided twice without harm if the second decision knows that it may be the
 * second: see `isRepeated`.
 */
const rules: ReadonlyMap<string, AnyRule> = new Map(
  [activate, validate, check, consume, deactivate, checkout, heartbeat, checkin].map((rule) => [
    rule.name,
    rule as unknown as AnyRule
  ])
)

export const toWire = (
  id: number,
  licenseId: string,
  { command, origin, rule, signs }: PendingCommand,
  span: HandedSpan | null
): HandedOver => [
  id,
  rule.name,
  licenseId,
  command,
  origin.request_id,
  origin.ip_address ?? null,
  signs?.nonce ?? null,
  span
]

/** The operations that change nothing, or only times: their second decision holds like a first one. */
const reading: ReadonlySet<string> = new Set([validate.name, check.name])

const mayBeExecuted = refuse(
  "NOT_READY",
  "Another node may have carried out the request, and its answer was lost: send the request again."
)

/**
 * The command to decide again, after the owner may have executed it. If it did, and another change was made after it, such as a
 * suspension, the second decision can be a refusal, which would tell the client that nothing was changed.
 */
export const repeated = (command: PendingCommand): PendingCommand => ({
  ...command,
  command: { ...(command.command as object), isRepeated: true },
  resume: (result) => {
    const isUnknown = Exit.isFailure(result) && !Exit.hasDies(result) && !reading.has(command.rule.name)
    command.resume(isUnknown ? Exit.fail(mayBeExecuted) : result)
  }
})

type Received = Pick<PendingCommand, "rule" | "command" | "origin">

/** Undefined if this node does not know the operation. */
export const fromWire = ([, name, licenseId, command, request_id, address]: HandedOver): Received | undefined => {
  const rule = rules.get(name)
  if (rule === undefined) return undefined
  const ip_address = address ?? undefined
  return {
    rule,
    command: withDigests(command as { readonly binding?: Binding }),
    origin: { actor_type: "license", actor_id: licenseId, request_id, ip_address }
  }
}

/** JSON has no functions. */
const withDigests = (command: { readonly binding?: Binding }): unknown => {
  const { binding } = command
  if (binding === undefined) return command
  binding.hash = () => sha256Hex(binding.key)
  binding.redacted = () => digestsOf(binding)
  return command
}

/** Of a command, or an outcome, that is larger than a frame. */
export const refuseTooLarge = refuse(
  "INTERNAL_ERROR",
  "The request or its response is too large for the service: tell its operator the request id."
)

export const refusalToWire = ({ code, detail, facts, isRecorded, message }: Refusal): RefusalParts =>
  ({ code, message, detail, facts, isRecorded }) as RefusalParts

export const refusalFromWire = ({ code, detail, facts, isRecorded, message }: RefusalParts): Refusal =>
  refuse(code, message, detail, {
    ...(facts === undefined ? undefined : { facts }),
    ...(isRecorded === undefined ? undefined : { isRecorded })
  })
