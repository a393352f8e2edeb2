import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Binding } from "../../../src/licensing/model/Binding.ts"
import type { DeviceRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { activate, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { deactivateOwn } from "../../../src/licensing/rules/OwnDevices.ts"
import { bindings } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  container,
  deviceOf,
  hardware,
  keyHash,
  noon,
  type Rows,
  type RowsInput,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const other = hardware("other machine")
const pod = container("pod")
const otherPod = container("other pod")

const slots = ({ devices }: Rows, kind?: DeviceRecord["binding_kind"]) =>
  devices.filter(
    ({ status, holds_slot, binding_kind }) =>
      status === "active" && holds_slot && (kind ?? binding_kind) === binding_kind
  ).length

const cases: ReadonlyArray<
  readonly [string, Partial<Rows["policy"]>, devices: ReadonlyArray<Binding>, next: Binding, code: string | undefined]
> = [
  [
    "containers count with all devices where they have no limit",
    { max_activations: 1 },
    [machine],
    pod,
    "ACTIVATION_LIMIT_REACHED"
  ],
  [
    "devices count with containers where those have no limit",
    { max_activations: 1 },
    [pod],
    machine,
    "ACTIVATION_LIMIT_REACHED"
  ],
  [
    "containers with a limit take no other slots",
    { max_activations: 1, max_container_instances: 2 },
    [machine, pod],
    otherPod,
    undefined
  ],
  [
    "containers with a limit leave the others theirs",
    { max_activations: 1, max_container_instances: 2 },
    [pod, otherPod],
    machine,
    undefined
  ],
  [
    "containers stop at their limit",
    { max_activations: 9, max_container_instances: 1 },
    [pod],
    otherPod,
    "CONTAINER_LIMIT_REACHED"
  ],
  [
    "0 containers are any number",
    { max_activations: 1, max_container_instances: 0 },
    [machine, pod],
    otherPod,
    undefined
  ],
  [
    "0 containers leave the limit of the others",
    { max_activations: 1, max_container_instances: 0 },
    [machine, pod],
    other,
    "ACTIVATION_LIMIT_REACHED"
  ],
  ["0 activations are any number", { max_activations: 0 }, [machine, pod], other, undefined],
  [
    "0 activations leave the limit of containers",
    { max_activations: 0, max_container_instances: 1 },
    [pod],
    otherPod,
    "CONTAINER_LIMIT_REACHED"
  ]
]

describe("activation limits", () => {
  it.each(cases)("%s", (_, policy, known, next, code) => {
    const rows = rowsOf({ policy, devices: known.map((binding) => deviceOf(binding)) })
    assert.strictEqual(perform(rows, activate, activationOf(next), noon).refused?.code, code)
  })

  it("hold for any number of activations and deactivations", () => {
    const commands = fc.array(fc.tuple(fc.constantFrom(activate, deactivate), fc.constantFrom(...bindings)), {
      maxLength: 20
    })
    const limits = fc.record({
      max_activations: fc.nat(3),
      max_container_instances: fc.option(fc.nat(2), { nil: undefined })
    })
    fc.assert(
      fc.property(limits, commands, (policy, sequence) => {
        let rows = rowsOf({ policy })
        let granted = 0
        for (const [rule, binding] of sequence) {
          const { before, after, refused } =
            rule === activate
              ? perform(rows, activate, activationOf(binding), noon)
              : perform(rows, deactivate, activationOf(binding), noon)
          if (rule === activate && refused === undefined && slots(after) > slots(before)) granted++
          rows = after
        }
        const apart = policy.max_container_instances !== undefined
        if (policy.max_activations > 0)
          assert.isAtMost(slots(rows, apart ? "hardware" : undefined), policy.max_activations)
        if ((policy.max_container_instances ?? 0) > 0)
          assert.isAtMost(slots(rows, "container"), policy.max_container_instances ?? 0)
        assert.strictEqual(rows.license.active_device_count, slots(rows))
        assert.strictEqual(rows.license.times_activated, granted)
        assert.strictEqual(rows.events.filter(({ event_type }) => event_type === "license.activated").length, granted)
        assert.strictEqual(new Set(rows.devices.map(({ id }) => id)).size, rows.devices.length)
      }),
      { numRuns: 300 }
    )
  })

  it("deactivate no device when they are lowered, and admit no device until a slot is free", () => {
    const rows = rowsOf({ policy: { max_activations: 1 }, devices: [deviceOf(machine), deviceOf(pod)] })
    allowed(rows, validate, requestOf(machine))
    allowed(rows, validate, requestOf(pod))
    const one = allowed(rows, deactivate, requestOf(pod)).after
    refusedWith("ACTIVATION_LIMIT_REACHED", one, activate, activationOf(other))
    allowed(allowed(one, deactivate, requestOf(machine)).after, activate, activationOf(other))
  })
})

describe("slots that are held for offline envelopes", () => {
  const held = (binding: Binding, until: number) => deviceOf(binding, { status: "deactivated", slot_held_until: until })
  const license = { slots_held_until: noon + 9000 }
  const refusal = (rows: RowsInput, next: Binding, now = noon) => {
    const { refused } = perform(rowsOf({ license, ...rows }), activate, activationOf(next), now)
    return [refused?.code, refused?.facts]
  }

  it("count with devices of their kind if containers have their own limit", () => {
    const apart = { max_activations: 1, max_container_instances: 1 }
    const [ofMachine, ofPod] = [held(machine, noon + 9000), held(pod, noon + 9000)]
    assert.isUndefined(refusal({ policy: apart, devices: [ofMachine] }, otherPod)[0])
    assert.isUndefined(refusal({ policy: apart, devices: [ofPod] }, other)[0])
    assert.strictEqual(refusal({ policy: apart, devices: [ofMachine] }, other)[0], "ACTIVATION_LIMIT_REACHED")
    assert.strictEqual(refusal({ policy: apart, devices: [ofPod] }, otherPod)[0], "CONTAINER_LIMIT_REACHED")
    const together = { max_activations: 1 }
    assert.strictEqual(refusal({ policy: together, devices: [ofMachine] }, otherPod)[0], "ACTIVATION_LIMIT_REACHED")
  })

  it("are free at their instant, whatever others are held longer", () => {
    const devices = [held(machine, noon + 2000), held(pod, noon + 9000)]
    const full = (now: number) => refusal({ policy: { max_activations: 2 }, devices }, other, now)
    assert.deepStrictEqual(full(noon + 1999), ["ACTIVATION_LIMIT_REACHED", { max: 2, used: 2, retry_after_seconds: 1 }])
    assert.deepStrictEqual(full(noon), ["ACTIVATION_LIMIT_REACHED", { max: 2, used: 2, retry_after_seconds: 2 }])
    assert.isUndefined(full(noon + 2000)[0])
  })

  it("tell no instant if more devices than allowed would still be in use then", () => {
    const devices = [held(machine, noon + 2000), deviceOf(pod)]
    const facts = { max: 1, used: 2 }
    assert.deepStrictEqual(refusal({ policy: { max_activations: 1 }, devices }, other), [
      "ACTIVATION_LIMIT_REACHED",
      facts
    ])
  })

  it("raise the license's bound of held slots, and never lower it", () => {
    const device = deviceOf(machine, { offline_expires_at: noon + 5000 })
    const boundAfter = (slots_held_until: number | undefined) =>
      allowed(rowsOf({ license: { slots_held_until }, devices: [device] }), deactivateOwn, {
        keyHash,
        deviceId: device.id
      }).changes.license
    assert.strictEqual(boundAfter(undefined)?.slots_held_until, noon + 5000)
    assert.strictEqual(boundAfter(noon + 4999)?.slots_held_until, noon + 5000)
    for (const bound of [noon + 5000, noon + 9000]) assert.notProperty(boundAfter(bound), "slots_held_until")
  })

  it("are not held without an offline envelope", () => {
    const license = allowed(rowsOf({ devices: [deviceOf(machine)] }), deactivateOwn, {
      keyHash,
      deviceId: deviceOf(machine).id
    }).changes.license
    assert.notProperty(license, "slots_held_until")
  })
})
