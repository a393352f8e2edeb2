import { defineConfig } from "vitest/config"
import project from "../../vitest.config.ts"

/** Which branches of the rules and of the engine the tests of licenses take: npm run coverage. */
export default defineConfig({
  ...project,
  test: {
    ...project.test,
    coverage: {
      enabled: true,
      provider: "custom",
      customProviderModule: "infra/mutate/node_modules/@vitest/coverage-v8/dist/index.js",
      include: ["src/licensing/{rules,changes,engine}/*.ts"],
      reporter: ["text"],
      reportsDirectory: "node_modules/.cache/coverage"
    }
  }
})
