/** What pickers offer: customers, licenses, orders and subscriptions, by a part of their name, their key or number. */
import { AsyncResult } from "effect/reactivity"
import { useEffect, useRef } from "react"
import type { SearchResults } from "../../../insight/search/SearchResults.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import { wordsOf } from "../parts/Format.ts"
import { licensesOf, shortName } from "../parts/LicenseName.ts"
import { Unread } from "../parts/Show.tsx"
import { causeOf, useAsk } from "../service/Hooks.ts"
import { type Found, picker, type Source, type Suggestion } from "./Picker.tsx"

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

export const customers: Source = {
  noun: "customer",
  named: (id, found) => <LinkedCustomer id={id} found={found} />,
  matching: (text, found) =>
    text.length < 2 ? <NewestCustomers found={found} /> : <MatchingCustomers found={found} text={text} />
}

/** Records that a search finds at most, of all kinds together. */
const searchMax = 20

const countOf = (results: SearchResults) => Object.values(results).reduce((sum, kind) => sum + kind.length, 0)

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
  useTold(useAsk("search", { query: { q: text } }), found, (results) => [
    results.customers.map(customerOf),
    countOf(results) < searchMax
  ])

/** A link to a customer. */
export const customer = (label: string) => picker(label, customers)

const licenseOf = (license: License): Suggestion => ({
  id: license.id,
  name: [shortName(license), wordsOf(license.status)].join(" · "),
  alias: license.id
})

export const licenses: Source = {
  noun: "license",
  named: (id, found) => <LinkedLicense id={id} found={found} />,
  matching: (text, found) =>
    /^lic_\w+$/.test(text) ? (
      <LinkedLicense id={text} found={found} />
    ) : text.length < 2 ? (
      <NewestLicenses found={found} />
    ) : (
      <MatchingLicenses found={found} text={text} />
    )
}

const LinkedLicense = ({ found, id }: Finding & { readonly id: string }) =>
  useTold(useAsk("getLicense", { params: { id } }), found, (license) => [[licenseOf(license)], true])

const NewestLicenses = ({ found }: Finding) =>
  useTold(useAsk("listLicenses", { query: { limit: 20, expand: ["customer"] } }), found, ({ items, next }) => [
    items.map(licenseOf),
    next === undefined
  ])

const MatchingLicenses = ({ found, text }: Finding & { readonly text: string }) =>
  useTold(useAsk("search", { query: { q: text } }), found, (results) => [
    licensesOf(results).map(licenseOf),
    countOf(results) < searchMax
  ])

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

interface AnyProduct extends Finding {
  readonly kind: "orders" | "subscriptions"
  readonly text: string
}

const MatchingPurchases = ({ found, kind, text }: AnyProduct) =>
  useTold(useAsk("search", { query: { q: text } }), found, (results) => [
    results[kind].map(purchaseOf),
    countOf(results) < searchMax
  ])

/** Anything that the search finds and an event may be about. */
export const records: Source = {
  noun: "record",
  named: () => null,
  matching: (text, found) => (text.length < 2 ? null : <MatchingRecords text={text} found={found} />)
}

const MatchingRecords = ({ found, text }: Finding & { readonly text: string }) =>
  useTold(useAsk("search", { query: { q: text } }), found, (results) => [
    [
      ...licensesOf(results).map(licenseOf),
      ...results.customers.map(customerOf),
      ...[...results.orders, ...results.subscriptions].map(purchaseOf)
    ],
    countOf(results) < searchMax
  ])

const purchaseOfAny = (noun: string, kind: AnyProduct["kind"], named: Source["named"]): Source => ({
  noun,
  named,
  matching: (text, found) => (text.length < 2 ? null : <MatchingPurchases kind={kind} text={text} found={found} />)
})

export const orders = purchaseOfAny("order", "orders", (id, found) => <LinkedOrder id={id} found={found} />)
export const subscriptions = purchaseOfAny("subscription", "subscriptions", (id, found) => (
  <LinkedSubscription id={id} found={found} />
))
