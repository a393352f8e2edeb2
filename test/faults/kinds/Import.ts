/** An import whose command is killed in the middle: the same command completes it, each record once and with all its parts. */
import { rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { poll } from "../../support/rules/Poll.ts"
import { customer, device, exportOf, license } from "../../tools/transfer/Records.ts"
import { query } from "../checks/Rows.ts"
import type { Catalog } from "../load/Catalog.ts"
import type { Fault } from "./Fault.ts"

const licenses = 1_200
const devicesOfLicense = 3

/** Ids tell the round's records from all others. */
const textFor = (round: string, { policyId, productId }: Catalog) => {
  const names = Array.from({ length: licenses }, (_, index) => `import_${round}_${index}`)
  return exportOf([
    ...names.map((name) => customer(`cust_${name}`)),
    ...names.flatMap((name) => [
      license(`lic_${name}`, { product_id: productId, policy_id: policyId, customer_id: `cust_${name}` }),
      ...Array.from({ length: devicesOfLicense }, (_, index) => device(`lic_${name}`, index))
    ])
  ])
}

interface Imported {
  readonly customers: number
  readonly licenses: number
  /** Licenses that lack some of their devices. */
  readonly incomplete: number
  readonly devices: number
  /** Events of creation, and the records that they are about. */
  readonly events: number
  readonly resources: number
}

const imported = `SELECT jsonb_build_object(
  'customers', (SELECT count(*) FROM customers WHERE id LIKE 'cust' || $1),
  'licenses', (SELECT count(*) FROM licenses WHERE id LIKE 'lic' || $1),
  'incomplete', (SELECT count(*) FROM licenses l WHERE id LIKE 'lic' || $1
    AND (SELECT count(*) FROM devices d WHERE d.license_id = l.id) <> ${devicesOfLicense}),
  'devices', (SELECT count(*) FROM devices WHERE license_id LIKE 'lic' || $1),
  'events', (SELECT count(*) FROM events WHERE resource_id LIKE '%' || $1 AND event_type LIKE '%.created'),
  'resources', (SELECT count(DISTINCT resource_id) FROM events WHERE resource_id LIKE '%' || $1 AND event_type LIKE '%.created'))::text`

const killedImport: Fault = {
  name: "kill an import",
  lasts: [0, 500],
  begin: Effect.fnUntraced(function* ({ catalog, installation: { nodes, postgres }, random, round }) {
    const count = Effect.map(query(postgres, imported, [`\\_import\\_${round}\\_%`]), (found) => found as Imported)
    const path = join(tmpdir(), `faults-import-${round}.jsonl`)
    yield* Effect.sync(() => writeFileSync(path, textFor(round, catalog)))
    const command = random.pick(nodes).command(["import", "file", path])
    const enough = random.between(1, licenses / 2)
    // The interrupted command is killed.
    yield* Effect.raceFirst(
      command,
      poll(count, (found) => found.licenses >= enough)
    )
    const killed = yield* count
    return Effect.gen(function* () {
      const code = yield* command
      const found = yield* count
      yield* Effect.sync(() => rmSync(path))
      const [records, devices] = [2 * licenses, licenses * devicesOfLicense]
      const wanted: Imported = {
        ...{ customers: licenses, licenses, incomplete: 0, devices, events: records, resources: records }
      }
      return [
        ...(killed.licenses < licenses ? [] : ["the import ended before it was killed"]),
        ...(killed.incomplete === 0 ? [] : [`the killed import left ${killed.incomplete} licenses without devices`]),
        ...(code === 0 ? [] : [`the repeated import ended with ${code}`]),
        ...Object.entries(wanted).flatMap(([name, count]) =>
          found[name as keyof Imported] === count
            ? []
            : [`import: ${found[name as keyof Imported]} ${name} of ${count}`]
        )
      ]
    })
  })
}

export const importFaults: ReadonlyArray<Fault> = [killedImport]
