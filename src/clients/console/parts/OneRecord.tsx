/** The screen of one record, or that there is none at this address, with a way back. */
import { Link } from "@tanstack/react-router"
import { Cause } from "effect"
import type { AsyncResult } from "effect/reactivity"
import type { ReactNode } from "react"
import { isRefusal } from "../../../contract/api/Failure.ts"
import { causeOf, lastOf } from "../service/Hooks.ts"
import { Empty } from "./Empty.tsx"
import { Heading, Loaded } from "./Show.tsx"

const lists = {
  license: "/licenses",
  customer: "/customers",
  product: "/products",
  version: "/products",
  policy: "/products",
  order: "/orders",
  subscription: "/subscriptions",
  webhook: "/webhooks",
  "bulk job": "/bulk-jobs",
  export: "/reports/exports"
} as const

interface Props<A, E> {
  readonly of: AsyncResult.AsyncResult<A, E>
  readonly noun: keyof typeof lists
  readonly children: (value: A) => ReactNode
}

export const OneRecord = <A, E>({ children, noun, of }: Props<A, E>) => {
  const cause = causeOf(of)
  const error = cause === undefined || lastOf(of) !== undefined ? undefined : Cause.squash(cause)
  if (!isRefusal(error) || error.code !== "NOT_FOUND")
    return (
      <>
        {error !== undefined && <Heading title={`The ${noun} cannot be shown`} />}
        <Loaded of={of}>{children}</Loaded>
      </>
    )
  return (
    <NothingHere title={`There is no such ${noun}`}>
      <Link to={lists[noun]} search={{} as never} className="button primary">
        Open the list
      </Link>
    </NothingHere>
  )
}

/** In place of a screen whose address names nothing. */
export const NothingHere = ({ children, title }: { readonly title: string; readonly children: ReactNode }) => (
  <>
    <Heading title={title} />
    <Empty
      icon="search"
      title="Nothing is at this address"
      hint="It was deleted, or belongs to something that you may not see, or the address is not complete."
    >
      <button type="button" onClick={() => history.back()}>
        Go back
      </button>
      {children}
    </Empty>
  </>
)
