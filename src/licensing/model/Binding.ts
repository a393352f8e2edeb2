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
  /** Short digests of the fields that identify the machine, for events and logs. */
  redacted(): { readonly [member: string]: string }
}
