/**
 * Forms: what is wrong is said beside its field. An edit sends only the fields that the reader changed. It first reads the record
 * again and looks whether somebody else changed the same fields, and the service makes the change only if the record is still as it
 * was read then: two people do not overwrite each other silently.
 */
import { Cause, Equal, Exit } from "effect"
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react"
import { refuse } from "../../../contract/api/Failure.ts"
import { useUnkept } from "../once/Unkept.ts"
import { useDraft } from "../service/Drafts.ts"
import { inWords, isFinal, type Told, tell } from "../service/Failures.ts"
import { useBusy } from "../service/Hooks.ts"
import { type Keys, sendingWith } from "../service/OpenKeys.ts"
import { type ChangeFieldsOf, type Field, type FieldsOf, FieldView } from "./Fields.tsx"
import { tellLate } from "./Notices.tsx"
import { keepOwnCode, suggestCode } from "./SuggestedCode.ts"

type Values = Readonly<Record<string, unknown>>
type Texts = Readonly<Record<string, ReadonlyArray<string>>>
type Entries = ReadonlyArray<readonly [name: string, field: Field<unknown>]>
/** Sentences by the name of their field; under the empty name what belongs to none. */
type Faults = Readonly<Record<string, string>>

/** The edit of a record that exists. */
export interface Edited {
  /** The record as the form shows it. */
  readonly record: object
  /** Reads the record again. */
  readonly reread: () => Promise<Exit.Exit<object, unknown>>
}

/** What was sent last, and the record of an edit as it was read before. */
export interface Sent<P> {
  readonly values: P
  readonly read: object | undefined
}

/** What a form that another one replaces has now, but for the fields that are not the same there. */
export interface Carried {
  readonly without: ReadonlyArray<string>
  texts: () => Texts
}

/** What a form needs to go on in another session. */
interface Draft {
  readonly texts: Texts
  readonly opened: Values
  readonly shown: Values
  readonly unsure: Sent<Values> | undefined
  /** Idempotency-Keys of what was sent without a response. */
  readonly keys: Keys
}

export interface FormProps<P, A> {
  readonly fields: FieldsOf<P> | ChangeFieldsOf<P>
  /** Values that the form of a new record begins with. */
  readonly initial?: Partial<P>
  readonly edited?: Edited | undefined
  readonly carried?: Carried
  /**
   * What the form is among those of its screen: under this name its inputs outlive a session that ends by itself. A form without a
   * name changes nothing, so no notice tells its outcome once it has left the page.
   */
  readonly name?: string
  readonly send: string
  readonly danger?: boolean | undefined
  /** What only the response has, as "the key": while it is awaited, the reader is asked before leaving. */
  readonly once?: ((values: P) => string | undefined) | undefined
  /** Sends the values; for an edit, with the record as it was read last. */
  readonly run: (values: P, read?: object) => Promise<Exit.Exit<A, unknown>>
  readonly done: (value: A, sent: Sent<P>) => void
  /** Replaces `done` once the form has left the page. If it returns true, no other notice is shown. */
  readonly left?: ((value: A, sent: Sent<P>) => boolean) | undefined
  /** The Idempotency-Keys of requests without a response, if they outlive the form. */
  readonly keys?: Keys
  /** What the values that the form has would do; it is shown while none of them is missing or wrong. */
  readonly preview?: ((values: P) => ReactNode) | undefined
  /** Beside the button that sends. */
  readonly children?: ReactNode
}

export const Form = <P extends object, A>(props: FormProps<P, A>) => {
  const { done, edited } = props
  const draft = useDraft<Draft>(props.name, () => draftNow())
  const keys = useRef(draft?.keys ?? props.keys ?? new Map<string, string>()).current
  const run = (values: P, read?: object) => sendingWith(keys, () => props.run(values, read))
  const fields = Object.entries(props.fields) as Entries
  /** What the inputs began with. */
  const opened = useRef(draft?.opened ?? ((edited?.record ?? props.initial ?? {}) as Values)).current
  /** The record as it was read last. */
  const shown = useRef(draft?.shown ?? opened)
  /** What was sent without a response that says how it ended: perhaps the service has done it. */
  const unsure = useRef<Sent<Values> | undefined>(draft?.unsure)
  const [faults, setFaults] = useState<Faults>({})
  const view = useRef<HTMLFormElement>(null)
  // The focus leads to the first field with a fault, and a screen reader says the fault with it.
  useEffect(() => {
    if (Object.keys(faults).length > 0) view.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus()
  }, [faults])
  useEffect(() => {
    if (draft !== undefined && view.current !== null) keepOwnCode(view.current)
  }, [draft])
  const [typed] = useState(() => draft?.texts ?? props.carried?.texts() ?? {})
  useEffect(() => {
    if (props.carried === undefined) return
    const kept = fields.filter(([name]) => props.carried?.without.includes(name) === false)
    props.carried.texts = () => (view.current === null ? {} : textsIn(kept, view.current))
  })
  const [busy, track] = useBusy()
  const awaited = useRef<string>(undefined)
  useUnkept(awaited.current ?? "", busy && awaited.current !== undefined)
  const isLeft = () => view.current === null
  // What is typed elsewhere stays, and no screen opens by itself.
  const finish = (value: A, sent: Sent<P>) => {
    if (!isLeft()) done(value, sent)
    else if (props.left?.(value, sent) !== true) late()
  }
  const fail = (cause: Cause.Cause<unknown>) => (isLeft() ? late(cause) : setFaults(faultsOf(tell(cause), fields)))
  const late = (cause?: Cause.Cause<unknown>) => props.name !== undefined && tellLate(props.send, cause)
  const draftNow = (): Draft | undefined =>
    view.current === null || (fields.length === 0 && keys.size === 0)
      ? undefined
      : { texts: textsIn(fields, view.current), opened, shown: shown.current, unsure: unsure.current, keys }
  const send = (values: Values, read?: object): Promise<unknown> => {
    // An undo gives back what was there before the first attempt.
    const sent = { values, read: unsure.current?.read ?? read }
    unsure.current = sent
    return run(values as P, read).then((exit) => {
      unsure.current = Exit.isFailure(exit) && !isFinal(Cause.squash(exit.cause)) ? sent : undefined
      if (Exit.isSuccess(exit)) return finish(exit.value, sent as Sent<P>)
      // Somebody was quicker: it is compared again.
      const isChanged = edited !== undefined && tell(exit.cause).fields.has("If-Match")
      return isChanged ? sendUnlessChanged(values, edited) : fail(exit.cause)
    })
  }
  const sendUnlessChanged = (values: Values, edit: Edited): Promise<unknown> =>
    edit.reread().then((exit) => {
      if (Exit.isFailure(exit)) return fail(exit.cause)
      const current = exit.value as Values
      const own = { ...values, ...unsure.current?.values }
      const found = conflicts(fields, values, current, [shown.current, values, own], props.send)
      shown.current = current
      if (Object.keys(found).length === 0) return send(values, current)
      unsure.current = undefined
      if (isLeft()) return fail(Cause.fail(changedMeanwhile))
      setFaults(found)
    })
  const read = (element: HTMLFormElement) => readForm(fields, element, edited && opened)
  const [previewed, follow] = useFollowed(props.preview === undefined ? undefined : read, view)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (busy) return
    const { found, values } = read(event.currentTarget)
    setFaults(found)
    if (Object.keys(found).length > 0) return
    awaited.current = props.once?.(values as P)
    void track(edited === undefined ? send(values) : sendUnlessChanged(values, edited))
  }
  return (
    <form
      ref={view}
      className="form"
      onSubmit={submit}
      onInput={({ currentTarget, target }) => {
        if (edited === undefined) suggestCode(currentTarget, target)
        follow(currentTarget)
      }}
      noValidate
    >
      {fields.map(([name, field]) => (
        <FieldView
          key={name}
          name={name}
          field={field}
          texts={typed[name] ?? textsOf(field, opened[name])}
          fault={faults[name]}
        />
      ))}
      {previewed !== undefined && props.preview?.(previewed as P)}
      {faults[""] !== undefined && (
        <p role="alert" className="failed">
          {faults[""]}
        </p>
      )}
      <div className="row end">
        {props.children}
        <button type="submit" className={props.danger ? "danger" : "primary"} aria-disabled={busy}>
          {props.send}
        </button>
      </div>
    </form>
  )
}

const changedMeanwhile = refuse("CONFLICT", "Somebody else changed the same meanwhile.")

const textsIn = (fields: Entries, element: HTMLFormElement): Texts => {
  const form = new FormData(element)
  return Object.fromEntries(fields.map(([name]) => [name, form.getAll(name).map(String)]))
}

/** What a form has: what is missing or wrong, and the values; of an edit those that the reader changed. */
const readForm = (fields: Entries, element: HTMLFormElement, opened: Values | undefined) => {
  const form = new FormData(element)
  const faults = { ...faultsIn(fields, form), ...unreadableIn(element) }
  return opened === undefined
    ? { found: { ...missingIn(fields, form), ...faults }, values: givenIn(fields, form) }
    : { found: faults, values: changedIn(fields, form, opened) }
}

/** Half a date, or letters in a number: the browser gives such an input as an empty one, which would clear a value. */
const unreadableIn = (element: HTMLFormElement): Faults =>
  Object.fromEntries(
    [...element.elements]
      .filter((input) => input instanceof HTMLInputElement && input.validity.badInput)
      .map((input) => [
        (input as HTMLInputElement).name,
        "This is not complete, or no valid value: correct or clear it."
      ])
  )

/** The values that a form has while one types, unless they are not whole. */
const useFollowed = (
  read: ((form: HTMLFormElement) => ReturnType<typeof readForm>) | undefined,
  view: { readonly current: HTMLFormElement | null }
) => {
  const [values, setValues] = useState<Values>()
  const follow = (form: HTMLFormElement | null) => {
    if (read === undefined || form === null) return
    const { found, values } = read(form)
    setValues(Object.keys(found).length === 0 ? values : undefined)
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is read once; then the inputs tell of changes.
  useEffect(() => follow(view.current), [])
  return [values, follow] as const
}

const textsOf = (field: Field<unknown>, value: unknown): ReadonlyArray<string> =>
  value === undefined || value === null ? [] : field.write(value)

const readIn = (form: FormData, name: string, field: Field<unknown>) => field.read(form.getAll(name).map(String))

const missingIn = (fields: Entries, form: FormData): Faults =>
  Object.fromEntries(
    fields
      .filter(([name, field]) => field.required === true && readIn(form, name, field) === undefined)
      .map(([name, field]) => [name, `${field.label} is needed.`])
  )

const faultsIn = (fields: Entries, form: FormData): Faults =>
  Object.fromEntries(
    fields.flatMap(([name, field]) => {
      const fault = field.check?.(form.getAll(name).map(String))
      return fault === undefined ? [] : [[name, fault]]
    })
  )

const givenIn = (fields: Entries, form: FormData): Values =>
  Object.fromEntries(
    fields.map(([name, field]) => [name, readIn(form, name, field)] as const).filter(([, value]) => value !== undefined)
  )

/** What the reader changed; a field that was emptied is null. */
const changedIn = (fields: Entries, form: FormData, shown: Values): Values =>
  Object.fromEntries(
    fields
      .map(([name, field]) => [name, readIn(form, name, field), field.read(textsOf(field, shown[name]))] as const)
      .filter(([, value, before]) => JSON.stringify(value) !== JSON.stringify(before))
      .map(([name, value]) => [name, value ?? null])
  )

/** The service may give the members of metadata in another order. */
export const isSame = (one: unknown, other: unknown): boolean => Equal.equals(one ?? null, other ?? null)

/** The fields that the reader changed and that have another value than any that the reader knows. */
const conflicts = (
  fields: Entries,
  values: Values,
  current: Values,
  known: ReadonlyArray<Values>,
  send: string
): Faults =>
  Object.fromEntries(
    fields
      .filter(([name]) => name in values && !known.some((one) => isSame(one[name], current[name])))
      .map(([name, field]) => {
        const now = textsOf(field, current[name]).join(", ") || "empty"
        return [name, `Somebody else changed this meanwhile: it is now ${now}. “${send}” again replaces that.`]
      })
  )

const faultsOf = (told: Told, fields: Entries): Faults => {
  const labels = Object.fromEntries(fields.map(([name, { label }]) => [name, `“${label}”`]))
  const beside = [...told.fields]
    .map(([path, message]) => [path.split(".").find((name) => name in labels) ?? "", inWords(message, labels)] as const)
    .filter(([name]) => name in labels)
  return beside.length > 0 ? Object.fromEntries(beside) : { "": inWords(told.message, labels) }
}
