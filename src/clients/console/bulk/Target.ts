/** The licenses of a bulk job, and its state. */
import type { BulkJob, BulkJobCreate } from "../../../licensing/bulk/BulkJob.ts"
import type { Chosen, Filters } from "../batch/Chosen.ts"

export type Target = Pick<typeof BulkJobCreate.Type, "filter" | "license_ids" | "confirm_all">

/** The filters as texts, without the parameters for sort, pages and expansion, and without a blank q, which filters nothing. */
const filterOf = ({ cursor: _, expand: __, include_total: ___, limit: ____, sort: _____, ...filters }: Filters) =>
  Object.fromEntries(
    Object.entries(filters).flatMap(([name, value]: [string, unknown]) =>
      value === undefined || (name === "q" && String(value).trim() === "")
        ? []
        : [[name, typeof value === "number" ? new Date(value).toISOString() : String(value)]]
    )
  )

export const targetOf = (chosen: Chosen): Target => {
  if (!("filters" in chosen)) return { license_ids: chosen.map(({ id }) => id) }
  const filter = filterOf(chosen.filters)
  return Object.keys(filter).length === 0 ? { filter, confirm_all: true } : { filter }
}

/** The product of all the licenses, if they have one in common. */
export const productOf = (chosen: Chosen): string | undefined => {
  if ("filters" in chosen) return chosen.filters.product_id
  const [first, ...others] = new Set(chosen.map(({ product_id }) => product_id))
  return others.length === 0 ? first : undefined
}

export const isOpen = ({ status }: BulkJob): boolean => status === "pending" || status === "running"

/** How many licenses the job has looked at. */
export const doneOf = ({ changed, refused, unchanged }: BulkJob): number => changed + unchanged + refused
