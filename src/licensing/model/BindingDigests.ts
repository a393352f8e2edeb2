/** The digests of a binding that events and logs may contain. */
import { redacted } from "../../platform/signing/Digest.ts"
import type { DeviceRecord } from "./LicenseRecords.ts"

const identifyingMembers = ["fingerprint", "hostname", "container_id", "cluster_id", "namespace", "pod_name"] as const
type Identification = Pick<DeviceRecord, (typeof identifyingMembers)[number]>

export const digestsOf = (binding: Identification) =>
  Object.fromEntries(
    identifyingMembers.flatMap((member) => (binding[member] === undefined ? [] : [[member, redacted(binding[member])]]))
  )
