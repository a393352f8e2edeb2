/** The values of custom fields: those of a license, and those of a customer for each product. */
import { Effect, Exit } from "effect"
import { type ReactNode, useEffect, useRef } from "react"
import { refuse } from "../../../contract/api/Failure.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import type { CustomFieldValue } from "../../../vendor/customFields/CustomField.ts"
import type { Product } from "../../../vendor/products/Product.ts"
import type { Client } from "../../client/Client.ts"
import { Action } from "../parts/Dialog.tsx"
import { EachProduct, productsMax } from "../parts/EachProduct.tsx"
import type { ChangeFieldsOf } from "../parts/Fields.tsx"
import { countOf } from "../parts/Format.ts"
import { Facts, Loaded, Section, Time } from "../parts/Show.tsx"
import { type Told, tell } from "../service/Failures.ts"
import { changeBy, refresh, run, useAsk, useMay } from "../service/Hooks.ts"
import { send } from "../service/Service.ts"
import { type CustomField, inputOf, requestOf, type Value, valueOf } from "./TypedInputs.ts"

/** Fields of a product; more than these are not shown. */
const fieldsMax = 200

const query = { limit: fieldsMax }

interface Props {
  readonly license: License
  readonly mayChange: boolean
}

export const LicenseValues = ({ license: { id, product_id }, mayChange }: Props) => {
  const may = useMay()
  const params = { id }
  const values = useAsk("listLicenseCustomFieldValues", { params, query })
  const asked = {
    id: "custom-fields",
    title: "Custom fields",
    reread: () => run("listLicenseCustomFieldValues", { params, query }).then(Exit.map(({ items }) => recordOf(items))),
    set: (field: CustomField, value: Value | null) =>
      send("setLicenseCustomFieldValue", {
        params: { id, field_id: field.id },
        payload: requestOf(field.value_type, value)
      })
  }
  return (
    <Loaded of={values}>
      {({ items }) =>
        may("product:read") ? (
          <Defined product={product_id} kind="license" values={items} mayChange={mayChange} asked={asked} />
        ) : (
          <Values fields={items.map(fieldOf)} values={items} mayChange={mayChange} asked={asked} />
        )
      }
    </Loaded>
  )
}

export const CustomerValues = ({ of: { id } }: { readonly of: Customer }) => (
  <EachProduct customer={id} others={`Custom fields of ${productsMax} products are shown here.`}>
    {(product) => <CustomerValuesOf key={product.id} customer={id} product={product} />}
  </EachProduct>
)

const CustomerValuesOf = ({ customer, product }: { readonly customer: string; readonly product: Product }) => {
  const may = useMay()
  const params = { id: customer }
  const values = useAsk("listCustomerCustomFieldValues", { params, query })
  const asked = {
    id: `custom-fields-${product.code}`,
    title: `Custom fields of ${product.name}`,
    reread: () =>
      run("listCustomerCustomFieldValues", { params, query }).then(Exit.map(({ items }) => recordOf(items))),
    set: (field: CustomField, value: Value | null) =>
      send("setCustomerCustomFieldValue", {
        params: { id: customer, field_id: field.id },
        payload: requestOf(field.value_type, value)
      })
  }
  return (
    <Loaded of={values}>
      {({ items }) => (
        <Defined product={product.id} kind="customer" values={items} mayChange={may("license:write")} asked={asked} />
      )}
    </Loaded>
  )
}

interface Asked {
  readonly id: string
  readonly title: string
  readonly reread: () => Promise<Exit.Exit<Values, unknown>>
  readonly set: (field: CustomField, value: Value | null) => Effect.Effect<unknown, unknown, Client>
}

/** Values by the id of their field. */
type Values = Readonly<Record<string, Value>>

const recordOf = (values: ReadonlyArray<CustomFieldValue>): Values =>
  Object.fromEntries(values.map((value) => [value.definition_id, valueOf(value)]))

const fieldOf = ({ definition_id, ...field }: CustomFieldValue): CustomField => ({ ...field, id: definition_id })

interface ValuesProps {
  readonly values: ReadonlyArray<CustomFieldValue>
  readonly mayChange: boolean
  readonly asked: Asked
}

/** The fields that the product defines, also those without a value. */
const Defined = (props: ValuesProps & { readonly product: string; readonly kind: "license" | "customer" }) => {
  const { kind, product, ...others } = props
  const fields = useAsk("listCustomFields", { params: { id: product }, query: { ...query, resource_type: kind } })
  return <Loaded of={fields}>{({ items }) => <Values fields={items.toReversed()} {...others} />}</Loaded>
}

const Values = ({
  asked,
  fields,
  mayChange,
  values
}: ValuesProps & { readonly fields: ReadonlyArray<CustomField> }) => {
  if (fields.length === 0) return null
  const record = recordOf(values)
  return (
    <Section
      id={asked.id}
      title={asked.title}
      actions={mayChange && <Edit asked={asked} fields={fields} record={record} />}
    >
      <Facts of={fields.map((field) => [field.name, shown(field, record[field.id])])} />
    </Section>
  )
}

const shown = ({ value_type }: CustomField, value: Value | undefined): ReactNode => {
  if (value === undefined) return "–"
  if (value_type === "datetime") return <Time at={Number(value)} />
  if (value_type === "integer") return countOf(Number(value))
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value)
}

type Changes = Readonly<Record<string, Value | null>>

interface EditProps {
  readonly asked: Asked
  readonly fields: ReadonlyArray<CustomField>
  readonly record: Values
}

const Edit = ({ asked, fields, record }: EditProps) => {
  const inputs: ChangeFieldsOf<Values> = Object.fromEntries(fields.map((field) => [field.id, inputOf(field)]))
  /** What this dialog has set before another field was refused: no other person's change. */
  const own = useRef(new Map<string, Own>())
  const reread = () => asked.reread().then(Exit.map((current) => without(own.current, current)))
  const setOne = (field: CustomField, value: Value | null, seen: Value | undefined) =>
    asked.set(field, value).pipe(
      Effect.tap(() => Effect.sync(() => own.current.set(field.id, { seen, saved: value }))),
      Effect.catchCause((cause) => faultOf(field, tell(cause)))
    )
  const setAll = (changes: Changes, read: Values) =>
    Effect.forEach(
      fields.filter(({ id }) => id in changes),
      (field) => setOne(field, changes[field.id] ?? null, read[field.id])
    ).pipe(
      Effect.tap(() => Effect.sync(() => own.current.clear())),
      Effect.as(revertible(fields, changes, read)),
      Effect.tapError(() => Effect.sync(() => void refresh()))
    )
  return (
    <Action
      label="Edit"
      send="Save"
      name={`Edit ${asked.title.toLowerCase()}`}
      effect={<Effects onOpen={() => own.current.clear()} />}
      fields={inputs}
      edited={{ record, reread }}
      run={(changes: Changes, read: object = record) => changeBy(setAll(changes, read as Values))}
    />
  )
}

/** What was changed as the record shows it then, without what cannot be taken back: a field that must keep a value has its first one. */
const revertible = (fields: ReadonlyArray<CustomField>, changes: Changes, read: Values): Changes =>
  fields.some(({ id, is_required }) => is_required && id in changes && read[id] === undefined) ? {} : changes

const Effects = ({ onOpen }: { readonly onOpen: () => void }) => {
  // biome-ignore lint/correctness/useExhaustiveDependencies: a dialog opens once.
  useEffect(onOpen, [])
  return "Each change holds at once. An emptied field loses its value."
}

interface Own {
  /** The value as it was read before. */
  readonly seen: Value | undefined
  readonly saved: Value | null
}

/** Values without the reader's own changes, unless somebody else has changed them again. */
const without = (own: ReadonlyMap<string, Own>, current: Values): Values => {
  const before = [...own]
    .filter(([id, { saved }]) => (current[id] ?? null) === saved)
    .map(([id, { seen }]) => [id, seen] as const)
  return { ...current, ...Object.fromEntries(before) } as Values
}

/** A refusal, about the input of its field. */
const faultOf = ({ id }: CustomField, { message }: Told) => refuse("VALIDATION_ERROR", message, id)
