/** Actions: a button, and a dialog that names the effect and asks for what the action needs. */
import type { Exit } from "effect"
import { type ReactNode, useEffect, useId, useRef, useState } from "react"
import { createPortal } from "react-dom"
import { unlessUnkept, useWhatIsUnkept } from "../once/Unkept.ts"
import { useKeptState, useReopening } from "../service/Drafts.ts"
import type { Keys } from "../service/OpenKeys.ts"
import type { ChangeFieldsOf, FieldsOf } from "./Fields.tsx"
import { type Edited, Form, type FormProps, type Sent } from "./Form.tsx"
import { offerUndo } from "./Notices.tsx"
import { undoOfEdit } from "./Undo.ts"

interface Offer {
  readonly said: string
  readonly run: () => Promise<Exit.Exit<unknown, unknown>>
}

interface ActionProps<P, A> {
  /** What the action does: the text of its button. */
  readonly label: string
  /** The button's name, if its text does not say what it is about. */
  readonly name?: string
  /** The dialog's heading, if it is not the button's name. */
  readonly title?: string
  /** What the dialog's own button does, if it is not what the opening button says. */
  readonly send?: string
  /** What happens, in a sentence. */
  readonly effect: ReactNode
  /** What is known of the record, whatever the form has. */
  readonly facts?: ReactNode
  readonly fields?: FieldsOf<P> | ChangeFieldsOf<P>
  readonly initial?: Partial<P>
  readonly edited?: Edited
  readonly danger?: boolean
  readonly primary?: boolean
  readonly once?: FormProps<P, A>["once"]
  readonly run: (values: P, read?: object) => Promise<Exit.Exit<A, unknown>>
  /** What it would do with the values that the form has now. */
  readonly preview?: (values: P) => ReactNode
  /** What is shown once it is done; if that is nothing, the dialog closes. */
  readonly done?: (value: A) => ReactNode | undefined
  readonly then?: (value: A) => void
  /** What is said once it is done, and how it is undone. Edits know that themselves. */
  readonly undo?: (value: A) => Offer | undefined
}

export const Action = <P extends object, A>(props: ActionProps<P, A>) => {
  const [isOpen, setOpen] = useState(false)
  const keys = useRef<Keys>(new Map()).current
  useReopening([nameOf(props), resultOf(props)], () => setOpen(true))
  return (
    <>
      <button
        type="button"
        {...(props.primary ? { className: "primary" } : props.danger ? { className: "risky" } : {})}
        aria-label={props.name ?? props.label}
        onClick={({ currentTarget }) => {
          // A menu closes first, so that the dialog gives the focus back to the menu's button.
          currentTarget.closest<HTMLElement>("[popover]")?.hidePopover()
          setOpen(true)
        }}
      >
        {props.label}
      </button>
      {/* Not inside a menu, which is closed while the dialog is open. */}
      {isOpen && createPortal(<ActionDialog {...props} keys={keys} onClose={() => setOpen(false)} />, document.body)}
    </>
  )
}

type Named = Pick<ActionProps<never, never>, "label" | "name">

/** Not the title, which the action may change: a key is named by its end. */
const nameOf = ({ label, name }: Named) => name ?? label
const resultOf = (props: Named) => `${nameOf(props)}: result`

interface DialogProps<P, A> extends ActionProps<P, A> {
  /** The Idempotency-Keys of requests of earlier dialogs that got no response. */
  readonly keys: Keys
  readonly onClose: () => void
}

const ActionDialog = <P extends object, A>(props: DialogProps<P, A>) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // A key that is shown once has no other copy.
  const [result, setResult] = useKeptState<ReactNode>(resultOf(props))
  useEffect(() => dialog.current?.showModal(), [])
  // Closing gives the focus back to the button; only then the dialog leaves the page.
  const close = () => dialog.current?.close()
  const closeUnlessUnkept = () => unlessUnkept(close)
  const isHeld = useWhatIsUnkept() !== undefined
  const finish = (value: A, sent: Sent<P>) => {
    offerUndoOf(props, sent, value)
    const told = props.done?.(value)
    if (told === undefined) close()
    else setResult(told)
    props.then?.(value)
  }
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      aria-describedby={`${id}-effect`}
      // A browser closes a dialog at the second Escape without asking.
      closedby={isHeld ? "none" : undefined}
      onKeyDown={(event) => {
        if (!isHeld || event.key !== "Escape") return
        event.preventDefault()
        closeUnlessUnkept()
      }}
      onCancel={(event) => isHeld && event.preventDefault()}
      onClose={props.onClose}
    >
      <h2 id={id}>{props.title ?? props.name ?? props.label}</h2>
      {result === undefined ? (
        <>
          <p id={`${id}-effect`}>{props.effect}</p>
          {props.facts}
          <Form<P, A>
            fields={props.fields ?? {}}
            {...(props.initial === undefined ? {} : { initial: props.initial })}
            edited={props.edited}
            name={nameOf(props)}
            send={props.send ?? props.label}
            danger={props.danger}
            once={props.once}
            preview={props.preview}
            run={props.run}
            done={finish}
            left={(value, sent) => offerUndoOf(props, sent, value)}
            keys={props.keys}
          >
            <button type="button" onClick={closeUnlessUnkept}>
              Cancel
            </button>
          </Form>
        </>
      ) : (
        <>
          {result}
          <div className="row end">
            <button type="button" className="primary" onClick={closeUnlessUnkept}>
              Close
            </button>
          </div>
        </>
      )}
    </dialog>
  )
}

/** Whether an undo is offered. */
const offerUndoOf = <P extends object, A>(props: ActionProps<P, A>, sent: Sent<P>, value: A): boolean => {
  const offer = undoOf(props, sent, value)
  if (offer !== undefined) offerUndo(offer.said, offer.run)
  return offer !== undefined
}

const undoOf = <P extends object, A>({ edited, run, undo }: ActionProps<P, A>, sent: Sent<P>, value: A) => {
  if (undo !== undefined) return undo(value)
  // The form may have been opened before somebody else's change, which the undo must give back.
  const back = edited && undoOfEdit({ ...edited, record: sent.read ?? edited.record }, sent.values, value, run)
  return back && { said: "The change is saved.", run: back }
}
