/** The validations and offline envelopes that a failover may have lost, while the nodes that recorded them remember them. */
import type { Call } from "../requests/Operations.ts"
import { bindingOf } from "./Reconcile.ts"
import type { Stored } from "./Rows.ts"

/** When a device was last validated, and when its last envelope expires; 0 = never. */
export interface Remembered {
  readonly validated: number
  readonly offline: number
}

export class LostValidations {
  /** By license and binding: the last ones. */
  private readonly times = new Map<string, Map<string, Remembered>>()

  private add(license: string, binding: string, validated: number, offline: number): void {
    const times = this.of(license)
    const before = times.get(binding)
    times.set(binding, {
      validated: Math.max(validated, before?.validated ?? 0),
      offline: Math.max(offline, before?.offline ?? 0)
    })
    this.times.set(license, times)
  }

  /** Those in rows that are lost. */
  addStored({ licenses }: Stored): void {
    for (const { devices, id } of licenses.values()) {
      for (const [binding, { offline, validated }] of devices) this.add(id, binding, validated ?? 0, offline ?? 0)
    }
  }

  /** Those of a step in which rows were lost. */
  addRequested({ calls, nows }: { readonly calls: ReadonlyArray<Call>; readonly nows: ReadonlyArray<number> }): void {
    for (const call of calls) {
      if (call.operation === "validate") this.add(call.subject, bindingOf(call), Math.max(...nows), 0)
    }
  }

  of(license: string): Map<string, Remembered> {
    return this.times.get(license) ?? new Map()
  }
}
