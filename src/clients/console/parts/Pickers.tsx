/** Fields that link a record to another: what is typed is searched for, and the browser suggests what was found. */
import { AsyncResult } from "effect/reactivity"
import { Fragment, type ReactNode, useEffect, useRef, useState } from "react"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import { causeOf, useAsk } from "../service/Hooks.ts"
import type { ControlProps, Field } from "./Fields.tsx"
import { Unread } from "./Show.tsx"

interface Suggestion {
  readonly id: string
  /** What the input shows. */
  readonly name: string
  /** A shorter text that names the record as well. */
  readonly alias: string | undefined
}

/** Tells the suggestions, and whether there are no others; undefined: they cannot be read. */
type Found = (suggestions: ReadonlyArray<Suggestion> | undefined, isAll: boolean) => void

interface Source {
  readonly noun: string
  /** Finds the record that is linked. */
  readonly named: (id: string, found: Found) => ReactNode
  /** Finds records that match a text. */
  readonly matching: (text: string, found: Found) => ReactNode
}

/** Stand in the form for a text that names no record, that is still looked for, or that could not be looked for. */
const [unknown, sought, unread] = ["?", "…", "!"]

const textOf = ([id = ""]: ReadonlyArray<string>) => (id === "" ? undefined : id)

const faultOf = (noun: string, id: string | undefined) => {
  if (id === unread) return `The ${noun} could not be looked for: the reason is below.`
  if (id === sought) return `The ${noun} is still looked for: wait a moment and try again.`
  return id === unknown ? `No ${noun} is chosen: pick one of the suggestions.` : undefined
}

const picker = (label: string, source: Source): Field<string> => ({
  label,
  hint: "Type to search. Leave empty for none.",
  control: { kind: "own", show: (props) => <Picker {...props} source={source} /> },
  read: textOf,
  write: (id) => [id],
  check: ([id]) => faultOf(source.noun, id)
})

/** The only record whose suggestion was chosen. */
const chosenBy = (typed: string, suggestions: ReadonlyArray<Suggestion>): string | undefined => {
  const [only, other] = suggestions.filter(({ name }) => name === typed)
  return other === undefined ? only?.id : undefined
}

/**
 * The only record that a text names: two systems may have the same number. Only all records that match the text tell that, not
 * those that were suggested before it was typed.
 */
const namedBy = (text: string, matching: ReadonlyArray<Suggestion>, isAll: boolean): string | undefined => {
  const chosen = chosenBy(text, matching)
  if (chosen !== undefined || !isAll) return chosen
  const [only, other] = matching.filter(({ alias }) => alias?.toLowerCase() === text.toLowerCase())
  return other === undefined ? only?.id : undefined
}

const Picker = ({ id, source, state, texts }: ControlProps & { readonly source: Source }) => {
  const linked = textOf(texts)
  const [text, setText] = useState("")
  const [chosen, setChosen] = useState(linked)
  const [suggestions, setSuggestions] = useState<ReadonlyArray<Suggestion>>([])
  /** The text that was looked for, and whether anything could be read. */
  const [found, setFound] = useState<readonly [text: string, state: string]>()
  const { name, ...described } = state
  const type = (typed: string) => {
    setText(typed)
    setChosen(chosenBy(typed, suggestions))
  }
  const wanted = text.trim()
  const foundMatching: Found = (matching, isAll) => {
    setFound([wanted, matching === undefined ? unread : unknown])
    if (matching === undefined) return
    setSuggestions(matching)
    if (chosen === undefined && wanted !== "") setChosen(namedBy(wanted, matching, isAll))
  }
  const showLinked: Found = ([suggestion] = []) => suggestion !== undefined && setText(suggestion.name)
  const missing = wanted === "" ? "" : found?.[0] === wanted ? found[1] : sought
  return (
    <>
      <input
        id={id}
        {...described}
        list={`${id}-suggestions`}
        value={text}
        autoComplete="off"
        onChange={({ currentTarget: { value } }) => type(value)}
      />
      <datalist id={`${id}-suggestions`}>
        {suggestions.map((suggestion) => (
          <option key={suggestion.id} value={suggestion.name} />
        ))}
      </datalist>
      <input type="hidden" name={name} value={chosen ?? missing} />
      {linked !== undefined && chosen === linked && source.named(linked, showLinked)}
      {chosen === undefined && <Fragment key={wanted}>{source.matching(wanted, foundMatching)}</Fragment>}
    </>
  )
}

/** Tells what was found, once it is there, and shows why it cannot be read. What was found earlier is not told: it may have changed. */
const useTold = <A,>(
  asked: AsyncResult.AsyncResult<A, unknown>,
  found: Found,
  suggest: (value: A) => readonly [suggestions: ReadonlyArray<Suggestion>, isAll: boolean]
) => {
  const earlier = useRef(asked).current
  const isNew = asked !== earlier && !asked.waiting
  const value = isNew && AsyncResult.isSuccess(asked) ? asked.value : undefined
  const cause = isNew ? causeOf(asked) : undefined
  // biome-ignore lint/correctness/useExhaustiveDependencies: each result is reported once.
  useEffect(() => {
    if (value !== undefined) found(...suggest(value))
    else if (cause !== undefined) found(undefined, false)
  }, [value, cause])
  return cause === undefined ? null : <Unread cause={cause} />
}

const customerOf = ({ code, email, id, name }: Customer): Suggestion => ({
  id,
  name: [name, email, code].filter((part) => part !== undefined).join(" · "),
  alias: email
})

const customers: Source = {
  noun: "customer",
  named: (id, found) => <LinkedCustomer id={id} found={found} />,
  matching: (text, found) =>
    text.length < 2 ? <NewestCustomers found={found} /> : <MatchingCustomers found={found} text={text} />
}

/** Records that a search finds at most. */
const searchMax = 20

interface Finding {
  readonly found: Found
}

const LinkedCustomer = ({ found, id }: Finding & { readonly id: string }) =>
  useTold(useAsk("getCustomer", { params: { id } }), found, (customer) => [[customerOf(customer)], true])

const NewestCustomers = ({ found }: Finding) =>
  useTold(useAsk("listCustomers", { query: { limit: 20 } }), found, ({ items, next }) => [
    items.map(customerOf),
    next === undefined
  ])

const MatchingCustomers = ({ found, text }: Finding & { readonly text: string }) =>
  useTold(useAsk("search", { query: { q: text } }), found, (results) => {
    // A search finds at most so many records of all kinds together.
    const count = Object.values(results).reduce((sum, kind) => sum + kind.length, 0)
    return [results.customers.map(customerOf), count < searchMax]
  })

/** A link to a customer. */
export const customer = (label: string) => picker(label, customers)

interface Purchase {
  readonly id: string
  readonly external_id: string
  readonly external_system: string
}

const purchaseOf = ({ external_id, external_system, id }: Purchase): Suggestion => ({
  id,
  name: `${external_id} · ${external_system}`,
  alias: external_id
})

const LinkedSubscription = ({ found, id }: Finding & { readonly id: string }) =>
  useTold(useAsk("getSubscription", { params: { id } }), found, (subscription) => [[purchaseOf(subscription)], true])

const MatchingSubscriptions = ({
  found,
  product,
  text
}: Finding & { readonly product: string; readonly text: string }) =>
  useTold(
    useAsk("listSubscriptions", {
      params: { id: product },
      query: { limit: 20, ...(text === "" ? {} : { external_id: text }) }
    }),
    found,
    ({ items, next }) => [items.map(purchaseOf), next === undefined]
  )

/** A link to a subscription of a product. */
export const subscription = (label: string, product: string) =>
  picker(label, {
    noun: "subscription",
    named: (id, found) => <LinkedSubscription id={id} found={found} />,
    matching: (text, found) => <MatchingSubscriptions product={product} text={text} found={found} />
  })

const LinkedOrder = ({ found, id }: Finding & { readonly id: string }) =>
  useTold(useAsk("getOrder", { params: { id } }), found, (order) => [[purchaseOf(order)], true])

const MatchingOrders = ({ found, product, text }: Finding & { readonly product: string; readonly text: string }) =>
  useTold(
    useAsk("listOrders", {
      params: { id: product },
      query: { limit: 20, ...(text === "" ? {} : { external_id: text }) }
    }),
    found,
    ({ items, next }) => [items.map(purchaseOf), next === undefined]
  )

/** A link to an order of a product. */
export const order = (label: string, product: string) =>
  picker(label, {
    noun: "order",
    named: (id, found) => <LinkedOrder id={id} found={found} />,
    matching: (text, found) => <MatchingOrders product={product} text={text} found={found} />
  })
