/** Where people sign in: with a license key, or with a link that is mailed to them. */
import { type FormEvent, useState } from "react"
import { ask } from "./Ask.ts"
import { useTexts, useWords } from "./Language.tsx"
import { Card, Field, Heading, Refusal } from "./Parts.tsx"
import { type Left, type PageFacts, type SignedIn, useAction } from "./Session.tsx"

interface Props {
  readonly page: PageFacts
  readonly left: Left | undefined
  readonly onSignedIn: (signedIn: SignedIn, licenseKey?: string) => void
}

export const SignIn = ({ left, onSignedIn, page }: Props) => {
  const texts = useTexts()
  return (
    <>
      <Heading>{texts.signIn}</Heading>
      {left !== undefined && <p role="alert">{left === "ended" ? texts.refused.ended : texts.newKeySignIn}</p>}
      {page.has_mail && <ByMail />}
      <ByKey isPrimary={!page.has_mail} onSignedIn={onSignedIn} />
    </>
  )
}

/** The text of a form's field. */
export const textIn = (event: FormEvent<HTMLFormElement>, name: string): string => {
  event.preventDefault()
  return String(new FormData(event.currentTarget).get(name)).trim()
}

const ByMail = () => {
  const { language, texts } = useWords()
  const [isSent, setSent] = useState(false)
  const { isBusy, refused, run } = useAction()
  const submit = (event: FormEvent<HTMLFormElement>) => {
    const address = textIn(event, "address")
    setSent(false)
    void run(async () => {
      const result = await ask("POST /links", { body: { address, language } })
      return "refused" in result ? result : { answer: true }
    }).then((isDone) => isDone && setSent(true))
  }
  return (
    <Card heading={texts.byMail}>
      <form className="form" onSubmit={submit}>
        <Field name="address" type="email" complete="email" label={texts.address} />
        <Refusal refused={refused} />
        <p role="status">{isSent && texts.linkSent}</p>
        <button type="submit" className="primary" aria-disabled={isBusy}>
          {isBusy ? texts.sending : texts.sendLink}
        </button>
      </form>
    </Card>
  )
}

/** A link was opened. Only the button uses it up: programs that look at mails open links, too. */
export const OpenedLink = (
  props: { readonly token: string; readonly isSignedIn: boolean; readonly onClose: () => void } & Pick<
    Props,
    "onSignedIn"
  >
) => {
  const texts = useTexts()
  const { isBusy, refused, run } = useAction()
  const redeem = () =>
    void run(() => ask("POST /sign-in/link", { body: { token: props.token } })).then(
      (answer) => answer && props.onSignedIn(answer.data)
    )
  if (refused?.code === "TOKEN_INVALID" || refused?.code === "VALIDATION_ERROR")
    return (
      <>
        <Heading key="invalid">{texts.linkInvalid}</Heading>
        <p>{props.isSignedIn ? texts.stillSignedIn : texts.linkInvalidText}</p>
        <button type="button" className="primary" onClick={props.onClose}>
          {props.isSignedIn ? texts.linkContinue : texts.newLink}
        </button>
      </>
    )
  return (
    <>
      <Heading>{texts.linkTitle}</Heading>
      <p>{texts.linkText}</p>
      <Refusal refused={refused} />
      <button type="button" className="primary" aria-disabled={isBusy} onClick={redeem}>
        {texts.linkContinue}
      </button>
    </>
  )
}

const ByKey = ({ isPrimary, onSignedIn }: Pick<Props, "onSignedIn"> & { readonly isPrimary: boolean }) => {
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
        <button type="submit" className={isPrimary ? "primary" : ""} aria-disabled={isBusy}>
          {texts.showLicense}
        </button>
      </form>
    </Card>
  )
}
