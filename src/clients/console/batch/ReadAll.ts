/** All pages of a list, and files that the browser saves. */
import { Effect, Exit } from "effect"
import type { Keyset, Page } from "../../../contract/api/Paging.ts"
import { perform } from "../service/Hooks.ts"

export interface PageQuery {
  readonly limit: number
  readonly cursor?: Keyset
}

/** Reads one page of a list. */
export type ReadPage<A> = (query: PageQuery) => Promise<Exit.Exit<Page<A>, unknown>>

interface Options<A> {
  readonly read: ReadPage<A>
  readonly signal: AbortSignal
  /** Is given each page. */
  readonly take: (page: ReadonlyArray<A>) => void
}

/** Reads page after page. The result is undefined if the signal ended it. */
export const readAll = <A>(options: Options<A>, cursor?: Keyset): Promise<Exit.Exit<void, unknown> | undefined> => {
  const { read, signal, take } = options
  return read({ limit: 200, ...(cursor === undefined ? {} : { cursor }) }).then((exit) => {
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
