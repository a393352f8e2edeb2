/** Custom fields: fields that a vendor adds to licenses and customers. */
import { Schema } from "effect"
import { integer } from "../../contract/api/Int64.ts"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Code, isMinCharacters, Name, Text } from "../../contract/api/Text.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"

export const CustomFieldResourceType = Schema.Literals(["license", "customer"]).annotate({
  identifier: "CustomFieldResourceType",
  description: "The kind of records that have the field."
})
export type CustomFieldResourceType = typeof CustomFieldResourceType.Type

export const CustomFieldValueType = Schema.Literals(["string", "integer", "boolean", "datetime", "enum"]).annotate({
  identifier: "CustomFieldValueType",
  description: "The type of the field's values."
})
export type CustomFieldValueType = typeof CustomFieldValueType.Type

const Option = Text(255).check(isMinCharacters(1))

const optionsMax = 200

const EnumOptions = Schema.Array(Option)
  .annotate({ description: "The options of an enum field, at least one; none for other types." })
  .check(
    Schema.isMaxLength(optionsMax, { expected: `at most ${optionsMax} options` }),
    Schema.makeFilter((options) => new Set(options).size === options.length || "Expected options that differ")
  )

const definition = {
  product_id: Schema.String,
  resource_type: CustomFieldResourceType,
  code: Schema.String,
  name: Schema.String,
  value_type: CustomFieldValueType,
  is_required: Schema.Boolean,
  enum_options: Schema.Array(Schema.String),
  metadata: Metadata
}

export const CustomFieldDefinition = Schema.Struct({
  id: Schema.String,
  ...definition,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({
  identifier: "CustomFieldDefinition",
  description: "A field that a product adds to its licenses or customers."
})
export type CustomFieldDefinition = typeof CustomFieldDefinition.Type

export const definitionSorts = { created_at: "instant" } as const

export const definitionFilters = {
  code: Schema.optionalKey(Schema.String),
  resource_type: Schema.optionalKey(CustomFieldResourceType),
  value_type: Schema.optionalKey(CustomFieldValueType)
}

export const CustomFieldCreate = Schema.Struct({
  resource_type: CustomFieldResourceType,
  code: Code,
  name: Name,
  value_type: CustomFieldValueType,
  is_required: Schema.optionalKey(
    Schema.Boolean.annotate({ default: false, description: "A set value can be changed but not cleared." })
  ),
  enum_options: Schema.optionalKey(EnumOptions),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "CustomFieldDefinitionCreateRequest" })

export const CustomFieldUpdate = Schema.Struct({
  code: Schema.optionalKey(Code),
  name: Schema.optionalKey(Name),
  is_required: Schema.optionalKey(Schema.Boolean),
  enum_options: Schema.optionalKey(EnumOptions),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "CustomFieldDefinitionUpdateRequest" })

const Integer = integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER).annotate({ format: "int64" })

/** Events contain the old and the new value, so both must stay small. */
const stringLengthMax = 4096

const values = {
  string_value: Schema.optionalKey(Text(stringLengthMax)),
  integer_value: Schema.optionalKey(Integer),
  boolean_value: Schema.optionalKey(Schema.Boolean),
  datetime_value: Schema.optionalKey(Timestamp),
  enum_value: Schema.optionalKey(Text(255))
}

export const CustomFieldValue = Schema.Struct({
  definition_id: Schema.String.annotate({ description: "The id of the custom field's definition." }),
  ...definition,
  resource_id: Schema.String,
  updated_at: Timestamp,
  ...values
}).annotate({
  identifier: "CustomFieldValue",
  description: "A custom field of a record, with its value if it has one."
})
export type CustomFieldValue = typeof CustomFieldValue.Type

export const CustomFieldValueSet = Schema.Struct({
  ...values,
  clear: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "true clears the value; no typed value may be given." })
  )
}).annotate({ identifier: "CustomFieldValueUpsertRequest", description: "Exactly one typed value, or clear: true." })
