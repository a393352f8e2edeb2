/** The heading of the reports, with the way between them. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Heading } from "../parts/Show.tsx"
import { useMay } from "../service/Hooks.ts"

const reports = [
  { to: "/reports", name: "Usage", scope: "report:read" },
  { to: "/reports/ledger", name: "Ledger", scope: "report:read" },
  { to: "/reports/exports", name: "Exports", scope: "report:export" }
] as const

export const ReportsHeading = ({ children, title }: { readonly title: string; readonly children?: ReactNode }) => {
  const may = useMay()
  return (
    <>
      <nav className="row tabs" aria-label="Reports">
        {reports
          .filter(({ scope }) => may(scope))
          .map(({ name, to }) => (
            <Link key={to} to={to} activeOptions={{ exact: to === "/reports", includeSearch: false }}>
              {name}
            </Link>
          ))}
      </nav>
      <Heading title={title}>{children}</Heading>
    </>
  )
}
