import { defineConfig } from "vitest/config"

/** The tests of the rules, which need no database. */
export default defineConfig({
  test: {
    include: ["test/licensing/{rules,changes,model}/*.test.ts"],
    setupFiles: ["infra/mutate/setup.ts"],
    isolate: false,
    testTimeout: 60_000,
    // Nobody reads the differences.
    diff: { maxDepth: 1, truncateThreshold: 10 }
  }
})
