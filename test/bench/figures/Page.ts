/** The page of figures: what each benchmark measured, with its command, the day and the machine. */
import { execFileSync } from "node:child_process"
import { generateKeyPairSync, sign } from "node:crypto"
import { cpus, loadavg, totalmem } from "node:os"
import { root } from "../../../infra/scripts/service.ts"

export interface Part {
  readonly title: string
  readonly commands: ReadonlyArray<string>
  /** What is compared. */
  readonly text: string
  readonly tables: ReadonlyArray<string>
}

const outputBytesMax = 1e7

/** Runs a benchmark of package.json, which tells its progress on standard error. */
export const measure = <A>(script: string, args: ReadonlyArray<string>) => {
  const command = ["npm run", script, ...(args.length === 0 ? [] : ["--", ...args])].join(" ")
  process.stderr.write(`\n${command}\n`)
  const output = execFileSync("npm", ["run", "--silent", script, "--", ...args, "--json"], {
    cwd: root,
    maxBuffer: outputBytesMax,
    stdio: ["ignore", "pipe", "inherit"]
  })
  return { command, result: JSON.parse(output.toString()) as A }
}

const line = (cells: ReadonlyArray<unknown>) => `| ${cells.join(" | ")} |`

export const tableOf = (rows: ReadonlyArray<object>): string => {
  const names = Object.keys(rows[0] ?? {})
  return [line(names), line(names.map(() => "---")), ...rows.map((row) => line(Object.values(row)))].join("\n")
}

/** The load before the first benchmark tells whether the machine was idle. */
const [loadAtStart] = loadavg()

/** How fast one core is: microseconds of an Ed25519 signature of a response's size, of which a validation makes one. */
const signatureMicros = () => {
  const { privateKey } = generateKeyPairSync("ed25519")
  const bytes = new Uint8Array(700)
  const many = (count: number) => {
    const started = performance.now()
    for (let made = 0; made < count; made++) sign(null, bytes, privateKey)
    return (1_000 * (performance.now() - started)) / count
  }
  many(1_000)
  return many(10_000)
}

const machine = () => {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 1e9)
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root }).toString().trim()
  const day = new Date().toISOString().slice(0, 10)
  return `Made on ${day} of commit ${commit} with Node ${process.versions.node} on ${cpus().length} cores (${cpu?.model.trim()}) and ${memory} GB of
memory, which service, PostgreSQL and load share. The machine's load was ${loadAtStart!.toFixed(2)} when it began. It makes an
Ed25519 signature in ${Math.round(signatureMicros())} µs; that of [PERFORMANCE.md](PERFORMANCE.md) takes 20 to 25 µs.`
}

export const pageOf = (parts: ReadonlyArray<Part>): string => `# Figures

For those who compare or size: what one command measures on one machine. Ratios hold on other machines better than times.

\`\`\`sh
npm run figures
\`\`\`

${machine()}
${parts.map(sectionOf).join("")}`

const sectionOf = ({ commands, tables, text, title }: Part) => `
## ${title}

${commands.map((command) => `\`${command}\``).join("\\\n")}

${[text, ...tables].join("\n\n")}
`
