/**
 * Runs the tests of the rules for Stryker: all mutants in one process, which loads the modules once. Vitest loads them for each
 * mutant again, which takes longer than the tests. The tests need nothing of Vitest but `describe`, `it` and `assert`.
 */
import { globSync } from "node:fs"
import { registerHooks } from "node:module"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { pathToFileURL } from "node:url"
import { INSTRUMENTER_CONSTANTS } from "@stryker-mutator/api/core"
import { declareClassPlugin, PluginKind } from "@stryker-mutator/api/plugin"
import { DryRunStatus, determineHitLimitReached, TestStatus, toMutantRunResult } from "@stryker-mutator/api/test-runner"
import { tests } from "./testing.mjs"

const substitutes = { "@effect/vitest": "./testing.mjs", "fast-check": "./properties.mjs" }

registerHooks({
  resolve: (specifier, context, next) => {
    const substitute = substitutes[specifier]
    const url = substitute && new URL(substitute, import.meta.url).href
    return url === undefined || url === context.parentURL ? next(specifier, context) : { url, shortCircuit: true }
  }
})

const resultOf = ({ name, run }) => {
  const begun = performance.now()
  const result = { id: name, name, status: TestStatus.Success }
  try {
    if (run() !== undefined) throw new Error(`The test "${name}" is asynchronous.`)
  } catch (error) {
    Object.assign(result, { status: TestStatus.Failed, failureMessage: String(error) })
  }
  return { ...result, timeSpentMs: performance.now() - begun }
}

class Runner {
  static inject = []

  /** What the mutated code reads and counts. */
  stryker = (globalThis[INSTRUMENTER_CONSTANTS.NAMESPACE] ??= {})

  /** No mutant is active while modules are loaded, so there is nothing to reload. */
  capabilities() {
    return { reloadEnvironment: true }
  }

  async init() {
    const exclude = ["**/LicenseKey.test.ts"]
    for (const file of globSync("test/licensing/{rules,changes,model}/*.test.ts", { exclude }).toSorted())
      await import(pathToFileURL(join(process.cwd(), file)).href)
  }

  async dryRun() {
    const results = []
    for (const test of tests.splice(0)) {
      this.stryker.currentTestId = test.name
      const result = resultOf(test)
      if (result.status === TestStatus.Failed) continue
      results.push(result)
      tests.push({ ...test, millis: result.timeSpentMs })
    }
    return { status: DryRunStatus.Complete, tests: results, mutantCoverage: this.stryker.mutantCoverage }
  }

  async mutantRun({ activeMutant, hitLimit, testFilter }) {
    Object.assign(this.stryker, { activeMutant: activeMutant.id, hitCount: 0, hitLimit })
    const results = []
    const filter = new Set(testFilter)
    // The first failure is enough, so those that take long come last.
    for (const test of tests.filter(({ name }) => filter.has(name)).toSorted((a, b) => a.millis - b.millis)) {
      const result = resultOf(test)
      results.push(result)
      if (result.status === TestStatus.Failed) break
    }
    const timeout = determineHitLimitReached(this.stryker.hitCount, hitLimit)
    return toMutantRunResult(timeout ?? { status: DryRunStatus.Complete, tests: results })
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, "rules", Runner)]
