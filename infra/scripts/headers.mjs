/**
 * Removes the C++ headers of Node from the package `node`: a third of its 189 MB. Only native add-ons are compiled with them, and the
 * project has none. `npm ci` runs it (`prepare`).
 */
import { existsSync, readdirSync, rmSync } from "node:fs"

const packages = new URL("../../node_modules/node/node_modules/", import.meta.url)
for (const name of existsSync(packages) ? readdirSync(packages) : []) {
  if (name.startsWith("node-")) rmSync(new URL(`${name}/include`, packages), { recursive: true, force: true })
}
