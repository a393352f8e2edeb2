/** The types of custom fields: how each is called, entered, shown and sent. */
import {
  CustomFieldResourceType,
  type CustomFieldValue,
  type CustomFieldValueType
} from "../../../vendor/customFields/CustomField.ts"
import { answer, type Choice, choice, type Field, instant, integer, text } from "../parts/Fields.tsx"
import { capital } from "../parts/Format.ts"
import type { Payload } from "../service/Service.ts"

export const valueTypes = {
  string: "Text",
  integer: "Whole number",
  boolean: "Yes or no",
  datetime: "Date and time",
  enum: "Choice"
} as const satisfies Readonly<Record<CustomFieldValueType, string>>

export const valueTypeChoices: ReadonlyArray<Choice<CustomFieldValueType>> = Object.entries(valueTypes).map(
  ([id, name]) => ({ id: id as CustomFieldValueType, name })
)

export const resourceChoices: ReadonlyArray<Choice<CustomFieldResourceType>> = CustomFieldResourceType.literals.map(
  (id) => ({
    id,
    name: capital(`${id}s`)
  })
)

export type Value = string | number | boolean

/** A custom field that a license or a customer has, or may get a value of. */
export interface CustomField {
  readonly id: string
  readonly name: string
  readonly value_type: CustomFieldValueType
  readonly is_required: boolean
  readonly enum_options: ReadonlyArray<string>
}

/** The input for the values of a custom field. */
export const inputOf = ({ enum_options, is_required, name, value_type }: CustomField): Field<Value> => {
  const options = is_required ? { hint: "Once it has a value, it keeps one." } : {}
  const inputs = {
    string: () => text(name, options),
    integer: () => integer(name, options),
    boolean: () => answer(name, options),
    datetime: () => instant(name, options),
    enum: () =>
      choice(
        name,
        enum_options.map((id) => ({ id, name: id })),
        options
      )
  }
  return inputs[value_type]() as Field<Value>
}

export const valueOf = (value: CustomFieldValue): Value =>
  value.string_value ?? value.integer_value ?? value.boolean_value ?? value.datetime_value ?? value.enum_value ?? ""

/** The request that sets a value, or clears it. */
export const requestOf = (type: CustomFieldValueType, value: Value | null): Payload<"setLicenseCustomFieldValue"> =>
  value === null ? { clear: true } : { [`${type}_value`]: value }
