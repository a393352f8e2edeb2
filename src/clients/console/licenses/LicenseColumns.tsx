/** A license in a list. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { License } from "../../../licensing/model/License.ts"
import { countOf } from "../parts/Format.ts"
import { licenseName } from "../parts/LicenseName.ts"
import { type Column, Key, Status, Time } from "../parts/Show.tsx"
import { Expiry } from "./Expiry.tsx"

/** In a list of one customer's licenses: product and policy, and the holder's name if it is not the customer's. */
const boughtColumn: Column<License> = {
  title: "License",
  show: (license) => {
    const { customer_name: name, expanded: { customer, policy, product } = {}, id } = license
    const bought = [product?.name, policy?.name].filter(Boolean).join(" · ")
    return (
      <>
        <Link to="/licenses/$id" params={{ id }}>
          {bought || licenseName(license)}
        </Link>
        {bought !== "" && name !== customer?.name && <small>{name}</small>}
      </>
    )
  }
}

export const columnsOfCustomer = (): ReadonlyArray<Column<License>> => [
  boughtColumn,
  ...licenseColumns().filter(({ title }) => !["Customer", "Product", "Policy"].includes(title))
]

/** In place of the expiry where the end of the updates is asked for: most licenses with one never expire. */
const updatesColumn: Column<License> = {
  title: "Updates until",
  sort: "maintenance_expires_at",
  show: ({ maintenance_expires_at }) => <Time at={maintenance_expires_at} only="day" />
}

export const maintainedColumns = (): ReadonlyArray<Column<License>> =>
  licenseColumns().map((column) => (column.sort === "expires_at" ? updatesColumn : column))

export const licenseColumns = (
  product: (license: License) => ReactNode = ({ expanded }) => expanded?.product?.name ?? "–",
  policy: (license: License) => ReactNode = ({ expanded }) => expanded?.policy?.name ?? "–"
): ReadonlyArray<Column<License>> => [
  {
    title: "Customer",
    show: (license) => (
      <>
        <Link to="/licenses/$id" params={{ id: license.id }}>
          {licenseName(license)}
        </Link>
        {license.customer_name !== undefined && <small>{license.customer_email}</small>}
      </>
    )
  },
  { title: "Status", show: ({ status }) => <Status of={status} /> },
  { title: "Product", goes: "next", show: product },
  { title: "Policy", goes: "first", show: policy },
  { title: "Key", goes: "last", show: (license) => <Key of={license} /> },
  {
    title: "Expires",
    sort: "expires_at",
    show: ({ expanded, expires_at }) => <Expiry at={expires_at} only="day" type={expanded?.policy?.license_type} />
  },
  { title: "Issued", sort: "created_at", goes: "first", show: ({ created_at }) => <Time at={created_at} only="day" /> },
  {
    title: "Devices",
    number: true,
    goes: "next",
    show: ({ active_device_count, limits }) => (
      <>
        {countOf(active_device_count)}
        {limits.max_activations > 0 && <span className="quiet"> / {countOf(limits.max_activations)}</span>}
      </>
    )
  }
]
