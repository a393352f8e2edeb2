/** What a search over all records finds: at most twenty records in all. */
import { Schema } from "effect"
import { Text } from "../../contract/api/Text.ts"
import { BulkJob } from "../../licensing/bulk/BulkJob.ts"
import { Device } from "../../licensing/model/Device.ts"
import { License } from "../../licensing/model/License.ts"
import { Order } from "../../vendor/commerce/Order.ts"
import { Subscription } from "../../vendor/commerce/Subscription.ts"
import { Customer } from "../../vendor/customers/Customer.ts"

export const SearchText = Text(512)
  .check(Schema.isPattern(/\S/u, { message: "Expected at least one character that is no space" }))
  .annotate({
    description:
      "A license key, its last four characters, a part of a customer's name or e-mail, a customer's code, a device's fingerprint or host name, the external id of an order or subscription, or the id of a license, customer or bulk job. Keys and fingerprints are compared by their digests and not logged."
  })

export const SearchResults = Schema.Struct({
  licenses: Schema.Array(License).annotate({
    description: "The licenses that match, or that a found customer, device, order or subscription belongs to."
  }),
  customers: Schema.Array(Customer).annotate({
    description: "Customers by a part of their name or e-mail, by code or id."
  }),
  devices: Schema.Array(Device).annotate({ description: "Devices with this fingerprint or host name." }),
  orders: Schema.Array(Order).annotate({ description: "Orders with this external id." }),
  subscriptions: Schema.Array(Subscription).annotate({ description: "Subscriptions with this external id." }),
  bulk_jobs: Schema.Array(BulkJob).annotate({ description: "The bulk job with this id." })
}).annotate({ identifier: "SearchResults", description: "The records that were found, by their kind." })
export type SearchResults = typeof SearchResults.Type
