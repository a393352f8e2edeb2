// @effect/sql-pg 4.0.0-rc.117 is the newest release of the driver and still imports effect's modules from where they lay
// before 4.1. This rewrites those import paths once after an install; it stops on any other version, so that an upgrade is
// looked at by a person. See docs/decisions/0002-postgresql-driver.md.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const expected = "4.0.0-rc.117"
const home = fileURLToPath(new URL("../../node_modules/@effect/sql-pg/", import.meta.url))
const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"))
if (version !== expected) {
  console.error(
    `@effect/sql-pg is ${version}; this project's import rewrite knows ${expected}. Check its imports, then update or remove infra/scripts/patch-sql-pg.mjs.`
  )
  process.exit(1)
}
for (const entry of readdirSync(join(home, "dist"), { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(js|d\.ts)$/.test(entry.name)) continue
  const path = join(entry.parentPath, entry.name)
  const before = readFileSync(path, "utf8")
  const after = before
    .replaceAll('"effect/unstable/', '"effect/')
    .replaceAll('"effect/Encoding"', '"effect/encoding/Base64"')
    .replaceAll("Encoding.encodeBase64(", "Encoding.encode(")
    .replaceAll("Encoding.decodeBase64(", "Encoding.decode(")
  if (after !== before) writeFileSync(path, after)
}
