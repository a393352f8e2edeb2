/** A line of a recorded history, as `checker/main.go` reads it: one request. */

export type Operation =
  | "begin"
  | "period end"
  | "activate"
  | "deactivate"
  | "validate"
  | "consume"
  | "suspend"
  | "reinstate"
  | "move"
  | "reset"

export interface Line {
  /** The license's id. */
  readonly history: string
  readonly client: number
  readonly operation: Operation
  /** Milliseconds. */
  readonly sent: number
  readonly answered?: number
  readonly outcome: "acknowledged" | "refused" | "unknown"
  /** Of a refusal. */
  readonly code?: string
  readonly machine?: number
  /** event_id or Idempotency-Key: the call takes effect once. */
  readonly once?: string
  readonly amount?: number
  /** What the answer says is consumed. */
  readonly consumed?: number
  readonly quota?: number
  readonly reset_consumed?: boolean
  /** max_activations of the policy. */
  readonly activations?: number
}
