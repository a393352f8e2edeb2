/** A form that issues or moves licenses of one product, which the reader chooses above it. */
import { Link } from "@tanstack/react-router"
import { Option } from "effect"
import { AsyncResult } from "effect/reactivity"
import { type ReactNode, useRef, useState } from "react"
import { ChooseProduct, NoProduct } from "../parts/Empty.tsx"
import type { Carried } from "../parts/Form.tsx"
import { Loaded } from "../parts/Show.tsx"
import { useDraft } from "../service/Drafts.ts"
import { notAllowed } from "../service/Failures.ts"
import { type Asked, useAsk, useMay } from "../service/Hooks.ts"
import { likelyProduct, rememberProduct } from "../service/Recent.ts"
import { Filter } from "./List.tsx"
import { listField } from "./ListFields.tsx"

interface Props {
  readonly initial?: string | undefined
  /** In a dialog: closes it. */
  readonly onCancel?: () => void
  readonly children: (product: string) => ReactNode
}

/** The choice among its policies. */
export const policyField = (product: string, policies: Asked<"listPolicies">) =>
  listField("Policy", policies, {
    required: true,
    empty: (
      <>
        The product has no policy yet:{" "}
        <Link to="/products/$id" params={{ id: product }}>
          create one first
        </Link>
        .
      </>
    )
  })

/** Another product gets what was typed, but for what belongs to the product. */
export const useCarried = (): Carried =>
  useRef<Carried>({ without: ["policy_id", "order_id", "subscription_id", "feature_ids"], texts: () => ({}) }).current

export const OneProduct = ({ children, initial, onCancel }: Props) => {
  const shown = useRef<string>(undefined)
  const kept = useDraft("product", () => shown.current)
  const [product, setProduct] = useState(kept ?? initial)
  const choose = (id: string | undefined) => {
    setProduct(id)
    rememberProduct(id)
  }
  const mayIssue = useMay()("license:write")
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  if (!mayIssue) return <p className="failed">{notAllowed("license:write")}</p>
  // If they are asked for again and that fails, the form stays with what was typed.
  const known = Option.getOrUndefined(AsyncResult.value(products))
  if (known === undefined) return <Loaded of={products}>{() => null}</Loaded>
  const chosen = product ?? likelyProduct(known.items)?.id
  shown.current = chosen
  if (known.items.length === 0 && chosen === undefined)
    return <NoProduct hint="A license belongs to a product with a policy: create these first." />
  return (
    <>
      <Filter label="Product" value={chosen} choices={known.items} needed records onChange={choose} />
      {chosen === undefined ? (
        <ChooseProduct hint="Its policies are offered then." {...(onCancel && { onCancel })} />
      ) : (
        children(chosen)
      )}
    </>
  )
}
