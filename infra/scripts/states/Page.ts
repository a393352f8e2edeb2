/** How the page of states is laid out: tables, and diagrams of the cells in which a state follows another. */

interface Row {
  readonly name: string
  /** The state itself, of which there may be several rows. */
  readonly from: string
  readonly cells: ReadonlyArray<string>
}

export interface Table {
  readonly commands: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Row>
}

interface States {
  readonly licenses: Table
  readonly clock: ReadonlyArray<{
    readonly name: string
    readonly from: string
    readonly when: string
    readonly to: string
  }>
  readonly effects: ReadonlyArray<Pick<Row, "name" | "cells">>
  readonly devices: Table
  readonly fates: Table
  readonly leases: Table
}

export const page = ({ licenses, clock, effects, devices, fates, leases }: States): string => `# States

Made by \`npm run generate\` from the rules in \`src/licenses\`: every cell is what they decide. A cell names the state that
follows; where it is the same, something else was changed and recorded. \`–\` changes nothing. A number and a code are a refusal.

## Licenses

${diagram(["[*] --> active: create", ...arrowsOf(licenses), ...clock.map(clockArrow), "revoked --> [*]"])}

${tableOf(["From", ...licenses.commands], licenses.rows)}

Renewals are for licenses of the types subscription, time_limited and trial; the others answer 422 LICENSE_NOT_RENEWABLE.

What time does holds whenever a license is read, listed or used, written down or not:

${tableOf(
  ["From", "When", "To"],
  clock.map(({ name, when, to }) => ({ name, cells: [when, to] }))
)}

What goes with a change of an active license, one device of which holds an activation slot and another a floating seat:

${tableOf(["Change", "Events", "Device in the slot", "Device on the seat", "Its lease", "entitlement_version"], effects)}

## Devices

${diagram([...arrowsOf(devices), ...arrowsOf(fates)])}

${tableOf(["From", ...devices.commands], devices.rows)}

What happens to a device by itself, or with its license or seat, under a policy that requires heartbeats:

${tableOf(["From", ...fates.commands], fates.rows)}

## Floating leases

${diagram(["[*] --> live: checkout", ...arrowsOf(leases)])}

${tableOf(["From", ...leases.commands], leases.rows)}
`

const tableOf = (heads: ReadonlyArray<string>, rows: ReadonlyArray<Pick<Row, "name" | "cells">>): string =>
  [heads, heads.map(() => "---"), ...rows.map(({ name, cells }) => [name, ...cells])]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n")

type Clock = States["clock"][number]

const clockArrow = ({ name, from, when, to }: Clock): string =>
  to === "–" ? "" : `${from} --> ${to}: ${when}${name.slice(from.length)}`

/** One arrow from a state to each that follows it, with all that leads there. */
const arrowsOf = ({ commands, rows }: Table): ReadonlyArray<string> => {
  const arrows = new Map<string, Set<string>>()
  for (const { from, cells } of rows) {
    for (const [index, to] of cells.entries()) {
      if (!/^[a-z_]+$/.test(to) || to === from) continue
      const arrow = `${from} --> ${to}`
      arrows.set(arrow, (arrows.get(arrow) ?? new Set()).add(commands[index] ?? ""))
    }
  }
  return Array.from(arrows, ([arrow, by]) => `${arrow}: ${Array.from(by).join(", ")}`)
}

const diagram = (lines: ReadonlyArray<string>): string =>
  ["```mermaid", "stateDiagram-v2", ...lines.filter((line) => line !== "").map((line) => `  ${line}`), "```"].join("\n")
