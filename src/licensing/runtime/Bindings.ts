/** Converts a request's description of its machine to the binding that rules decide on. */
import { canonicalize } from "../../contract/api/CanonicalJson.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { sha256Hex } from "../../platform/signing/Digest.ts"
import type { Binding } from "../model/Binding.ts"
import { digestsOf } from "../model/BindingDigests.ts"
import type { MachineRequest } from "./RuntimeRequests.ts"

const containerIds = ["cluster_id", "namespace", "pod_name", "container_id"] as const

const missingContainer = refuse(
  "VALIDATION_ERROR",
  "A container is identified by its ids: send at least one of cluster_id, namespace, pod_name and container_id.",
  "container_id"
)
const missingFingerprint = refuse(
  "VALIDATION_ERROR",
  "A machine is identified by its fingerprint: send one, or is_container: true for a container.",
  "fingerprint"
)

export const bindingOf = (
  request: MachineRequest,
  ip_address: string | undefined
): Binding | Refusal<"VALIDATION_ERROR"> => {
  const key = request.is_container === true ? containerKey(request) : request.fingerprint
  if (key === undefined) return request.is_container === true ? missingContainer : missingFingerprint
  const { fingerprint, hostname, os, container_id, cluster_id, namespace, pod_name, app_version } = request
  return {
    kind: request.is_container === true ? "container" : "hardware",
    key,
    fingerprint,
    hostname,
    os,
    container_id,
    cluster_id,
    namespace,
    pod_name,
    app_version,
    is_vm: request.is_vm ?? false,
    is_container: request.is_container ?? false,
    ip_address,
    // Functions, because they take microseconds, and only new devices need the hash and only events the digests.
    hash: () => sha256Hex(key),
    redacted: () => digestsOf(request)
  }
}

/** SHA-256 over the canonical JSON of the given ids, so that a client may send them in any order. */
const containerKey = (request: MachineRequest): string | undefined => {
  const ids = Object.fromEntries(containerIds.flatMap((id) => (request[id] === undefined ? [] : [[id, request[id]]])))
  return Object.keys(ids).length === 0 ? undefined : sha256Hex(canonicalize(ids))
}
