/** What the runtime operations take (contract, "Runtime shapes"). */
import { Schema } from "effect"
import { PositiveCount } from "../api/Int64.ts"
import { Text } from "../api/Text.ts"

const given = (length: number) => Schema.optionalKey(Text(length).check(Schema.isMinLength(1)))

const binding = {
  fingerprint: Schema.optionalKey(
    Text(512)
      .check(Schema.isMinLength(1))
      .annotate({ description: "Names the machine; needed unless is_container is true. At most 512 characters." })
  ),
  hostname: given(255),
  os: given(255),
  is_vm: Schema.optionalKey(Schema.Boolean),
  is_container: Schema.optionalKey(Schema.Boolean),
  container_id: given(255),
  cluster_id: given(255),
  namespace: given(255),
  pod_name: given(255),
  app_version: given(255)
}

export const BindingRequest = Schema.Struct(binding).annotate({
  identifier: "RuntimeBindingRequest",
  description:
    "Names the machine by its fingerprint, or the container instance by at least one of cluster_id, namespace, pod_name and container_id."
})
export type BindingRequest = typeof BindingRequest.Type

export const LeaseRequest = Schema.Struct({
  lease_token: Text(255).check(Schema.isMinLength(1)).annotate({ description: "The token that the checkout answered." })
}).annotate({ identifier: "FloatingLeaseRequest" })
export type LeaseRequest = typeof LeaseRequest.Type

export const ConsumeRequest = Schema.Struct({
  ...binding,
  feature_code: Text(64).check(Schema.isMinLength(1)),
  event_id: Text(255)
    .check(Schema.isMinLength(1))
    .annotate({ description: "The caller's id of this use; the same id counts once per license, for ever." }),
  amount: Schema.optionalKey(PositiveCount.annotate({ description: "What is used; 1 unless given.", default: 1 }))
}).annotate({ identifier: "ConsumeRequest" })
export type ConsumeRequest = typeof ConsumeRequest.Type
