/** Random commands of the back office, and the records that they may link to. */
import * as fc from "fast-check"
import type { Binding } from "../../src/licenses/model/Binding.ts"
import type { LinkRecord } from "../../src/licenses/model/LicenseRecords.ts"
import type { DeviceCommand } from "../../src/licenses/rules/DeviceActions.ts"
import type { RotateKeyCommand } from "../../src/licenses/rules/KeyRotation.ts"
import type { RenewCommand } from "../../src/licenses/rules/Renewal.ts"
import type { TransferCommand } from "../../src/licenses/rules/Transfer.ts"
import type { UpdateCommand } from "../../src/licenses/rules/Update.ts"
import type { UsageResetCommand } from "../../src/licenses/rules/UsageReset.ts"
import { day, deviceOf, keyHash, minute, noon } from "./Licenses.ts"

/** All that there is beside the license. */
export const linkable: ReadonlyArray<LinkRecord> = [
  { kind: "customer", id: "cust_a" },
  { kind: "customer", id: "cust_b" },
  { kind: "order", id: "ord_1", product_id: "prod_1", subscription_id: "sub_1" },
  { kind: "order", id: "ord_foreign", product_id: "prod_2" },
  { kind: "subscription", id: "sub_1", product_id: "prod_1" },
  { kind: "subscription", id: "sub_2", product_id: "prod_1" }
]

export const edits: fc.Arbitrary<UpdateCommand> = fc.record(
  {
    customer_name: fc.constantFrom(null, "Ada"),
    starts_at: fc.constantFrom(null, noon + minute),
    expires_at: fc.constantFrom(null, noon - day, noon + day, noon + 90 * day),
    maintenance_expires_at: fc.constantFrom(null, noon + day),
    metadata: fc.constantFrom({}, { note: "edited" })
  },
  { requiredKeys: [] }
)

export const renewals: fc.Arbitrary<RenewCommand> = fc
  .tuple(
    fc.oneof(
      fc.record({ extend_by_days: fc.constantFrom(1, 30, 400) }),
      fc.record({ expires_at: fc.constantFrom(noon - day, noon + day, noon + 30 * day, noon + 90 * day) })
    ),
    fc.record(
      {
        order_id: fc.constantFrom("ord_1", "ord_1", "ord_foreign", "ord_unheard-of"),
        subscription_id: fc.constantFrom("sub_1", "sub_1", "sub_2", "sub_unheard-of")
      },
      { requiredKeys: [] }
    )
  )
  .map(([end, links]) => ({ ...end, ...links }))

export const transfers: fc.Arbitrary<TransferCommand> = fc.record(
  {
    customer_id: fc.constantFrom("", "cust_a", "cust_b", "cust_unheard-of"),
    customer_email: fc.constantFrom("a@example.com", "b@example.com"),
    customer_name: fc.constantFrom("Ada", "Bob"),
    reset_devices: fc.boolean()
  },
  { requiredKeys: [] }
)

export const usageResets: fc.Arbitrary<UsageResetCommand> = fc
  .tuple(
    fc.oneof(
      fc.record({ feature_id: fc.constantFrom("feat_api", "feat_export", "feat_unheard-of") }),
      fc.record({ feature_code: fc.constantFrom("api", "reports", "unheard-of") })
    ),
    fc.record(
      {
        max_consumptions: fc.constantFrom(0, 5, 100),
        add_credits: fc.constantFrom(1, 10, Number.MAX_SAFE_INTEGER),
        total_consumptions: fc.constantFrom(0, 4, 60)
      },
      { requiredKeys: [] }
    ),
    fc.boolean()
  )
  .map(([target, amounts, reset_consumed]) => ({ ...target, ...amounts, reset_consumed }))

/** Mostly the key that all requests come with, so that they are not refused for ever after. */
export const rotations: fc.Arbitrary<RotateKeyCommand> = fc
  .constantFrom(keyHash, keyHash, keyHash, "f".repeat(64))
  .map((key_hash) => ({ key_hash, license_key_prefix: "LK-11111", license_key_last4: "2222" }))

export const deviceCommands = (bindings: ReadonlyArray<Binding>): fc.Arbitrary<DeviceCommand> =>
  fc.constantFrom(...bindings.map((binding) => ({ device_id: deviceOf(binding).id })), { device_id: "dev_unheard-of" })
