import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { stateFiles } from "../../infra/scripts/states.ts"
import { statusAfterRenewal } from "../../src/licensing/changes/Renewal.ts"
import { DeviceStatus } from "../../src/licensing/model/Device.ts"
import { deviceTransitions } from "../../src/licensing/model/DeviceTransitions.ts"
import { LicenseStatus } from "../../src/licensing/model/License.ts"
import { transitions } from "../../src/licensing/rules/Lifecycle.ts"

const root = new URL("../../", import.meta.url)
const page = stateFiles()["docs/STATES.md"] ?? ""

/** The cells of a table in the document: from a state, by a command. */
const cellsOf = (firstHeads: string) => {
  const [heads = [], , ...rows] = page
    .slice(page.indexOf(firstHeads))
    .split("\n\n")[0]!
    .split("\n")
    .map((line) => line.slice(2, -2).split(" | "))
  return (from: string, command: string) => rows.find(([name]) => name === from)?.[heads.indexOf(command)]
}

const license = cellsOf("| From | suspend |")
const device = cellsOf("| From | activate |")

describe("docs/STATES.md", () => {
  it.each(Object.entries(stateFiles()))("%s matches the rules", (path, content) => {
    assert.strictEqual(readFileSync(new URL(path, root), "utf8"), content)
  })

  it("lists for every license state what the rules' tables contain", () => {
    const words = { unchanged: "–", conflict: "409 LICENSE_STATE_CONFLICT", "by clock": "active" } as const
    const word = (to: string) => words[to as keyof typeof words] ?? to
    for (const from of LicenseStatus.literals) {
      for (const [command, to] of Object.entries(transitions))
        assert.strictEqual(license(from, command), word(to[from]))
      assert.strictEqual(license(from, "renew"), word(statusAfterRenewal[from]))
    }
  })

  it("lists for every device state what the rules' tables contain", () => {
    const words = { unchanged: "–", conflict: "409 DEVICE_STATE_CONFLICT" } as const
    for (const from of DeviceStatus.literals) {
      for (const [command, to] of Object.entries(deviceTransitions)) {
        const next = to[from]
        assert.strictEqual(device(from, command), next in words ? words[next as keyof typeof words] : next)
      }
    }
  })

  it("draws an arrow for every transition by the clock and none out of revoked", () => {
    for (const arrow of [
      "active --> grace_period: expires_at passes",
      "active --> expired: expires_at passes, no grace",
      "grace_period --> expired: the grace passes",
      "suspended --> grace_period: reinstate",
      "live --> expired: its time passes",
      "blacklisted --> reset: unblacklist"
    ]) {
      assert.include(page, `  ${arrow}\n`)
    }
    assert.deepStrictEqual(page.match(/revoked --> .*/g), ["revoked --> [*]"])
  })
})
