/** The refusal of unknown license ids. */
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"

/** The operations of licensed applications under /license. Under /licenses their names are taken for ids. */
const runtimePaths: { readonly [id: string]: string } = {
  activate: "activate",
  validate: "validate",
  check: "check",
  consume: "consume",
  deactivate: "deactivate",
  offline: "offline",
  trial: "trial",
  floating: "floating/checkout"
}

export const refuseUnknownLicense = (id: string): Refusal<"NOT_FOUND"> => {
  const path = Object.hasOwn(runtimePaths, id) ? runtimePaths[id] : undefined
  return path === undefined
    ? refuseUnknownId("license", id)
    : refuse("NOT_FOUND", `No license has the id ${id}: applications use POST /api/v1/license/${path}.`, "id")
}
