/** The page of figures: what each benchmark measured, with its command, the day and the machine. */
import { execFileSync } from "node:child_process"
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

const machine = () => {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 1e9)
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root }).toString().trim()
  const day = new Date().toISOString().slice(0, 10)
  return `Made on ${day} of commit ${commit} with Node ${process.versions.node} on ${cpus().length} cores (${cpu?.model.trim()}) and ${memory} GB of
memory, which service, PostgreSQL and load share. The machine's load was ${loadAtStart!.toFixed(2)} when it began.`
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
