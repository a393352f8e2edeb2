/** The facts in a signed refusal, in addition to code and message. A client can verify and show them. */
import { Schema } from "effect"
import { Count } from "./Int64.ts"

const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))
const instant = (description: string) =>
  Schema.optionalKey(Schema.String.annotate({ format: "date-time", description }))
const count = (description: string) => Schema.optionalKey(Count.annotate({ description }))

export const RefusalFacts = Schema.Struct({
  license_id: text("The license of the request's key."),
  product_id: text("The license's product."),
  issued_at: instant("When the refusal was signed."),
  nonce: text("The request's nonce, if it had one."),
  status: text("The license's status."),
  starts_at: instant("When the license starts."),
  expires_at: instant("When the license expires, or has expired."),
  access_ends_at: instant("When access ends: the expiry and the policy's grace after it."),
  eligible_through: instant("Versions released until then belong to the license."),
  quota: count("The feature's quota."),
  consumed: count("What is consumed of the quota."),
  remaining: count("What remains of the quota."),
  extra_credits: count("The bought credits that are left."),
  overage: count("What is consumed beyond the quota and bought credits."),
  resets_at: instant("When the quota begins anew."),
  until_max: instant("Until when a seat can be borrowed now."),
  max: count("The limit that is reached."),
  used: count("What is in use of the limit."),
  retry_after_seconds: count("Seconds after which the same request may succeed.")
})
export type RefusalFacts = typeof RefusalFacts.Type
