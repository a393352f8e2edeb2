/**
 * Generates clients from the document with the generators that people use, compiles them, and runs each on a service: a product, a
 * policy, a license, activate, validate, a refusal (docs/guides/generated-clients.md).
 *
 *   npm run clients                       all for which the machine has the toolchain
 *   npm run clients -- --only hey-api,go
 *   npm run clients -- --work <folder>    keeps what was generated
 */
import { execFileSync, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { parseArgs } from "node:util"
import { openApiDocument } from "../../src/edge/documents/Document.ts"
import { openApiJson } from "../../src/edge/documents/publishing/Documents.ts"
import { root, startService } from "./service.ts"

const { values: flags } = parseArgs({ options: { only: { type: "string" }, work: { type: "string" } } })

type Command = ReadonlyArray<string>

interface Client {
  readonly generator: string
  /** The programs without which it is skipped. */
  readonly needs: ReadonlyArray<string>
  readonly files: Readonly<Record<string, string>>
  /** Files of infra/clients, with their places. */
  readonly copies: Readonly<Record<string, string>>
  /** Installs, generates and compiles. */
  readonly build: ReadonlyArray<Command>
  readonly run: Command
}

const compilerOptions = {
  target: "esnext",
  module: "nodenext",
  lib: ["esnext", "dom", "dom.iterable"],
  strict: true,
  skipLibCheck: false,
  noEmit: true,
  allowImportingTsExtensions: true,
  types: ["node"]
}

const typescriptProject = (dependencies: Readonly<Record<string, string>>) => ({
  "package.json": JSON.stringify({
    type: "module",
    private: true,
    dependencies: { typescript: "5.9.3", "@types/node": "24.10.1", ...dependencies }
  }),
  "tsconfig.json": JSON.stringify({ compilerOptions, include: ["*.ts", "generated"] })
})

const mvn = ["mvn", "--quiet", "--batch-mode"]
const node = join(root, "node_modules/.bin/node")

const clients: Readonly<Record<string, Client>> = {
  "openapi-typescript": {
    generator: "openapi-typescript 7.13.0, openapi-fetch 0.17.0",
    needs: ["npm"],
    files: typescriptProject({ "openapi-typescript": "7.13.0", "openapi-fetch": "0.17.0" }),
    copies: { "openapiTypescript.ts": "smoke.ts" },
    build: [
      ["npm", "install", "--silent"],
      ["npx", "openapi-typescript", "openapi.json", "--output", "openapi.d.ts", "--default-non-nullable=false"],
      ["npx", "tsc"]
    ],
    run: [node, "smoke.ts"]
  },
  "hey-api": {
    generator: "@hey-api/openapi-ts 0.99.0",
    needs: ["npm"],
    files: typescriptProject({ "@hey-api/openapi-ts": "0.99.0" }),
    copies: { "heyApi.ts": "smoke.ts" },
    build: [
      ["npm", "install", "--silent"],
      ["npx", "openapi-ts", "--input", "openapi.json", "--output", "generated", "--silent"],
      ["npx", "tsc", "--noEmit", "false", "--outDir", "compiled", "--rewriteRelativeImportExtensions"]
    ],
    run: [node, "compiled/smoke.js"]
  },
  python: {
    generator: "openapi-python-client 0.29.1",
    needs: ["python3"],
    files: {},
    copies: { "smoke.py": "smoke.py" },
    build: [
      ["python3", "-m", "venv", "venv"],
      ["venv/bin/pip", "install", "--quiet", "openapi-python-client==0.29.1", "ruff==0.17.6"],
      [
        "venv/bin/openapi-python-client",
        "generate",
        "--path",
        "openapi.json",
        "--meta",
        "none",
        "--output-path",
        "licensing_service_client",
        "--fail-on-warning"
      ],
      ["venv/bin/python", "-m", "compileall", "-q", "licensing_service_client"]
    ],
    run: ["venv/bin/python", "smoke.py"]
  },
  go: {
    generator: "oapi-codegen 2.8.2",
    needs: ["go"],
    files: {
      "go.mod": "module smoke\n\ngo 1.24\n",
      "config.yaml":
        "package: licensing\noutput: licensing/licensing.gen.go\ngenerate:\n  models: true\n  client: true\n"
    },
    copies: { "smoke.go": "main.go" },
    build: [
      [
        "go",
        "run",
        "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2",
        "-config",
        "config.yaml",
        "openapi.json"
      ],
      ["go", "mod", "tidy"],
      ["go", "vet", "./..."],
      ["go", "build", "-o", "smoke", "."]
    ],
    run: ["./smoke"]
  },
  java: {
    generator: "openapi-generator 7.25.0",
    needs: ["mvn"],
    files: {},
    copies: { "Smoke.java": "client/src/main/java/smoke/Smoke.java" },
    build: [
      [...mvn, "dependency:copy", "-Dartifact=org.openapitools:openapi-generator-cli:7.25.0", "-DoutputDirectory=."],
      [
        "java",
        "-jar",
        "openapi-generator-cli-7.25.0.jar",
        "generate",
        "--input-spec=openapi.json",
        "--generator-name=java",
        "--output=client",
        "--global-property=apis,models,supportingFiles,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"
      ],
      [...mvn, "--file=client/pom.xml", "compile"]
    ],
    run: [
      ...mvn,
      "--file=client/pom.xml",
      "org.codehaus.mojo:exec-maven-plugin:3.5.1:java",
      "-Dexec.mainClass=smoke.Smoke"
    ]
  }
}

const isInstalled = (program: string) => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0

const build = (name: string, { build, copies, files }: Client, work: string): string => {
  const folder = join(work, name)
  mkdirSync(join(folder, "licensing"), { recursive: true })
  writeFileSync(join(folder, "openapi.json"), openApiJson(openApiDocument()))
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
  for (const [from, to] of Object.entries(copies)) {
    mkdirSync(dirname(join(folder, to)), { recursive: true })
    copyFileSync(join(root, "infra/clients", from), join(folder, to))
  }
  for (const [program, ...args] of build) {
    process.stdout.write(`  ${program} ${args.join(" ")}\n`)
    const PATH = [join(folder, "venv/bin"), process.env["PATH"]].join(delimiter)
    execFileSync(program!, args, { cwd: folder, stdio: "inherit", env: { ...process.env, PATH } })
  }
  return folder
}

const work = flags.work ?? mkdtempSync(join(tmpdir(), "licensing-clients-"))
chmodSync(work, 0o711)
const token = `clients_${randomBytes(32).toString("base64url")}`
const settings = { LICENSING_DATA_DIR: join(work, "data"), LICENSING_BOOTSTRAP_TOKEN: token }
const wanted = flags.only?.split(",") ?? Object.keys(clients)
const results: Array<string> = []
const service = await startService({ settings, log: join(work, "service.log") })
try {
  for (const name of wanted) {
    const client = clients[name]
    if (client === undefined) throw new Error(`There is no client ${name}: ${Object.keys(clients).join(", ")}.`)
    const missing = client.needs.find((program) => !isInstalled(program))
    process.stdout.write(`${name}: ${client.generator}\n`)
    const [program, ...args] = client.run
    const environment = { SERVICE_URL: service.base, SERVICE_TOKEN: token, SERVICE_SUFFIX: name }
    if (missing === undefined) {
      try {
        const folder = build(name, client, work)
        execFileSync(program!, args, { cwd: folder, stdio: "inherit", env: { ...process.env, ...environment } })
        results.push(`${name}: generated, compiled, run`)
      } catch (error) {
        process.exitCode = 1
        results.push(`${name}: FAILED: ${error instanceof Error ? error.message.split("\n")[0] : error}`)
      }
    } else results.push(`${name}: skipped, ${missing} is not installed`)
  }
} finally {
  await service.stop()
  if (flags.work === undefined) rmSync(work, { recursive: true, force: true })
}
process.stdout.write(`\n${results.join("\n")}\n`)
