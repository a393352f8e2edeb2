/** What stands where nothing is yet: what it would be, and the first step. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Icon, type IconName } from "../look/Icon.tsx"

export const Empty = (props: {
  readonly icon: IconName
  readonly title: string
  readonly hint?: ReactNode
  readonly children?: ReactNode
}) => (
  <div className="nothing">
    <Icon name={props.icon} />
    <strong>{props.title}</strong>
    {props.hint !== undefined && <p>{props.hint}</p>}
    {props.children !== undefined && props.children !== false && <div className="row">{props.children}</div>}
  </div>
)

/** Beside a choice of one, where there are several. */
export const ChooseProduct = ({ hint, onCancel }: { readonly hint: string; readonly onCancel?: () => void }) => (
  <Empty icon="product" title="Choose a product" hint={hint}>
    {onCancel !== undefined && (
      <button type="button" onClick={onCancel}>
        Cancel
      </button>
    )}
  </Empty>
)

/** Of records that belong to a product. */
export const NoProduct = ({ hint }: { readonly hint: string }) => (
  <Empty icon="product" title="No product yet" hint={hint}>
    <Link to="/products" className="button primary">
      Open the products
    </Link>
  </Empty>
)
