/** What a browser loads for the first screen. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "../browser/BuiltConsole.ts"

const kilobytesMax = 260
const fontKilobytesMax = 60
const minutes = 5 * 60_000

it.effect(
  `The scripts of the first screen have at most ${kilobytesMax} kB, compressed`,
  () =>
    Effect.gen(function* () {
      const folder = yield* build
      const page = readFileSync(join(folder, "index.html"), "utf8")
      const names = [...page.matchAll(/\/console\/(assets\/[\w.-]+\.js)"/g)].map(([, name]) => name!)
      assert.isNotEmpty(names)
      const bytes = names.reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name))).length, 0)
      assert.isAtMost(bytes, kilobytesMax * 1_000)
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
