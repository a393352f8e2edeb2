/** A form for records of one product, which the reader chooses above it. */
import { Option } from "effect"
import { AsyncResult } from "effect/reactivity"
import { type ReactNode, useState } from "react"
import { NoProduct } from "../parts/Empty.tsx"
import { Loaded } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"
import { Filter } from "./List.tsx"

interface Props {
  readonly initial?: string | undefined
  readonly children: (product: string) => ReactNode
}

export const OneProduct = ({ children, initial }: Props) => {
  const [product, setProduct] = useState(initial)
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  // If they are asked for again and that fails, the form stays with what was typed.
  const known = Option.getOrUndefined(AsyncResult.value(products))
  if (known === undefined) return <Loaded of={products}>{() => null}</Loaded>
  const chosen = product ?? known.items[0]?.id
  if (chosen === undefined)
    return <NoProduct hint="A license belongs to a product with a policy: create these first." />
  return (
    <>
      <Filter label="Product" value={chosen} choices={known.items} needed records onChange={setProduct} />
      {children(chosen)}
    </>
  )
}
