/** Makes one declaration of each entry's: `node infra/package/declarations.mjs '{"<entry>.d.ts": "<file>.d.ts", …}'`. */
import { writeFileSync } from "node:fs"
import { rolldown } from "rolldown"
import { dts } from "rolldown-plugin-dts"

for (const [input, file] of Object.entries(JSON.parse(process.argv[2]))) {
  const built = await rolldown({ input, external: [/^effect(\/|$)/], plugins: [dts({ dtsOnly: true })] })
  const { output } = await built.generate({ format: "esm" })
  await built.close()
  if (output.length !== 1) throw new Error(`${input} became ${output.map(({ fileName }) => fileName).join(", ")}`)
  writeFileSync(file, output[0].code)
}
