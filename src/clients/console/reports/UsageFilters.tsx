/** The filters that all usage reports share. */

import { type ReactNode, useId } from "react"
import { readerZone } from "../parts/Format.ts"
import { customers, licenses } from "../pickers/Sources.tsx"
import { useMay } from "../service/Hooks.ts"
import { Filter, TextFilter, useInputOf, useNarrow } from "../tables/List.tsx"
import { ProductFilter } from "../tables/ListFields.tsx"
import { RecordChips, RecordFilter } from "../tables/RecordChip.tsx"
import { type LedgerSearch, scopeOf } from "./UsageSearch.ts"
import { useUsedFeatureNames } from "./UsedFeatures.ts"

type Scope = Omit<LedgerSearch, "action" | "cursor">

export const UsageFilters = ({ children, search }: { readonly search: Scope; readonly children?: ReactNode }) => {
  const narrow = useNarrow()
  const may = useMay()
  return (
    <search className="row filters" aria-label="Filters">
      {children}
      {may("product:read") && <ProductFilter value={search.product_id} />}
      <FeatureFilter search={search} />
      {may("license:read") && (
        <>
          <RecordFilter field="license_id" id={search.license_id} narrow={narrow} source={licenses} />
          <RecordFilter field="customer_id" id={search.customer_id} narrow={narrow} source={customers} />
        </>
      )}
      <RecordChips search={search} without={may("license:read") ? ["license_id", "customer_id"] : []} />
      <DayFilters search={search} narrow={narrow} />
    </search>
  )
}

/** By name; by code where the features cannot be read. */
const FeatureFilter = ({ search }: { readonly search: Scope }) => {
  const value = search.feature_code
  const narrow = useNarrow()
  const { choices } = useUsedFeatureNames(scopeOf(search))
  const onChange = (feature_code: string | undefined) => narrow({ feature_code })
  if (choices.length === 0) return <TextFilter label="Feature’s code" value={value} onChange={onChange} />
  const isOffered = value === undefined || choices.some(({ id }) => id === value)
  const all = isOffered ? choices : [...choices, { id: value, name: value }]
  return <Filter label="Feature" value={value} choices={all} records onChange={onChange} />
}

interface PeriodProps {
  readonly search: { readonly from?: string; readonly to?: string }
  readonly narrow: (change: { readonly from?: string | undefined; readonly to?: string | undefined }) => void
}

/** Narrows a report to a period. Its ends stay beside each other. */
export const DayFilters = ({ narrow, search: { from, to } }: PeriodProps) => (
  <div className="row">
    <DayFilter label="From" value={from} onChange={(from) => narrow({ from })} />
    <DayFilter label="To" value={to} onChange={(to) => narrow({ to })} />
  </div>
)

/** Narrows a report by a day. */
export const DayFilter = (props: {
  readonly label: string
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}) => {
  const id = useId()
  const input = useInputOf(props.value)
  return (
    <div className="filter">
      <label htmlFor={id}>{props.label}</label>
      <input
        ref={input}
        id={id}
        aria-describedby={`${id}-zone`}
        type="date"
        max="9999-12-31"
        defaultValue={props.value}
        // A year that is typed digit by digit is a day with each digit.
        onBlur={({ currentTarget: { value } }) => value !== (props.value ?? "") && props.onChange(value || undefined)}
        onKeyDown={({ currentTarget: { value }, key }) => key === "Enter" && props.onChange(value || undefined)}
      />
      <small id={`${id}-zone`}>{readerZone}</small>
    </div>
  )
}
