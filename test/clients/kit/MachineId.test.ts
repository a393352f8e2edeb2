/** The machine's id by operating system, in containers and in browsers, and what is said where there is none. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { machineId as browserId } from "../../../src/clients/kit/machine/BrowserMachineId.ts"
import { type Machine, machineIdOf } from "../../../src/clients/kit/machine/Machine.ts"
import { machineId } from "../../../src/clients/kit/machine/MachineId.ts"
import { thisMachine } from "../../../src/clients/kit/machine/ThisMachine.ts"
import { memoryStore } from "../../../src/clients/kit/sending/Platform.ts"

const product = "editor-pro"
const linuxId = "0f3b7c2de94a4d58a1b6c7d8e9f01234"
const containerId = "c0ffee".repeat(11).slice(0, 64)
const guid = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

const machine = (files: Record<string, string>, more: Partial<Machine> = {}): Machine => ({
  platform: "linux",
  read: async (path) => files[path],
  run: () => Promise.reject(new Error("there is no such program")),
  environment: () => undefined,
  hostname: () => "",
  ...more
})

const idOf = (each: Machine, of = product) => Effect.promise(() => machineIdOf({ product: of }, each))
const problemOf = (each: Machine) =>
  Effect.promise(() =>
    machineIdOf({ product }, each).then(
      () => assert.fail("it has an id"),
      (problem: Error) => problem.message
    )
  )

const linux = machine({ "/etc/machine-id": `${linuxId}\n` })
const docker = (files: Record<string, string>, host = "") =>
  machine({ "/etc/machine-id": `${linuxId}\n`, "/.dockerenv": "", ...files }, { hostname: () => host })

describe("machineId", () => {
  it.effect("is a salted text of each product, and the same again", () =>
    Effect.gen(function* () {
      const id = yield* idOf(linux)
      assert.match(id, /^[0-9a-f]{64}$/)
      assert.notInclude(id, linuxId.slice(0, 8))
      assert.strictEqual(yield* idOf(linux), id)
      assert.strictEqual(yield* idOf(machine({ "/var/lib/dbus/machine-id": linuxId })), id)
      assert.notStrictEqual(yield* idOf(linux, "editor-basic"), id)
      assert.notStrictEqual(yield* idOf(machine({ "/etc/machine-id": linuxId.replace("0", "1") })), id)
    })
  )

  it.effect("asks Windows for MachineGuid and macOS for IOPlatformUUID, with the full path of the program", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const printing = (platform: string, printed: string) =>
        machine(
          {},
          {
            platform,
            environment: (name) => (name === "SystemRoot" ? "D:\\Windows" : undefined),
            run: async (program, args) => {
              ran.push([program, ...args].join(" "))
              return printed
            }
          }
        )
      const registry = `\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Cryptography\r\n    MachineGuid    REG_SZ    ${guid}\r\n`
      const tree = `+-o J314sAP  <class IOPlatformExpertDevice>\n    "IOPlatformUUID" = "${guid.toUpperCase()}"\n`
      const windows = yield* idOf(printing("win32", registry))
      const macos = yield* idOf(printing("darwin", tree))
      assert.notStrictEqual(windows, macos)
      assert.deepStrictEqual(ran, [
        "D:\\Windows\\System32\\reg.exe query HKLM\\SOFTWARE\\Microsoft\\Cryptography /v MachineGuid /reg:64",
        "/usr/sbin/ioreg -rd1 -c IOPlatformExpertDevice"
      ])
      assert.match(yield* problemOf(printing("win32", "")), /MachineGuid.*fingerprint of your own/)
    })
  )

  it.effect("takes the container's id, never the image's file", () =>
    Effect.gen(function* () {
      const mounts = `612 598 8:1 /var/lib/docker/containers/${containerId}/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n`
      const pod = `0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-${containerId}.scope\n`
      const first = yield* idOf(docker({ "/proc/self/mountinfo": mounts }))
      assert.strictEqual(yield* idOf(docker({ "/proc/self/cgroup": pod })), first)
      const other = mounts.replace(containerId, containerId.replaceAll("c", "d"))
      assert.notStrictEqual(yield* idOf(docker({ "/proc/self/mountinfo": other })), first)
      assert.notStrictEqual(first, yield* idOf(linux))
      const named = [yield* idOf(docker({}, "pod-1")), yield* idOf(docker({}, "pod-2"))]
      assert.notStrictEqual(named[0], named[1])
      assert.match(yield* problemOf(docker({})), /neither an id nor a host name/)
    })
  )

  it.effect("reads 64 kB of a file that the kernel gives by the page", ({ skip }) =>
    Effect.gen(function* () {
      if (process.platform !== "linux") return skip("this system has no /proc")
      assert.strictEqual((yield* Effect.promise(() => thisMachine.read("/proc/self/smaps")))?.length, 65_536)
      assert.isUndefined(yield* Effect.promise(() => thisMachine.read("/proc/self/none")))
    })
  )

  it.effect("says what to do where there is no id, or one that many machines have", () =>
    Effect.gen(function* () {
      for (const text of [undefined, "", "uninitialized", "0".repeat(32), "x".repeat(70_000)]) {
        const files: Record<string, string> = text === undefined ? {} : { "/etc/machine-id": text }
        assert.match(yield* problemOf(machine(files)), /systemd-machine-id-setup.*fingerprint of your own/)
      }
      assert.match(yield* problemOf(machine({}, { platform: "darwin" })), /ioreg could not be run/)
      assert.match(yield* problemOf(machine({}, { platform: "aix" })), /aix has no id/)
      const wrong = Effect.promise(() =>
        machineIdOf({ product: "Editor Pro" }, linux).catch((problem: Error) => problem)
      )
      assert.instanceOf(yield* wrong, TypeError)
    })
  )

  it.effect("is the same each time on the machine of this test, or says why there is none", () =>
    Effect.gen(function* () {
      const said = Effect.promise(() => machineId({ product }).catch((problem: Error) => problem.message))
      const first = yield* said
      assert.match(first, /^([0-9a-f]{64}|machineId: .+ fingerprint of your own, .+)$/)
      assert.strictEqual(yield* said, first)
    })
  )

  it.effect("is a random text in a browser, which its store keeps", () =>
    Effect.gen(function* () {
      const store = memoryStore()
      const id = yield* Effect.promise(() => browserId({ product, store }))
      assert.match(id, /^[0-9a-f]{64}$/)
      assert.strictEqual(yield* Effect.promise(() => browserId({ product, store })), id)
      assert.notStrictEqual(yield* Effect.promise(() => browserId({ product, store: memoryStore("edited") })), id)
      const problem = (given: object) =>
        Effect.promise(() => browserId({ product, ...given }).catch(({ message }: Error) => message))
      assert.match(yield* problem({}), /no localStorage.*Give a store/)
      assert.match(yield* problem({ store: { read: () => null, write: () => {} } }), /did not keep the id/)
    })
  )
})
