/** What a browser loads for the first screen, and for each screen more. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "../browser/BuiltConsole.ts"
import { scriptSizes } from "../browser/ScriptSizes.ts"

const kilobytesMax = 260
const screenKilobytesMax = 60
const fontKilobytesMax = 60
const minutes = 5 * 60_000

it.effect(
  `The scripts of the first screen have at most ${kilobytesMax} kB, compressed, and each screen at most ${screenKilobytesMax} kB more`,
  () =>
    Effect.gen(function* () {
      const folder = yield* build
      const { first, screens } = scriptSizes(folder)
      assert.isAbove(first, 0)
      assert.isAtMost(first, kilobytesMax * 1_000)
      assert.isAtLeast(screens.size, 20)
      for (const [name, bytes] of screens) assert.isAtMost(bytes, screenKilobytesMax * 1_000, name)
      const page = readFileSync(join(folder, "index.html"), "utf8")
      assert.notMatch(page, /<script(?![^>]* src=)|<style|https?:/)
    }).pipe(Effect.scoped),
  minutes
)

it.effect(
  `The font is one file of at most ${fontKilobytesMax} kB, with its license beside`,
  () =>
    Effect.gen(function* () {
      const folder = yield* build
      const fonts = readdirSync(join(folder, "assets")).filter((name) => name.endsWith(".woff2"))
      assert.lengthOf(fonts, 1)
      assert.isAtMost(readFileSync(join(folder, "assets", fonts[0]!)).length, fontKilobytesMax * 1_000)
      assert.include(readFileSync(join(folder, "inter-license.txt"), "utf8"), "SIL OPEN FONT LICENSE")
    }).pipe(Effect.scoped),
  minutes
)
