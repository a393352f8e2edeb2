/** The refusal of unknown license ids. */
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"

/** The operations of licensed applications under /license. Under /licenses their names are taken for ids. */
const runtimePaths = ["activate", "validate", "check", "consume", "deactivate", "offline", "trial", "floating"]

export const refuseUnknownLicense = (id: string): Refusal<"NOT_FOUND"> => {
  if (!runtimePaths.includes(id)) return refuseUnknownId("license", id)
  const path = id === "floating" ? "floating/checkout" : id
  return refuse("NOT_FOUND", `No license has the id ${id}: applications use POST /api/v1/license/${path}.`, "id")
}
