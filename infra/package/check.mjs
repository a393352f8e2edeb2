/**
 * Prints what publint and attw find in a package, as JSON: `node infra/package/check.mjs <unpacked folder> <archive>`. It needs the
 * tools of this folder (infra/scripts/tools.ts).
 */
import { readFileSync } from "node:fs"
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core"
import { publint } from "publint"

const [folder, archive] = process.argv.slice(2)
const { messages } = await publint({ pkgDir: folder, strict: true, pack: false })
const types = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(archive))))
process.stdout.write(JSON.stringify({ messages, types: types.types, problems: types.problems ?? [] }))
