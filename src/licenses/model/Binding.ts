/** What a runtime request says of the machine or container instance that it comes from, ready for the rules. */
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
  /** The members that name the machine, each as a short digest: what events and logs may show of it. */
  redacted(): { readonly [member: string]: string }
}
