/** All licenses that filters choose, and files that the browser saves. */
import { Effect, Exit } from "effect"
import type { Keyset } from "../../../contract/api/Paging.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { Request } from "../../client/Client.ts"
import { perform, run } from "../service/Hooks.ts"

export type Filters = NonNullable<Request<"listLicenses">["query"]>

interface Options {
  readonly filters: Filters
  readonly signal: AbortSignal
  /** Is given each page. */
  readonly take: (page: ReadonlyArray<License>) => void
}

/** Reads page after page. The result is undefined if the signal ended it. */
export const readAll = (options: Options, cursor?: Keyset): Promise<Exit.Exit<void, unknown> | undefined> => {
  const { filters, signal, take } = options
  const query = { ...filters, limit: 200, ...(cursor === undefined ? {} : { cursor }) }
  return run("listLicenses", { query }).then((exit) => {
    if (signal.aborted) return undefined
    if (Exit.isFailure(exit)) return Exit.asVoid(exit)
    take(exit.value.items)
    return exit.value.next === undefined ? Exit.void : readAll(options, exit.value.next)
  })
}

/** Gives the reader a file. */
export const save = (name: string, parts: ReadonlyArray<string>): void => {
  const address = URL.createObjectURL(new Blob([...parts], { type: "text/csv;charset=utf-8" }))
  const link = document.createElement("a")
  link.href = address
  link.download = name
  link.click()
  // A browser may begin to read the file only after the click.
  void perform(
    Effect.delay(
      Effect.sync(() => URL.revokeObjectURL(address)),
      "1 minute"
    )
  )
}
