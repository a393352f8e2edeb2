/** The request bodies of the runtime operations. */
import { Schema } from "effect"
import { PositiveCount } from "../../contract/api/Int64.ts"
import { pageQuery } from "../../contract/api/Paging.ts"
import { Email, isMinCharacters, noncePattern, Text } from "../../contract/api/Text.ts"
import { Instant } from "../../contract/api/Timestamp.ts"

const optionalText = (length: number) => Schema.optionalKey(Text(length).check(isMinCharacters(1)))

export const productCode = Schema.optionalKey(
  Text(64).check(isMinCharacters(1)).annotate({
    description: "The code of the application's product. A license of another product is refused: PRODUCT_MISMATCH."
  })
)

/** Fields of all runtime requests. */
const common = {
  nonce: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(noncePattern, { message: "Expected 1 to 128 printable ASCII characters" })
    ).annotate({
      description:
        "A text of the caller's own, different in each request. The signed response repeats it, which shows that it is no earlier response. 1 to 128 printable ASCII characters."
    })
  ),
  product_code: productCode
}

/** Fields that identify a machine or container instance, and its application's version. */
export const machineFields = {
  fingerprint: Schema.optionalKey(
    Text(512).check(isMinCharacters(1)).annotate({
      description: "Identifies the machine; required unless is_container is true. At most 512 characters."
    })
  ),
  hostname: optionalText(255),
  os: optionalText(255),
  is_vm: Schema.optionalKey(Schema.Boolean),
  is_container: Schema.optionalKey(Schema.Boolean),
  container_id: optionalText(255),
  cluster_id: optionalText(255),
  namespace: optionalText(255),
  pod_name: optionalText(255),
  app_version: optionalText(255)
}

const binding = { ...common, ...machineFields }

export const BindingRequest = Schema.Struct(binding).annotate({
  identifier: "RuntimeBindingRequest",
  description:
    "Identifies the machine by its fingerprint, or the container instance by at least one of cluster_id, namespace, pod_name and container_id."
})
export type BindingRequest = typeof BindingRequest.Type

export const OfflineRequest = Schema.Struct({
  ...binding,
  activate: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether a device that is not active is activated first.", default: false })
  )
}).annotate({ identifier: "OfflineRequest" })
export type OfflineRequest = typeof OfflineRequest.Type

export const borrowUntil = Schema.optionalKey(
  Instant("Until when the seat is borrowed: it needs no heartbeats and no connection. At most borrow_days_max ahead.")
)

export const CheckoutRequest = Schema.Struct({
  ...binding,
  until: borrowUntil
}).annotate({ identifier: "FloatingCheckoutRequest" })
export type CheckoutRequest = typeof CheckoutRequest.Type

export const OwnDeviceRequest = Schema.Struct(common).annotate({ identifier: "OwnDeviceRequest" })
/** With the id in the path. */
export type OwnDeviceRequest = typeof OwnDeviceRequest.Type & { readonly device_id: string }

export const OwnDevicesQuery = Schema.Struct({ ...pageQuery, ...common })
export type OwnDevicesQuery = typeof OwnDevicesQuery.Type

export const TrialRequest = Schema.Struct({
  nonce: common.nonce,
  product_code: Text(64).check(isMinCharacters(1)).annotate({ description: "The code of the application's product." }),
  policy_code: Text(64)
    .check(isMinCharacters(1))
    .annotate({ description: "The code of a policy of the product that has public trials." }),
  binding: Schema.Struct(machineFields).annotate({
    description: "The machine or container instance, as in an activation."
  }),
  customer_email: Schema.optionalKey(Email.annotate({ description: "The user's address, which the license keeps." })),
  send_key: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "True also mails the key to customer_email.", default: false })
  )
}).annotate({ identifier: "TrialRequest" })
export type TrialRequest = typeof TrialRequest.Type

export const LeaseRequest = Schema.Struct({
  ...common,
  lease_token: Text(255).check(isMinCharacters(1)).annotate({ description: "The token from the checkout's response." })
}).annotate({ identifier: "FloatingLeaseRequest" })
export type LeaseRequest = typeof LeaseRequest.Type

export const ConsumeRequest = Schema.Struct({
  ...binding,
  feature_code: Text(64).check(isMinCharacters(1)),
  event_id: Text(255).check(isMinCharacters(1)).annotate({
    description: "The caller's id of this use. The same id is counted once per license, without a time limit."
  }),
  amount: Schema.optionalKey(PositiveCount.annotate({ description: "The amount used; 1 by default.", default: 1 })),
  reverses: Schema.optionalKey(
    Text(255).check(isMinCharacters(1)).annotate({
      description:
        "The event_id of a consumption to take back as a whole, in the period in which it was consumed. Without amount."
    })
  )
})
  .check(
    Schema.makeFilter(
      ({ amount, reverses }) =>
        amount === undefined ||
        reverses === undefined || {
          path: ["amount"],
          issue: "Expected no amount: a reversal takes back the whole consumption"
        }
    )
  )
  .annotate({ identifier: "ConsumeRequest" })
export type ConsumeRequest = typeof ConsumeRequest.Type

export type MachineRequest = TrialRequest["binding"]

/** The fields that the runtime reads in all requests. */
export type RuntimeRequest = Pick<LeaseRequest, "nonce" | "product_code">
