/** Where people sign in: with a license key. */
import type { FormEvent } from "react"
import { ask } from "./Ask.ts"
import { useTexts } from "./Language.tsx"
import { Card, Field, Heading, Refusal } from "./Parts.tsx"
import { type PageFacts, type SignedIn, useAction } from "./Session.tsx"

interface Props {
  readonly page: PageFacts
  readonly wasEnded: boolean
  readonly onSignedIn: (signedIn: SignedIn, licenseKey?: string) => void
}

export const SignIn = ({ onSignedIn, wasEnded }: Props) => {
  const texts = useTexts()
  return (
    <>
      <Heading>{texts.signIn}</Heading>
      {wasEnded && <p role="alert">{texts.refused.ended}</p>}
      <ByKey onSignedIn={onSignedIn} />
    </>
  )
}

/** The text of a form's field. */
export const textIn = (event: FormEvent<HTMLFormElement>, name: string): string => {
  event.preventDefault()
  return String(new FormData(event.currentTarget).get(name)).trim()
}

const ByKey = ({ onSignedIn }: Pick<Props, "onSignedIn">) => {
  const texts = useTexts()
  const { isBusy, refused, run } = useAction()
  const submit = (event: FormEvent<HTMLFormElement>) => {
    const license_key = textIn(event, "license_key")
    void run(() => ask("POST /sign-in/key", { body: { license_key } })).then(
      (answer) => answer && onSignedIn(answer.data, license_key)
    )
  }
  return (
    <Card heading={texts.byKey}>
      <form className="form" onSubmit={submit}>
        <Field name="license_key" label={texts.licenseKey} hint={texts.keyHint} />
        <Refusal refused={refused} />
        <button type="submit" className="primary" aria-disabled={isBusy}>
          {texts.showLicense}
        </button>
      </form>
    </Card>
  )
}
