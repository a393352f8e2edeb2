import { Exit, Redacted } from "effect"
import { type FormEvent, useState } from "react"
import { FieldView } from "../parts/Fields.tsx"
import { inWords, tell } from "../service/Failures.ts"
import { useAtom, useBusy } from "../service/Hooks.ts"
import { inspect } from "../service/Service.ts"
import { session, signIn } from "../service/Session.ts"

const token = { label: "API token", control: { kind: "input", type: "password" } } as const
const keep = { label: "Stay signed in when this tab is reloaded", control: { kind: "flag" } } as const

/** Signs in with an API token, once the service has accepted it. */
export const SignIn = () => {
  const { ended } = useAtom(session)
  const [fault, setFault] = useState<string>()
  const [busy, track] = useBusy()
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (busy) return
    const form = new FormData(event.currentTarget)
    const given = Redacted.make(String(form.get("token")).trim())
    void track(inspect(given)).then((exit) => {
      if (Exit.isSuccess(exit)) signIn(given, form.has("keep"))
      else setFault(inWords(tell(exit.cause).message))
    })
  }
  return (
    <main className="sign-in">
      <h1>Licensing console</h1>
      {ended !== undefined && (
        <p role="alert" className="failed">
          You are signed out. {inWords(ended)}
        </p>
      )}
      <form className="form" onSubmit={submit} noValidate>
        <FieldView name="token" field={token} texts={[]} fault={fault} />
        <FieldView name="keep" field={keep} texts={[]} fault={undefined} />
        <button type="submit" className="primary" aria-disabled={busy}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
      </form>
      <p className="quiet">The token stays in this tab and is gone when it closes.</p>
    </main>
  )
}
