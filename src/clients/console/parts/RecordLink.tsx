/** A record by its id, as a link to its screen if the console has one. */
import { useRouter } from "@tanstack/react-router"
import type { MouseEvent } from "react"

/** The screens of records by the name of the field that has their id. */
const screens: Readonly<Record<string, string>> = {
  license_id: "/licenses/$id",
  product_id: "/products/$id",
  policy_id: "/policies/$id",
  customer_id: "/customers/$id",
  order_id: "/orders/$id",
  subscription_id: "/subscriptions/$id",
  report_export_id: "/reports/exports/$id",
  bulk_job_id: "/bulk-jobs/$id",
  webhook_id: "/webhooks/$id"
}

interface Props {
  readonly field: string
  readonly id: string
  readonly name?: string | undefined
}

/**
 * A plain link, because the router's own follows each change of the address: a feed has hundreds of them, and its address changes
 * when an entry opens.
 */
export const RecordLink = ({ field, id, name }: Props) => {
  const router = useRouter()
  const to = Object.hasOwn(screens, field) ? screens[field] : undefined
  const text = name ?? <code>{id}</code>
  if (to === undefined || !(to in router.routesByPath)) return text
  // Only addresses of screens get here.
  const place = { to: to as "/licenses/$id", params: { id } }
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    void router.navigate(place)
  }
  return (
    <a
      href={`${router.basepath}${to.replace("$id", encodeURIComponent(id))}`}
      onClick={follow}
      {...(name === undefined ? {} : { title: id })}
    >
      {text}
    </a>
  )
}
