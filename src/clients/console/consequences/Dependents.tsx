/** What depends on a record, as the service counts it, in the dialog that deletes the record or erases its data. */

import type { AsyncResult } from "effect/reactivity"
import { cappedOf, type Total } from "../parts/Format.ts"
import { Lines } from "../parts/Show.tsx"
import { causeOf, lastOf, useAsk, useMay } from "../service/Hooks.ts"

/** Undefined while it is counted. */
type Dependent = readonly [name: string, count: string | undefined]

/** The query of a list whose rows are only counted. */
const counted = { limit: 1, include_total: "true" } as const

const countIn = <A,>(
  asked: AsyncResult.AsyncResult<A, unknown>,
  totalOf: (counted: A) => Total
): string | undefined => {
  const last = lastOf(asked)
  if (last === undefined) return causeOf(asked) === undefined ? undefined : "could not be counted"
  return cappedOf(totalOf(last))
}

const listed = (asked: AsyncResult.AsyncResult<Total, unknown>) => countIn(asked, (page) => page)

interface DependentsProps {
  readonly of: ReadonlyArray<Dependent>
  /** What is said if there are some. */
  readonly some: string
}

const Dependents = ({ of, some }: DependentsProps) => {
  const isBusy = of.some(([, count]) => count === undefined)
  const found = of.filter(([, count]) => count !== "0")
  return (
    <div className="consequences" role="status" aria-label="What depends on it" aria-busy={isBusy}>
      {isBusy ? (
        <p className="quiet">Counting what depends on it…</p>
      ) : found.length === 0 ? (
        <p className="quiet">Nothing depends on it.</p>
      ) : (
        <>
          <Lines of={found} />
          <p>{some}</p>
        </>
      )}
    </div>
  )
}

const refused = "It cannot be deleted while these exist."

interface Of {
  readonly id: string
}

export const DependsOnProduct = ({ id }: Of) => {
  const inProduct = { params: { id }, query: counted }
  const of: ReadonlyArray<Dependent> = [
    ["Policies", listed(useAsk("listPolicies", inProduct))],
    ["Features", listed(useAsk("listFeatures", inProduct))],
    ["Versions", listed(useAsk("listProductVersions", inProduct))],
    ["Custom fields", listed(useAsk("listCustomFields", inProduct))],
    ["Orders", listed(useAsk("listOrders", inProduct))],
    ["Subscriptions", listed(useAsk("listSubscriptions", inProduct))],
    ["Licenses", listed(useAsk("listLicenses", { query: { ...counted, product_id: id } }))]
  ]
  return <Dependents of={of} some={refused} />
}

export const DependsOnPolicy = ({ id }: Of) => {
  const licenses = listed(useAsk("listLicenses", { query: { ...counted, policy_id: id } }))
  return <Dependents of={[["Licenses", licenses]]} some={refused} />
}

interface OfFeature extends Of {
  readonly product: string
}

export const DependsOnFeature = (props: OfFeature) => {
  const may = useMay()
  return may("license:read") ? <AllOfFeature {...props} /> : <PoliciesOfFeature {...props} />
}

const usePolicies = ({ id, product }: OfFeature): Dependent => [
  "Policies",
  listed(useAsk("listPolicies", { params: { id: product }, query: { ...counted, feature_id: id } }))
]

const AllOfFeature = (props: OfFeature) => {
  const licenses = listed(useAsk("listLicenses", { query: { ...counted, feature_id: props.id } }))
  return <Dependents of={[usePolicies(props), ["Licenses", licenses]]} some={refused} />
}

const PoliciesOfFeature = (props: OfFeature) => <Dependents of={[usePolicies(props)]} some={refused} />

interface OfPolicy extends Of {
  /** What becomes of its licenses. */
  readonly told: string
}

/** How many licenses a change of a policy is about. */
export const FollowsPolicy = (props: OfPolicy) => {
  const may = useMay()
  return may("license:read") ? <Followers {...props} /> : <p>{props.told}</p>
}

const Followers = ({ id, told }: OfPolicy) => {
  const count = listed(useAsk("listLicenses", { query: { ...counted, policy_id: id } }))
  return (
    <div className="consequences" role="status" aria-label="Licenses of the policy" aria-busy={count === undefined}>
      {count === undefined ? (
        <p className="quiet">Counting the licenses of the policy…</p>
      ) : count === "0" ? (
        <p className="quiet">No license has this policy yet.</p>
      ) : (
        <>
          <Lines of={[["Licenses", count]]} />
          <p>{told}</p>
        </>
      )}
    </div>
  )
}

interface OfCustomer extends Of {
  /** Whether its data is to be erased, and not the customer deleted. */
  readonly isErasure?: boolean
}

export const DependsOnCustomer = ({ id, isErasure = false }: OfCustomer) => {
  const may = useMay()
  const some = isErasure ? "They stay, without the name, the e-mail and the custom fields." : refused
  return may("report:read") ? <AllOfCustomer id={id} some={some} /> : <LicensesOfCustomer id={id} some={some} />
}

interface CustomerProps extends Of {
  readonly some: string
}

/** Orders and subscriptions have lists of one product only: the summary counts those of all. */
const AllOfCustomer = ({ id, some }: CustomerProps) => {
  const summary = useAsk("getCustomerSummary", { query: { customer_id: id } })
  const of: ReadonlyArray<Dependent> = [
    ["Licenses", countIn(summary, ({ licenses }) => licenses)],
    ["Orders", countIn(summary, ({ orders }) => orders)],
    ["Subscriptions", countIn(summary, ({ subscriptions }) => subscriptions)]
  ]
  return <Dependents of={of} some={some} />
}

const LicensesOfCustomer = ({ id, some }: CustomerProps) => {
  const licenses = listed(useAsk("listLicenses", { query: { ...counted, customer_id: id } }))
  return <Dependents of={[["Licenses", licenses]]} some={some} />
}
