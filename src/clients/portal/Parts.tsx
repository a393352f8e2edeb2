/** The parts that all screens are made of. */
import { type ReactNode, useEffect, useLayoutEffect, useRef } from "react"
import { takeFocus } from "../console/look/Focus.ts"
import { Icon } from "../console/look/Icon.tsx"
import type { Refused } from "./Ask.ts"
import { sentenceOf, useFormats, useTexts } from "./Language.tsx"

/** The heading of a screen. It takes the focus, so that a screen reader tells what is new; not if only the language changes. */
export const Heading = ({ children }: { readonly children: string }) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  useEffect(() => {
    document.title = children
  }, [children])
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  )
}

export const Waiting = () => (
  <p role="status" className="waiting">
    {useTexts().wait}
  </p>
)

export const Refusal = ({ refused }: { readonly refused: Refused | undefined }) => {
  const texts = useTexts()
  return refused === undefined ? null : (
    <p role="alert" className="failed">
      {sentenceOf(texts, refused)}
    </p>
  )
}

/** A screen that could not be read. */
export const Unread = (props: { readonly refused: Refused; readonly onAgain: () => void }) => {
  const texts = useTexts()
  return (
    <>
      <Heading>{texts.notLoaded}</Heading>
      <Refusal refused={props.refused} />
      <button type="button" className="primary" onClick={props.onAgain}>
        {texts.tryAgain}
      </button>
    </>
  )
}

/** What was done, once there is something to say. It takes the focus, which may have been on what is gone. */
export const Done = ({ children }: { readonly children: string }) => {
  const said = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    if (children !== "") said.current?.focus()
  }, [children])
  return (
    <p ref={said} role="status" tabIndex={-1}>
      {children}
    </p>
  )
}

/** That a list is cut. */
export const Newest = ({ of, shown }: { readonly of: number; readonly shown: number }) => {
  const texts = useTexts()
  const { number } = useFormats()
  return of > shown && <p className="quiet">{texts.newestShown(number(shown))}</p>
}

export const BackTo = ({ path }: { readonly path: string }) => (
  <a className="back" href={`#${path}`}>
    {useTexts().back}
  </a>
)

interface CardProps {
  readonly heading: string
  /** It takes the place of the control that had the focus. */
  readonly isNext?: true
  readonly children: ReactNode
}

export const Card = ({ children, heading, isNext }: CardProps) => (
  <section className="card">
    <h2 {...(isNext && { ref: takeFocus, tabIndex: -1 })}>{heading}</h2>
    {children}
  </section>
)

interface FieldProps {
  readonly name: string
  readonly label: string
  readonly hint?: string
  readonly type?: "text" | "email"
  readonly complete?: string
  readonly initial?: string | undefined
}

export const Field = ({ complete = "off", hint, initial, label, name, type = "text" }: FieldProps) => (
  <div className="field">
    <label htmlFor={name}>{label}</label>
    <input
      id={name}
      name={name}
      type={type}
      required
      maxLength={255}
      defaultValue={initial}
      autoComplete={complete}
      autoCapitalize="none"
      spellCheck={false}
      aria-describedby={hint === undefined ? undefined : `${name}-hint`}
    />
    {hint !== undefined && <small id={`${name}-hint`}>{hint}</small>}
  </div>
)

/** Asks once more before something is done. No button has the focus at first: a key that is held must not answer. */
export const Confirmation = (props: {
  readonly title: string
  readonly text: string
  readonly action: string
  readonly isBusy: boolean
  readonly refused: Refused | undefined
  readonly onConfirm: () => void
  readonly onClose: () => void
}) => {
  const texts = useTexts()
  const dialog = useRef<HTMLDialogElement>(null)
  // Closed while it is still in the page, it gives the focus back.
  useLayoutEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    shown?.querySelector("h2")?.focus()
    return () => shown?.close()
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby="confirmation" onClose={props.onClose}>
      <h2 id="confirmation" tabIndex={-1}>
        {props.title}
      </h2>
      <p>{props.text}</p>
      <Refusal refused={props.refused} />
      <div className="choices">
        <button type="button" className="danger" aria-disabled={props.isBusy} onClick={props.onConfirm}>
          {props.action}
        </button>
        <button type="button" onClick={() => dialog.current?.close()}>
          {texts.cancel}
        </button>
      </div>
    </dialog>
  )
}

export const Nothing = ({ title, text }: { readonly title?: string; readonly text: string }) => (
  <div className="nothing">
    <Icon name="key" />
    {title !== undefined && <strong>{title}</strong>}
    <p>{text}</p>
  </div>
)
