/** Signs in at the OIDC provider that the service trusts, or with an API token, once the service has accepted the token. */
import { Cause, Effect, Exit, Redacted } from "effect"
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react"
import type { SignInWays } from "../../../access/oidc/SignInProvider.ts"
import { Mark } from "../look/Icon.tsx"
import { FieldView } from "../parts/Fields.tsx"
import { Waiting } from "../parts/Show.tsx"
import { type Begun, ownTitle, takeResponse, title } from "../service/Address.ts"
import { hasDrafts } from "../service/Drafts.ts"
import { inWords, tell } from "../service/Failures.ts"
import { useBusy, useSession } from "../service/Hooks.ts"
import { begin, finish, leaveFor, NotSignedIn, reachable, ways } from "../service/Provider.ts"
import { inspect, perform } from "../service/Service.ts"
import { signIn, type Tokens } from "../service/Session.ts"
import { awaitWindow, isTaken } from "../service/SignInWindow.ts"

const token = { label: "API token", control: { kind: "input", type: "password" } } as const
const keep = { label: "Stay signed in over reloads, and in other tabs", control: { kind: "flag" } } as const

export const SignIn = () => {
  const { reason } = useSession()
  const [known, setKnown] = useState<SignInWays>()
  const [fault, setFault] = useState<string>()
  const [returned] = useState(takeResponse)
  const [isOfAnother, setOfAnother] = useState(false)
  useEffect(() => {
    document.title = `Sign in · ${title}`
    void perform(returned === undefined ? Effect.void : finishing(returned)).then((exit) => {
      if (Exit.isSuccess(exit) && exit.value === "taken") {
        setOfAnother(true)
        return close()
      }
      if (Exit.isFailure(exit)) setFault(sentenceOf(exit.cause))
      return perform(ways).then((found) => setKnown(Exit.isSuccess(found) ? found.value : {}))
    })
  }, [returned])
  if (isOfAnother)
    return (
      <SignInFrame>
        <p role="status">The sign-in goes on in the tab where you began it. You can close this one.</p>
      </SignInFrame>
    )
  return (
    <SignInFrame>
      {reason !== undefined && fault === undefined && (
        <p role="alert" className="failed">
          You are signed out. {inWords(reason, { allowed_cidrs: "its networks" })}
        </p>
      )}
      {hasDrafts() && <p>What you were doing here is kept: sign in again to go on with it, and keep this tab open.</p>}
      {fault !== undefined && (
        <p role="alert" className="failed">
          {fault}
        </p>
      )}
      {known !== undefined ? (
        <Ways known={known} onFault={setFault} />
      ) : returned === undefined ? (
        <Waiting />
      ) : (
        <p role="status" className="waiting">
          Signing in…
        </p>
      )}
    </SignInFrame>
  )
}

const SignInFrame = ({ children }: { readonly children: ReactNode }) => (
  <main className="sign-in">
    <Mark />
    <h1>{ownTitle ?? "Licensing console"}</h1>
    {children}
  </main>
)

const Ways = ({ known, onFault }: { readonly known: SignInWays; readonly onFault: (fault: string) => void }) => {
  const [busy, track] = useBusy()
  const isKept = useRef(false)
  const { issuer, provider } = known
  const kept = (
    <div onChange={({ target }) => (isKept.current = (target as HTMLInputElement).checked)}>
      <FieldView name="keep" field={keep} texts={isKept.current ? ["on"] : []} fault={undefined} />
    </div>
  )
  if (issuer === undefined) return <TokenForm isKept={isKept}>{kept}</TokenForm>
  const told = (exit: Exit.Exit<unknown, unknown>) => Exit.isFailure(exit) && onFault(sentenceOf(exit.cause))
  const start = () => {
    // Leaving the page would lose what was typed. A browser opens a window only at once.
    const opened = hasDrafts() ? open("", "_blank") : undefined
    if (opened === null) return onFault(blocked)
    const go = (url: URL, begun: Begun) => {
      if (opened === undefined) return leaveFor(url, begun)
      awaitWindow(begun, (returned) => void track(perform(finishing(returned))).then(told))
      opened.opener = null
      opened.location.href = url.href
    }
    void track(perform(Effect.flatMap(reachable, (at) => begin(at, isKept.current, go)))).then((exit) => {
      if (Exit.isFailure(exit)) opened?.close()
      told(exit)
    })
  }
  return (
    <>
      {provider === undefined && (
        <p role="alert" className="failed">
          {new URL(issuer).host} cannot be reached: try again in a moment, or sign in with an API token.
        </p>
      )}
      <button type="button" className="primary" aria-disabled={busy} onClick={busy ? undefined : start}>
        Sign in at {new URL(issuer).host}
      </button>
      {kept}
      <details open={provider === undefined}>
        <summary>Sign in with an API token</summary>
        <TokenForm isKept={isKept} />
      </details>
    </>
  )
}

const blocked = "The browser did not open a window for the sign-in: allow windows of this page, and try again."

const TokenForm = (props: { readonly isKept: { readonly current: boolean }; readonly children?: ReactNode }) => {
  const [fault, setFault] = useState<string>()
  const [busy, track] = useBusy()
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (busy) return
    const access = Redacted.make(String(new FormData(event.currentTarget).get("token")).trim())
    void track(perform(inspect(access))).then((exit) => {
      if (Exit.isSuccess(exit)) signIn({ access }, props.isKept.current)
      else setFault(faultOf(exit.cause, Redacted.value(access)))
    })
  }
  return (
    <form className="form" onSubmit={submit} noValidate>
      <FieldView name="token" field={token} texts={[]} fault={fault} />
      {props.children}
      <button type="submit" className={props.children === undefined ? "" : "primary"} aria-disabled={busy}>
        {busy ? "Signing in…" : "Sign in"}
      </button>
      <small>The token stays in this tab, unless you choose otherwise, and is gone once it is closed.</small>
    </form>
  )
}

/** What is wrong with a token, for a person who has copied it. */
const tokenFaults: Readonly<Record<string, string>> = {
  TOKEN_MISSING: "Enter an API token.",
  TOKEN_MALFORMED: "This is not an API token: copy it whole, without spaces or line breaks.",
  TOKEN_INVALID: "The service does not know this token. Copy it again, or ask an administrator for a new one.",
  TOKEN_EXPIRED: "This token has expired: ask an administrator for a new one.",
  TOKEN_INACTIVE: "This token is switched off: ask an administrator to switch it on.",
  TOKEN_ADDRESS_BLOCKED: "This token may not be used from your network: ask an administrator to allow it."
}

const faultOf = (cause: Cause.Cause<unknown>, token: string): string => {
  const { code = "", message } = tell(cause)
  if (token === "") return "Enter an API token."
  if (code in tokenFaults && token.startsWith("LK-")) return "This is a license key. The console needs an API token."
  return tokenFaults[code] ?? inWords(message)
}

/** Signs in with what the provider said, unless the account may do nothing here. */
const finishing = Effect.fnUntraced(function* (returned: NonNullable<ReturnType<typeof takeResponse>>) {
  const { begun, parameters } = returned
  const isOwn = parameters.get("state") === begun?.state
  if (!isOwn && (yield* Effect.promise(() => isTaken(parameters)))) return "taken" as const
  const tokens: Tokens = yield* finish(yield* reachable, returned)
  const me = yield* Effect.catch(inspect(tokens.access), (error) =>
    Effect.fail(
      new NotSignedIn({ message: `The service does not accept this sign-in. ${tell(Cause.fail(error)).message}` })
    )
  )
  if (me.scopes.length === 0) {
    return yield* new NotSignedIn({
      message: `You are ${me.name}, but this account may do nothing here: ask your administrator for a role.`
    })
  }
  return signIn(tokens, begun?.keep ?? false)
})

const sentenceOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof NotSignedIn ? error.message : inWords(tell(cause).message)
}
