/** What the program says of its commands: help, completion, exit codes. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Command, Completions } from "effect/cli"
import { parse } from "yaml"
import { commands } from "../../../src/tools/cli/Commands.ts"
import { runLine } from "../../support/processes/CommandLine.ts"

interface Leaf {
  readonly path: string
  readonly command: Command.Command.Any
}

const leavesOf = (command: Command.Command.Any, before = ""): ReadonlyArray<Leaf> => {
  const path = `${before}${command.name}`
  const inner = command.subcommands.flatMap(({ commands }) => commands.flatMap((each) => leavesOf(each, `${path} `)))
  return inner.length === 0 ? [{ path, command }] : inner
}
const leaves = commands.flatMap((command) => leavesOf(command))
const operations = readFileSync(new URL("../../../docs/OPERATIONS.md", import.meta.url), "utf8")

describe("each command", () => {
  for (const { command, path } of leaves) {
    it(`has a description, examples of itself, and --json: ${path}`, () => {
      const { description, flags } = Completions.fromCommand(command)
      assert.match(description ?? "", /\.$/)
      assert.isNotEmpty(command.examples)
      for (const example of command.examples) assert.match(example.command, new RegExp(`^licensing ${path}( |$)`))
      assert.isTrue(flags.some(({ name }) => name === "json"))
    })

    it(`is in the table of OPERATIONS.md: ${path}`, () => {
      const [group, name] = path.split(" ")
      const rows = operations.split("\n").filter((line) => line.startsWith(`| \`${group}`))
      assert.isTrue(rows.some((row) => name === undefined || row.split("|")[1]?.includes(name)))
    })
  }

  it.effect("prints help with its examples", () =>
    Effect.gen(function* () {
      for (const { command, path } of leaves) {
        const { code, out } = yield* runLine({}, ...path.split(" "), "--help")
        assert.strictEqual(code, 0)
        for (const example of command.examples) assert.include(out, example.command)
      }
    })
  )
})

describe("the program", () => {
  it.effect("prints completion for each shell", () =>
    Effect.gen(function* () {
      for (const shell of ["bash", "zsh", "fish", "powershell"]) {
        const { code, out } = yield* runLine({}, "--completions", shell)
        assert.strictEqual(code, 0)
        for (const name of ["doctor", "reset-device", "highest-issued-at"]) assert.include(out, name, shell)
      }
    })
  )

  it.effect("exits with 2 if it is called wrongly", () =>
    Effect.gen(function* () {
      for (const args of [
        ["keys"],
        ["keys", "lost"],
        ["licenses", "show"],
        ["migrate", "--now"],
        ["doctor", "again"]
      ]) {
        const { code, error, out } = yield* runLine({}, ...args)
        assert.deepStrictEqual([code, out], [2, ""], args.join(" "))
        assert.include(error, "USAGE", args.join(" "))
      }
    })
  )

  it.effect("prints the contract as it is published", () =>
    Effect.gen(function* () {
      const committed = readFileSync(new URL("../../../schema/openapi.yaml", import.meta.url), "utf8")
      const { code, out } = yield* runLine({}, "openapi", "--json")
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(JSON.parse(out), parse(committed))
    })
  )
})
