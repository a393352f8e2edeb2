// Mutation testing of the rules: npm run mutate (docs/TESTING.md).
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Sentences for people: tests check their rules, not each word. Codes, names of events and of fields have no spaces. */
const sentences = {
  shouldIgnore(path) {
    const text = path.isStringLiteral() ? path.node.value : path.isTemplateLiteral() ? path.node.quasis.map(({ value }) => value.raw).join("") : ""
    return text.includes(" ") ? "a sentence for people" : undefined
  }
}

export const strykerPlugins = [{ kind: "Ignore", name: "sentences", value: sentences }]

export default {
  mutate: ["src/licensing/{rules,changes}/*.ts"],
  plugins: [join(import.meta.dirname, "runner.mjs"), import.meta.filename],
  ignorers: ["sentences"],
  testRunner: "rules",
  coverageAnalysis: "perTest",
  ignoreStatic: true,
  concurrency: 2,
  timeoutMS: 20_000,
  // Outside node_modules, whose files are not transformed.
  tempDirName: join(tmpdir(), "licensing-service-mutate"),
  // The preprocessor of tsconfig.json needs a TypeScript before 7.
  ignorePatterns: ["/*", "!/src", "!/test", "!/schema", "!/package.json", "!/infra", "/infra/*", "!/infra/mutate"],
  reporters: ["clear-text", "progress-append-only", "json", "html"],
  clearTextReporter: { allowColor: false, reportTests: false, skipFull: true },
  jsonReporter: { fileName: "node_modules/.cache/mutate/report.json" },
  htmlReporter: { fileName: "node_modules/.cache/mutate/report.html" },
  allowEmpty: true,
  checkers: []
}
