/**
 * Where the console is. The service writes its path into the page, because a balancer may offer the service below any path. It also
 * takes what the sign-in's provider added to the address out of it, before anything else reads the address.
 */
const factOf = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name=${name}]`)?.content || undefined

/** The console's path, as `/console` or `/licensing/console`. */
export const home = factOf("console") ?? "/console"

/** The vendor's name for the console. */
export const ownTitle = factOf("console-title")

/** What the frame and the titles of pages say. */
export const title = ownTitle ?? "Licensing"

/** Whether the service sends mail. */
export const sendsMail = factOf("console-mail") === "true"

/** The address of the service. */
export const service = `${location.origin}${home.replace(/\/console$/, "")}`

/** Where the provider sends the reader back after a sign-in and a sign-out: the one address that it has to know. */
export const returnPath = `${home}/sign-in`

/** What a sign-in that has begun needs when the reader comes back; the provider never sees it. */
const place = "licensing.sign-in"

export interface Begun {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  /** The path that was asked for. */
  readonly path: string
  /** Whether the session outlives a reload. */
  readonly keep: boolean
}

export interface Returned {
  readonly parameters: URLSearchParams
  readonly begun: Begun | undefined
}

export const remember = (begun: Begun): void => sessionStorage.setItem(place, JSON.stringify(begun))

const takeBegun = (): Begun | undefined => {
  const text = sessionStorage.getItem(place)
  sessionStorage.removeItem(place)
  return text === null ? undefined : (JSON.parse(text) as Begun)
}

const takeReturned = (): Returned | undefined => {
  if (location.pathname !== returnPath) return undefined
  const parameters = new URLSearchParams(location.search)
  const begun = takeBegun()
  history.replaceState(null, "", begun?.path.startsWith(home) ? begun.path : home)
  return parameters.has("state") ? { parameters, begun } : undefined
}

let returned = takeReturned()

/** What the provider said, once. */
export const takeResponse = (): Returned | undefined => {
  const response = returned
  returned = undefined
  return response
}
