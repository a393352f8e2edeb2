/** The published test vectors that concern an application, and the verdicts that a right client gives. */
import { readFileSync } from "node:fs"
import { wantedLines } from "../../verifying/Languages.ts"
import { type VectorFiles, vectorFiles } from "./Verdicts.ts"

const read = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../schema/vectors/${name}.json`, import.meta.url), "utf8"))

export const vectors = Object.fromEntries(vectorFiles.map((name) => [name, read(name)])) as unknown as VectorFiles

export const wantedVerdicts = (): ReadonlyArray<string> => [
  // An application receives no webhooks.
  ...wantedLines().filter((line) => !line.startsWith("webhooks ")),
  ...read("license-keys").valid.map(
    ({ canonical, input }: { readonly canonical: string; readonly input: string }) =>
      `license-keys: ${input}: ${canonical}`
  )
]
