/** The checker of histories, which Porcupine makes: what it accepts and what it finds. Skipped without Go and Porcupine's module. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeEach, describe, it } from "@effect/vitest"
import type { Line } from "./Line.ts"

const folder = mkdtempSync(join(tmpdir(), "licensing-checker-"))
const program = join(folder, "checker")

const build = () => {
  const cwd = fileURLToPath(new URL("checker", import.meta.url))
  const env = { ...process.env, GOPROXY: "off", GOTOOLCHAIN: "local" }
  return spawnSync("go", ["build", "-o", program, "."], { cwd, env }).status === 0
}
const isBuilt = build()

afterAll(() => rmSync(folder, { recursive: true }))

const isLinearizable = (lines: ReadonlyArray<Line>): boolean => {
  const path = join(folder, "histories.jsonl")
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
  const { status, stderr } = spawnSync(program, [path], { encoding: "utf8" })
  assert.include([0, 1], status, stderr)
  return status === 0
}

const license = { history: "lic_1", client: 1, machine: 1 }
const accepted = (operation: Line["operation"], at: number, more: Partial<Line> = {}): Line => ({
  ...{ ...license, operation, sent: at, answered: at + 1, outcome: "acknowledged" },
  ...more
})
const refused = (operation: Line["operation"], at: number, code: string, more: Partial<Line> = {}): Line => ({
  ...accepted(operation, at, more),
  ...{ outcome: "refused", code }
})
const use = (once: string, amount: number, consumed?: number): Partial<Line> => ({
  ...{ once, amount },
  ...(consumed !== undefined && { consumed })
})
const start = [accepted("begin", 0, { quota: 5, activations: 1 }), accepted("activate", 10)]
const unanswered = (operation: Line["operation"], at: number, more: Partial<Line>): Line => {
  const { answered: _none, ...line } = accepted(operation, at, more)
  return { ...line, outcome: "unknown" }
}

const correct: Record<string, ReadonlyArray<Line>> = {
  "a repeated event id counts once": [
    ...start,
    accepted("consume", 20, use("e", 3, 3)),
    accepted("consume", 30, use("e", 3, 3))
  ],
  "a call without an answer took effect": [
    ...start,
    unanswered("consume", 20, use("e", 3)),
    refused("consume", 30, "USAGE_LIMIT_EXCEEDED", use("f", 3))
  ],
  "a call without an answer took no effect": [
    ...start,
    unanswered("consume", 20, use("e", 3)),
    accepted("consume", 30, use("f", 3, 3))
  ],
  "a period ends between two calls": [
    ...start,
    accepted("consume", 20, use("e", 5, 5)),
    accepted("period end", 30),
    accepted("consume", 40, use("f", 5, 5))
  ]
}

const broken: Record<string, ReadonlyArray<Line>> = {
  "a machine too many": [...start, accepted("activate", 20, { client: 2, machine: 2 })],
  "a quota that is exceeded": [...start, accepted("consume", 20, use("e", 3)), accepted("consume", 30, use("f", 3))],
  "an event id that counts twice": [
    ...start,
    accepted("consume", 20, use("e", 1, 1)),
    accepted("consume", 30, use("e", 1, 2))
  ],
  "a consumption that is lost": [
    ...start,
    accepted("consume", 20, use("e", 1)),
    accepted("validate", 30, { consumed: 0 })
  ],
  "a refused consumption that counts": [
    ...start,
    accepted("suspend", 20, { once: "s" }),
    refused("consume", 30, "LICENSE_SUSPENDED", use("e", 1)),
    accepted("reinstate", 40, { once: "r" }),
    accepted("validate", 50, { consumed: 1 })
  ],
  "use of a suspended license": [...start, accepted("suspend", 20, { once: "s" }), accepted("validate", 30)],
  "a read of what was before": [
    ...start,
    accepted("consume", 20, use("e", 2, 2)),
    accepted("reset", 30, { once: "r", reset_consumed: true }),
    accepted("validate", 40, { consumed: 2 })
  ]
}

describe("The checker of histories", () => {
  beforeEach(({ skip }) => skip(!isBuilt, "there is no Go, or not Porcupine's module"))
  it.each(Object.entries(correct))("accepts: %s", (_, lines) => assert.isTrue(isLinearizable(lines)))
  it.each(Object.entries(broken))("finds: %s", (_, lines) => assert.isFalse(isLinearizable(lines)))
})
