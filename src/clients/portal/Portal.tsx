/** The page: its frame, and the screen that the address after # names. */
import { useEffect, useState, useSyncExternalStore } from "react"
import { AirGap } from "./AirGap.tsx"
import { address, ask, type Refused } from "./Ask.ts"
import { LanguageChoice, sentenceOf, useTexts } from "./Language.tsx"
import { License } from "./License.tsx"
import { Licenses } from "./Licenses.tsx"
import { Unread, Waiting } from "./Parts.tsx"
import {
  CurrentSession,
  type EnteredKey,
  type Left,
  type PageFacts,
  type Session,
  type SignedIn,
  useAction
} from "./Session.tsx"
import { OpenedLink, SignIn } from "./SignIn.tsx"
import { onTabs, tellTabs } from "./Tabs.ts"

const followHash = (changed: () => void) => {
  addEventListener("hashchange", changed)
  return () => removeEventListener("hashchange", changed)
}
const currentHash = () => location.hash.slice(1)

interface State {
  readonly page: PageFacts
  readonly signedIn?: SignedIn
  readonly left?: Left
  /** Why the page is not known. */
  readonly refused?: Refused
}

/** The token of a link, which leaves the address and the history at once. */
const takeLink = (): string | undefined => {
  const token = new URLSearchParams(currentHash()).get("link") ?? undefined
  if (token !== undefined) history.replaceState(null, "", location.pathname)
  return token
}
const opened = takeLink()

let onLink: (token: string) => void = () => {}
// A link that is opened in the tab of this page changes only the part after #. This listener is the first one: no screen reads the token.
followHash(() => {
  const token = takeLink()
  if (token !== undefined) onLink(token)
})

export const Portal = () => {
  const [link, setLink] = useState(opened)
  const [state, setState] = useState<State>()
  const [entered, rememberKey] = useState<EnteredKey>()
  useEffect(() => void read().then(setState), [])
  useEffect(() => {
    onLink = setLink
    return onTabs(() => {
      rememberKey(undefined)
      void read().then((next) => setState((last) => followed(last, next)))
    })
  }, [])
  const begin = (signedIn: SignedIn, licenseKey?: string) => {
    const { license_id: licenseId } = signedIn
    rememberKey(licenseId === undefined || licenseKey === undefined ? undefined : { licenseId, licenseKey })
    setLink(undefined)
    location.hash = ""
    setState((last) => last && { page: last.page, signedIn })
    tellTabs()
  }
  const leave = (left?: Left) => {
    rememberKey(undefined)
    setState((last) => last && { page: last.page, ...(left && { left }) })
    tellTabs()
  }
  const showOnly = (license_id: string) =>
    setState((last) => (last?.signedIn ? { ...last, signedIn: { ...last.signedIn, license_id } } : last))
  const session: Session | undefined = state?.signedIn && {
    page: state.page,
    signedIn: state.signedIn,
    entered,
    rememberKey,
    showOnly,
    leave
  }
  return (
    <CurrentSession value={session}>
      <Header page={state?.page} session={session} />
      <main>
        {state === undefined ? (
          <Waiting />
        ) : state.refused !== undefined ? (
          <Unread refused={state.refused} onAgain={() => void read().then(setState)} />
        ) : link !== undefined ? (
          <OpenedLink
            key={link}
            token={link}
            isSignedIn={session !== undefined}
            onSignedIn={begin}
            onClose={() => setLink(undefined)}
          />
        ) : session === undefined ? (
          <SignIn page={state.page} left={state.left} onSignedIn={begin} />
        ) : (
          <Screen session={session} />
        )}
      </main>
      <Footer contact={state?.page.contact} />
    </CurrentSession>
  )
}

const read = async (): Promise<State> => {
  const facts = await ask("GET /page")
  if ("refused" in facts) return { page: { has_logo: false, has_mail: false }, refused: facts.refused }
  const { session, ...page } = facts.answer.data
  return { page, ...(session && { signedIn: session }) }
}

/** What a tab shows after another one has begun or ended the session. */
const followed = (last: State | undefined, next: State): State => ({
  ...next,
  ...(last?.signedIn && !next.signedIn && { left: "ended" })
})

const Screen = ({ session }: { readonly session: Session }) => {
  const [id, part] = useSyncExternalStore(followHash, currentHash).split("/")
  const own = session.signedIn.license_id
  const shown = own ?? id
  if (shown === undefined || shown === "") return <Licenses />
  return part === "offline" ? (
    <AirGap key={shown} id={shown} />
  ) : (
    <License key={shown} id={shown} isOnly={own !== undefined} />
  )
}

const Header = (props: { readonly page: PageFacts | undefined; readonly session: Session | undefined }) => {
  const texts = useTexts()
  const { page, session } = props
  return (
    <header>
      <p className="brand">
        {page?.has_logo && <img src={`${address}/logo`} alt="" height="32" />}
        {page?.title ?? texts.title}
      </p>
      <LanguageChoice />
      {session !== undefined && <SignOut leave={session.leave} />}
    </header>
  )
}

/** Shows the end of the session only after the service has confirmed it: somebody may leave a shared computer then. */
const SignOut = ({ leave }: Pick<Session, "leave">) => {
  const texts = useTexts()
  const { isBusy, refused, run } = useAction(leave)
  const signOut = () =>
    void run(async () => {
      const result = await ask("POST /sign-out")
      return "refused" in result ? result : { answer: true }
    }).then((isDone) => isDone && leave())
  return (
    <>
      <button type="button" className="quiet" aria-disabled={isBusy} onClick={signOut}>
        {texts.signOut}
      </button>
      {refused !== undefined && (
        <p role="alert" className="failed">
          {texts.stillSignedIn} {sentenceOf(texts, refused)}
        </p>
      )}
    </>
  )
}

const Footer = ({ contact }: { readonly contact: string | undefined }) => {
  const texts = useTexts()
  if (contact === undefined) return null
  return (
    <footer>
      {texts.help}:{" "}
      <a href={contact.includes(":") ? contact : `mailto:${contact}`}>{contact.replace(/^https?:\/\//, "")}</a>
    </footer>
  )
}
