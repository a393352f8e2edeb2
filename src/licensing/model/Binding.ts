/** The machine or container instance that a runtime request comes from, in the form that rules read. */
import type { BindingName } from "./LicenseRecords.ts"

export interface Binding extends BindingName {
  readonly fingerprint?: string | undefined
  readonly hostname?: string | undefined
  readonly os?: string | undefined
  readonly container_id?: string | undefined
  readonly cluster_id?: string | undefined
  readonly namespace?: string | undefined
  readonly pod_name?: string | undefined
  readonly is_vm: boolean
  readonly is_container: boolean
  readonly app_version?: string | undefined
  readonly ip_address?: string | undefined
  /** SHA-256 of the binding key, lower-case hex. */
  hash(): string
  /** The fields that identify the machine, each as a short digest: the form that events and logs may contain. */
  redacted(): { readonly [member: string]: string }
}
