/** A record by its id, as a link to its screen if the console has one. */
import { Link, useRouter } from "@tanstack/react-router"

/** The screens of records by the name of the field that has their id. */
const screens = {
  license_id: "/licenses/$id",
  product_id: "/products/$id",
  policy_id: "/policies/$id",
  customer_id: "/customers/$id",
  order_id: "/orders/$id",
  subscription_id: "/subscriptions/$id",
  report_export_id: "/reports/exports/$id"
} as const

export const RecordLink = ({
  field,
  id,
  name
}: {
  readonly field: string
  readonly id: string
  readonly name?: string | undefined
}) => {
  const { routesByPath } = useRouter()
  const to = Object.hasOwn(screens, field) ? screens[field as keyof typeof screens] : undefined
  const text = name ?? <code>{id}</code>
  // Only addresses of screens get here.
  return to === undefined || !(to in routesByPath) ? (
    text
  ) : (
    <Link to={to as "/licenses/$id"} params={{ id }}>
      {text}
    </Link>
  )
}
