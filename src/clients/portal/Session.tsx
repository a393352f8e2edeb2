/** Who is signed in, as the screens know it. The session itself is a cookie that no script can read. */
import { createContext, useContext, useEffect, useState } from "react"
import { type Answer, ask, type Refused, type Result } from "./Ask.ts"

export type PageFacts = Omit<Answer<"GET /page">["data"], "session">
export type SignedIn = Answer<"POST /sign-in/key">["data"]

export type LicenseDetails = Answer<"GET /licenses/:license_id">["data"]

/** Why a session ended without a sign-out. */
export type Left = "ended" | "newKey"

export interface EnteredKey {
  readonly licenseId: string
  readonly licenseKey: string
}

export interface Session {
  readonly page: PageFacts
  readonly signedIn: SignedIn
  /** The license key that was entered last since the page was loaded. */
  readonly entered: EnteredKey | undefined
  /** Without a key it forgets the last one, which may not be valid any more. */
  readonly rememberKey: (entered?: EnteredKey) => void
  /** Shows nothing but this license, which is the only one. */
  readonly showOnly: (id: string) => void
  /** Ends the session on this page. */
  readonly leave: (why?: Left) => void
}

export const CurrentSession = createContext<Session | undefined>(undefined)

export const useSession = () => useContext(CurrentSession)!

const isEnded = ({ code }: Refused) => code === "TOKEN_MISSING" || code === "TOKEN_INVALID"

/** What a screen shows, once it is read. `again` reads it anew. */
export const useRead = <K extends "GET /licenses" | "GET /licenses/:license_id">(
  operation: K,
  params: { readonly [name: string]: string } = {},
  query: { readonly [name: string]: string } = {}
) => {
  const { leave } = useSession()
  const [result, setResult] = useState<Result<Answer<K>>>()
  const [turn, setTurn] = useState(0)
  const sent = JSON.stringify([params, query])
  // biome-ignore lint/correctness/useExhaustiveDependencies: `sent` is params and query; `turn` reads again.
  useEffect(() => {
    let isShown = true
    void ask(operation, { params, query }).then((read) => {
      if (!isShown) return
      if ("refused" in read && isEnded(read.refused)) leave("ended")
      else setResult(read)
    })
    return () => {
      isShown = false
    }
  }, [operation, sent, turn])
  return { result, again: () => setTurn((last) => last + 1) }
}

/** Something that a person does: one at a time, and why it was refused. */
export const useAction = (onEnded?: () => void) => {
  const [isBusy, setBusy] = useState(false)
  const [refused, setRefused] = useState<Refused>()
  const run = async <A,>(asked: () => Promise<Result<A>>): Promise<A | undefined> => {
    if (isBusy) return undefined
    setBusy(true)
    setRefused(undefined)
    const result = await asked()
    setBusy(false)
    if ("answer" in result) return result.answer
    if (onEnded !== undefined && isEnded(result.refused)) onEnded()
    else setRefused(result.refused)
    return undefined
  }
  return { isBusy, refused, run, forget: () => setRefused(undefined) }
}
