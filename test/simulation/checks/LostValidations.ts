/** The validations that a failover may have lost, while the nodes that recorded them remember them. */
import type { Call } from "../requests/Operations.ts"
import { bindingOf } from "./Reconcile.ts"
import type { Stored } from "./Rows.ts"

export class LostValidations {
  /** By license and binding: the last one. */
  private readonly times = new Map<string, Map<string, number>>()

  private add(license: string, binding: string, at: number): void {
    const times = this.of(license)
    times.set(binding, Math.max(at, times.get(binding) ?? 0))
    this.times.set(license, times)
  }

  /** Those in rows that are lost. */
  addStored({ licenses }: Stored): void {
    for (const { devices, id } of licenses.values()) {
      for (const [binding, { validated }] of devices) this.add(id, binding, validated ?? 0)
    }
  }

  /** Those of a step in which rows were lost. */
  addRequested({ calls, nows }: { readonly calls: ReadonlyArray<Call>; readonly nows: ReadonlyArray<number> }): void {
    for (const call of calls) {
      if (call.operation === "validate") this.add(call.subject, bindingOf(call), Math.max(...nows))
    }
  }

  of(license: string): Map<string, number> {
    return this.times.get(license) ?? new Map()
  }
}
