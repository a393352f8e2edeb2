/** Constructs that the code does not use, because there is a better one. */
import { inSources, isUnder, type Rule } from "./Rule.ts"

interface Ban {
  readonly name: string
  readonly mention: RegExp
  readonly where: (path: string) => boolean
  readonly example: string
  readonly exceptions?: Rule["exceptions"]
}

const inSrc = isUnder("src")
/** The application kit and the customer's page have no Effect, for their size: promises, and errors that are thrown. */
const inEffect = (path: string) =>
  inSrc(path) && !isUnder("src/clients/kit")(path) && !isUnder("src/clients/portal")(path)
const inTest = (path: string) =>
  path.startsWith("test/") && !path.startsWith("test/bench/") && !path.startsWith("test/tidy")

const ban = ({ name, mention, where, example, exceptions }: Ban): Rule => ({
  name,
  find: inSources(({ path, mentions }) => (where(path) ? mentions.filter(({ what }) => mention.test(what)) : [])),
  ...(exceptions && { exceptions }),
  example: { [where("src/a/B.ts") ? "src/a/B.ts" : "test/a/B.test.ts"]: example }
})

const codeBans: ReadonlyArray<Ban> = [
  {
    name: "Time is read from Clock",
    mention: /^(Date\.now|new Date\(\)|performance\.now|Date\(\)|process\.hrtime.*|DateTime\.nowUnsafe)$/,
    where: inSrc,
    example: "const now = Date.now()",
    exceptions: {
      "src/clients/kit/sending/Platform.ts":
        "Runs in applications, which have no Effect; it is the default that they may replace.",
      "src/ledger/webhooks/VerifyWebhook.ts": "Runs at receivers, who have no Effect."
    }
  },
  {
    name: "Randomness comes from SecureRandom",
    mention: /^(Math\.random|crypto\.(randomUUID|getRandomValues)|randomUUID\(\)|randomBytes\(\))$/,
    where: inSrc,
    example: "const id = Math.random()",
    exceptions: {
      "src/clients/kit/sending/Platform.ts":
        "Runs in applications, which have no Effect; it is the default that they may replace."
    }
  },
  {
    name: "Handlers take the decoded body: operationGroup",
    mention: /^HttpApiBuilder\.group$/,
    where: (path) => inSrc(path) && path !== "src/access/requests/OperationGroup.ts",
    example: 'HttpApiBuilder.group(Api, "me", (handlers) => handlers)'
  },
  { name: "Nothing is printed past the logger", mention: /^console\./, where: inSrc, example: "console.log(1)" },
  {
    name: "Settings are read in one place",
    mention: /^process\.(env|argv|exit)$/,
    where: (path) => inSrc(path) && path !== "src/main.ts" && path !== "src/platform/config/Config.ts",
    example: "const port = process.env.PORT",
    exceptions: {
      "src/clients/kit/machine/ThisMachine.ts": "Runs in applications: the variables say whether this is a container."
    }
  },
  { name: "Effects, not promises", mention: /^(async|await)$/, where: inEffect, example: "const f = async () => 1" },
  {
    name: "Errors are values: no try and catch",
    mention: /^try$/,
    where: inEffect,
    example: "try { f() } catch {}",
    exceptions: {
      "src/edge/requests/UnhandledRequests.ts":
        "Whether an address can be decoded, decodeURIComponent tells by throwing.",
      "src/platform/postgres/embedded/ServerProcess.ts": "That a process is gone, process.kill tells by throwing."
    }
  },
  {
    name: "Waiting is Effect's, so that tests can move the clock",
    mention: /^(setTimeout|setInterval|setImmediate)\(\)$/,
    where: inSrc,
    example: "setTimeout(f, 1)",
    exceptions: {
      "src/clients/kit/sending/Platform.ts":
        "Runs in applications, which have no Effect; it is the default that they may replace.",
      "src/main.ts": "Cuts off a stop that hangs: by then no fiber may be left that could.",
      "src/edge/listener/Unreadable.ts": "Closes a socket that never became a request; no fiber is there to wait.",
      "src/edge/documents/publishing/CompressedDocument.ts":
        "The end of a turn of the event loop: a clock would add a millisecond.",
      "src/edge/listener/Draining.ts": "The end of a turn of the event loop, which no clock has a time for.",
      "src/edge/listener/RequestLimits.ts": "The end of a turn of the event loop, which no clock has a time for.",
      "src/edge/listener/FairQueue.ts": "Which requests are handled first must not depend on a rehearsed hour.",
      "src/platform/signing/SigningThread.ts":
        "The end of a turn of the event loop, which no clock has a time for: a fiber takes longer.",
      "src/platform/postgres/driver/Socket.ts": "A timer of the machine: no rehearsed hour may cut a connection off.",
      "src/platform/postgres/driver/Transactions.ts":
        "A timer of the machine: a clock that stands still must not stop a commit."
    }
  },
  {
    name: "Effects are run at the edge of the world only",
    mention: /^Effect\.run(Promise|PromiseExit|Sync|SyncExit|Fork|Callback)(With)?$/,
    where: inSrc,
    example: "Effect.runSync(f)",
    exceptions: {
      "src/clients/console/service/Hooks.ts": "A click is an event of the page, which has no fiber.",
      "src/clients/console/service/Service.ts": "A click is an event of the page, which has no fiber.",
      "src/edge/requests/FastPath.ts":
        "A plain request is an event of the platform, and what is run for it waits for nothing.",
      "src/edge/listener/Unreadable.ts": "Garbage on a socket is an event of the platform, not a request with a fiber.",
      "src/edge/documents/publishing/DocumentsWorker.ts": "A thread of its own has no fiber to start with.",
      "src/edge/listener/Starting.ts": "Before the service has started there is no application to run.",
      "src/edge/listener/RequestLimits.ts":
        "A request that is turned away is an event of the platform, and waits for nothing."
    }
  },
  {
    name: "Every fiber has an owner",
    mention: /^Effect\.(forkDetach|forkDaemon)$/,
    where: inSrc,
    example: "Effect.forkDetach(f)"
  },
  { name: "No value is of any type", mention: /^any$/, where: () => true, example: "const x = y as any" }
]

const testBans: ReadonlyArray<Ban> = [
  {
    name: "No test is skipped, focused or left to do",
    mention: /^(it|test|describe|layer|suite)(\.\w+)*\.(skip|only|todo|skipIf|runIf|fails)$/,
    where: inTest,
    example: `it.only("x", () => {})`,
    exceptions: {
      "test/platform/postgres/embedded/EmbeddedPostgres.slow.test.ts":
        "What holds for root only can be seen as root only.",
      "test/tools/cli/LostOutput.slow.test.ts": "Only Linux has a file that is always full."
    }
  },
  {
    name: "Tests await signals and states, they do not sleep",
    mention: /^(Effect\.sleep|Effect\.delay|setTimeout\(\)|setInterval\(\))$/,
    where: inTest,
    example: "Effect.sleep(1)",
    exceptions: {
      "test/platform/postgres/driver/Socket.test.ts": "The slowness is the server's, which the test plays.",
      "test/faults/installation/Link.ts": "The slowness is the network's, which the harness plays.",
      "test/faults/bytes/LongestTask.ts": "It measures the program between the turns of a timer."
    }
  },
  {
    name: "Tests say what they expect: no snapshots",
    mention: /\.(toMatchSnapshot|toMatchInlineSnapshot|toMatchFileSnapshot)$/,
    where: inTest,
    example: "expect(x).toMatchSnapshot()"
  }
]

interface Adapter {
  readonly modules: ReadonlyArray<string>
  readonly why: string
}

/** The files that use platform modules. All others use Effect's services or these files. */
const adapters: Readonly<Record<string, Adapter>> = {
  "src/clients/kit/machine/ThisMachine.ts": {
    modules: ["node:child_process", "node:fs/promises", "node:os", "node:process"],
    why: "asks the operating system for the machine's id"
  },
  "src/platform/config/TelemetrySettings.ts": { modules: ["node:fs"], why: "checks files that the SDK reads itself" },
  "src/platform/Foundation.ts": { modules: ["node:path"], why: "names the files of the data folder" },
  "src/contract/api/json/JsonScan.ts": { modules: ["node:crypto"], why: "a random hash that changes no response" },
  "src/contract/api/json/JsonText.ts": {
    modules: ["node:buffer"],
    why: "asks whether bytes are UTF-8 before they are decoded"
  },
  "src/tools/cli/Listen.ts": { modules: ["node:http"], why: "makes a server for development" },
  "src/tools/doctor/MachineChecks.ts": { modules: ["node:fs", "node:path"], why: "asks for the free space of a disk" },
  "src/licensing/cluster/NodeLink.ts": { modules: ["node:tls"], why: "connects nodes by a pre-shared key" },
  "src/edge/documents/publishing/CompressedDocument.ts": {
    modules: ["node:stream", "node:zlib"],
    why: "compresses outside of the main thread, and sends pieces"
  },
  "src/edge/documents/publishing/DocumentsThread.ts": {
    modules: ["node:worker_threads"],
    why: "makes the documents on another thread"
  },
  "src/edge/documents/publishing/DocumentsWorker.ts": { modules: ["node:worker_threads"], why: "is that thread" },
  "src/edge/documents/Examples.ts": { modules: ["node:fs"], why: "reads the recorded examples" },
  "src/edge/listener/Draining.ts": { modules: ["node:net"], why: "closes the server without its connections" },
  "src/edge/listener/Listener.ts": { modules: ["node:http"], why: "makes the server with its limits" },
  "src/edge/listener/NodeParts.ts": { modules: ["node:http", "node:net"], why: "asks whether Node has these parts" },
  "src/edge/listener/Unreadable.ts": { modules: ["node:http"], why: "responds where there is no request" },
  "src/platform/postgres/embedded/DatabaseFolder.ts": {
    modules: ["node:path"],
    why: "names the files of the embedded server"
  },
  "src/platform/postgres/embedded/EmbeddedPostgres.ts": {
    modules: ["node:net", "node:path"],
    why: "finds a free port"
  },
  "src/platform/postgres/driver/Hosts.ts": { modules: ["node:stream"], why: "gives the driver a stream that fails" },
  "src/platform/postgres/embedded/ServerProcess.ts": {
    modules: ["node:child_process", "node:fs", "node:module", "node:path"],
    why: "starts the server detached, its output in a file"
  },
  "src/platform/postgres/driver/Socket.ts": {
    modules: ["node:net", "node:stream"],
    why: "is the driver's socket, and the stream under TLS"
  },
  "src/platform/postgres/migrations/Migrations.ts": {
    modules: ["node:crypto", "node:url"],
    why: "finds its folder, digests its files"
  },
  "src/platform/postgres/migrations/MissingObjects.ts": { modules: ["node:url"], why: "finds the schema's text" },
  "src/ledger/mail/MailTemplates.ts": { modules: ["node:url"], why: "finds its folder" },
  "src/platform/postgres/driver/Postgres.ts": { modules: ["node:fs"], why: "reads the file of sslrootcert" },
  "src/platform/postgres/migrations/Steps.ts": { modules: ["node:crypto"], why: "makes a tag that no text contains" },
  "src/access/Tokens.ts": { modules: ["node:zlib"], why: "CRC-32" },
  "src/insight/reports/exports/Compression.ts": { modules: ["node:zlib"], why: "Zstandard" },
  "src/platform/signing/Digest.ts": { modules: ["node:crypto"], why: "SHA-256 at once, without a promise" },
  "src/platform/signing/Hmac.ts": { modules: ["node:crypto"], why: "HMAC-SHA256 and HKDF" },
  "src/platform/signing/SecretBox.ts": { modules: ["node:crypto"], why: "AES-256-GCM" },
  "src/platform/signing/SigningKey.ts": { modules: ["node:crypto"], why: "Ed25519 keys" },
  "src/ledger/mail/SmtpThread.ts": { modules: ["node:worker_threads"], why: "talks to the mail server on a thread" },
  "src/ledger/mail/SmtpWorker.ts": { modules: ["node:worker_threads"], why: "is that thread" },
  "src/platform/signing/SigningThread.ts": {
    modules: ["node:crypto", "node:worker_threads"],
    why: "signs on other threads"
  },
  "src/platform/signing/SigningWorker.ts": {
    modules: ["node:crypto", "node:worker_threads"],
    why: "is the signing thread"
  },
  "src/edge/system/Announcement.ts": { modules: ["node:path"], why: "shows where the data folder is" },
  "src/insight/ops/MetricsExposition.ts": { modules: ["node:perf_hooks"], why: "measures the event loop's delay" },
  "src/platform/telemetry/LoadStatistics.ts": {
    modules: ["node:perf_hooks"],
    why: "measures how busy the event loop is"
  },
  "src/ledger/webhooks/VerifyWebhook.ts": { modules: ["node:crypto"], why: "runs at receivers, who have no Effect" }
}

const platformModules: Rule = {
  name: "Platform modules are used in their adapters only",
  find: inSources(({ imports, path }) =>
    inSrc(path)
      ? imports
          .filter(
            ({ target, typeOnly }) =>
              !typeOnly && target.startsWith("node:") && !adapters[path]?.modules.includes(target)
          )
          .map(({ line, target }) => ({ line, what: `imports ${target}` }))
      : []
  ),
  example: { "src/orders/Orders.ts": `import { readFileSync } from "node:fs"` }
}

const idleAdapters: Rule = {
  name: "Every adapter named here still uses its modules",
  find: ({ sources }) =>
    Object.entries(adapters).flatMap(([path, { modules }]) => {
      const used = sources.get(path)?.imports.map(({ target }) => target) ?? []
      return modules
        .filter((module) => !used.includes(module))
        .map((module) => ({ path, line: 1, what: `no ${module}` }))
    }),
  example: {}
}

export const banRules: ReadonlyArray<Rule> = [...codeBans.map(ban), ...testBans.map(ban), platformModules, idleAdapters]
