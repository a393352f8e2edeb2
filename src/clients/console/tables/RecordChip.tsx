/** Filters by a record: the chip shows its name, also if a link has set it. */
import type { ReactNode } from "react"
import { useNameOf } from "../parts/Names.tsx"
import type { Source } from "../pickers/Picker.tsx"
import { RemoveFilter, useNarrow } from "./List.tsx"
import { PickFilter } from "./PickFilter.tsx"

const Text = ({ field, id }: { readonly field: string; readonly id: string }) => {
  const name = useNameOf(field, id)
  return name === undefined ? "…" : (name ?? "not visible to you")
}

const labels = {
  license_id: "License",
  customer_id: "Customer",
  policy_id: "Policy",
  order_id: "Order",
  subscription_id: "Subscription",
  feature_id: "Feature"
} as const

type Field = keyof typeof labels
type Narrow = (change: Readonly<Record<string, string | undefined>>) => void

interface ChipProps {
  readonly field: Field
  readonly id: string
  readonly narrow: Narrow
}

interface SetProps {
  readonly label: string
  /** Shown on hover. */
  readonly id: string
  readonly onRemove: () => void
  /** The name. */
  readonly children: ReactNode
}

/** A filter that is set, and cannot be changed but removed. */
export const SetChip = ({ children, id, label, onRemove }: SetProps) => (
  <div className="chip set" title={id}>
    <span>{label}</span>
    <strong>{children}</strong>
    <RemoveFilter label={label} onRemove={onRemove} />
  </div>
)

const RecordChip = ({ field, id, narrow }: ChipProps) => (
  <SetChip label={labels[field]} id={id} onRemove={() => narrow({ [field]: undefined })}>
    <Text field={field} id={id} />
  </SetChip>
)

interface Props {
  readonly search: { readonly [F in Field]?: string }
  /** Those that have a control of their own. */
  readonly without?: ReadonlyArray<Field>
}

export const RecordChips = ({ search, without = [] }: Props) => {
  const narrow = useNarrow()
  return Object.keys(labels).map((name) => {
    const field = name as Field
    const id = search[field]
    return id === undefined || without.includes(field) ? null : (
      <RecordChip key={field} field={field} id={id} narrow={narrow} />
    )
  })
}

interface FilterProps extends Omit<ChipProps, "id"> {
  readonly id: string | undefined
  readonly source: Source
}

/** Chooses a record, or shows the one that is chosen. */
export const RecordFilter = ({ field, id, narrow, source }: FilterProps) =>
  id === undefined ? (
    <PickFilter label={labels[field]} source={source} onChange={(chosen) => narrow({ [field]: chosen })} />
  ) : (
    <RecordChip field={field} id={id} narrow={narrow} />
  )
