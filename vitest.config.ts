import { readFileSync, statfsSync } from "node:fs"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** `npm test` runs the quick tests, `npm run test:slow` the slow ones: what starts processes, and long runs. */
const slow = "test/**/*.slow.test.ts"
const all = "test/**/*.test.ts"

/** Linux's folder in memory, if 6 GiB are left and programs may be started from it. */
const memoryFolder = () => {
  try {
    const options = /^\S+ \/dev\/shm tmpfs (\S+)/m.exec(readFileSync("/proc/mounts", "utf8"))?.[1] ?? "noexec"
    const { bavail, bsize } = statfsSync("/dev/shm")
    return options.includes("noexec") || bavail * bsize < 6 * 1024 ** 3 ? undefined : "/dev/shm"
  } catch {
    return undefined
  }
}

// Hundreds of databases of 700 files are created and dropped: each takes 0.03 s in memory, 0.5 s on a disk.
const folder = process.env.TMPDIR ?? memoryFolder()
if (folder !== undefined) process.env.TMPDIR = folder

/** The files that take one to four minutes, longest first. Begun last, one would run alone while the other workers have no file left. */
const longest = [
  "test/contract/lists",
  "test/simulation/Simulation",
  "test/infra/packages/Service",
  "test/licensing/cluster/LicenseOwners",
  "test/clients/console/screens/Pictures",
  "test/verifying/Verifiers",
  "test/clients/console/tasks/NextPerson",
  "test/contract/fuzz",
  "test/clients/client/Stripe",
  "test/contract/races",
  "test/clients/portal/MailedLink"
].map((name) => `${name}.slow.test.ts`)

/** On a clean clone Vitest knows no durations and runs larger files first; one of the longest is the smallest. Quick files end the run. */
class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = longest.findIndex((name) => moduleId.endsWith(name))
      return place >= 0 ? place : longest.length + (moduleId.endsWith(".slow.test.ts") ? 0 : 1)
    }
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/database/DatabaseServer.ts"],
    setupFiles: ["test/support/rules/PropertySeed.ts", "test/support/database/FreshMetrics.ts"],
    pool: "forks",
    // One module cache for all files of a worker: evaluating the same modules for each file took a third of the time.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    maxWorkers: 2,
    // A backstop for a test that hangs; busy machines must not reach it. Beside eight other runs on two processors, tests
    // took twenty times as long as alone: one of ten seconds took three minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 20_000,
    // A worker belongs to one project: of two projects in one run, the second would load all modules again. With TEST_ALL=true
    // `npm test` runs the slow tests, too.
    projects:
      process.env.TEST_ALL === "true"
        ? [{ extends: true, test: { name: "quick", include: [all] } }]
        : [
            { extends: true, test: { name: "quick", include: [all], exclude: [slow] } },
            { extends: true, test: { name: "slow", include: [slow] } }
          ]
  }
})
