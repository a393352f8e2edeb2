/** The binding of this machine or container, as responses name it. */
import type { Binding } from "../texts/Payloads.ts"

export interface BindingHash {
  readonly kind: "hardware" | "container"
  /** SHA-256 of the binding key in lower-case hex. */
  readonly hash: string
}

export const bindingHashOf = async (binding: Binding): Promise<BindingHash> =>
  binding.is_container === true
    ? { kind: "container", hash: await sha256Hex(await sha256Hex(containerText(binding))) }
    : { kind: "hardware", hash: await sha256Hex(binding.fingerprint ?? "") }

/** For texts alone, JSON.stringify with sorted names is canonical JSON (RFC 8785). */
const containerText = ({ cluster_id, container_id, namespace, pod_name }: Binding): string =>
  JSON.stringify({ cluster_id, container_id, namespace, pod_name })

const sha256Hex = async (text: string): Promise<string> => {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")
}
