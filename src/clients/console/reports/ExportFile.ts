/** The file of an export, byte by byte: its digest holds for the bytes. It is read for as long as it takes. */
import { Effect, type Exit } from "effect"
import type { HttpClientResponse } from "effect/http"
import type { Request } from "../../client/Client.ts"
import { perform } from "../service/Hooks.ts"
import { send } from "../service/Service.ts"

export const fileOf = (id: string): Promise<Exit.Exit<ArrayBuffer, unknown>> => {
  const request: Request<"downloadReportExport"> = { params: { id } }
  const raw = { ...request, responseMode: "response-only" }
  return perform(
    Effect.flatMap(send("downloadReportExport", raw), (given) => {
      const response = given as unknown as HttpClientResponse.HttpClientResponse
      // A refusal is asked for once more, to be decoded.
      return response.status === 200
        ? response.arrayBuffer
        : Effect.andThen(send("downloadReportExport", request), Effect.die("The file came after a refusal."))
    })
  )
}
