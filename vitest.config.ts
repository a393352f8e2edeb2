import { defineConfig } from "vitest/config"

/** `npm test` runs the quick tests, `npm run test:slow` the slow ones: what starts processes, and long runs. */
const slow = "test/**/*.slow.test.ts"

export default defineConfig({
  test: {
    globalSetup: ["test/support/database/DatabaseServer.ts"],
    setupFiles: ["test/support/rules/PropertySeed.ts", "test/support/database/FreshMetrics.ts"],
    pool: "forks",
    maxWorkers: 2,
    // A backstop for a test that hangs; busy machines must not reach it. Beside eight other runs on two processors, tests
    // took twenty times as long as alone: one of ten seconds took three minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 20_000,
    projects: [
      // One module cache for all files of a worker: evaluating the same modules for each file took a third of the time.
      { extends: true, test: { name: "quick", include: ["test/**/*.test.ts"], exclude: [slow], isolate: false } },
      { extends: true, test: { name: "slow", include: [slow] } }
    ]
  }
})
