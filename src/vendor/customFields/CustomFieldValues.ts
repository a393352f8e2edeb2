/**
 * Custom field values. A command first locks the license's or customer's row, so that the values of one resource are set one
 * after another, and none is set after the license was revoked. Then it locks the definition's row against changes. Only values
 * that are set have a row.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import * as Failure from "../../contract/api/Failure.ts"
import { limitDefault, type Page, type PageRequest, pageOf } from "../../contract/api/Paging.ts"
import { formatTimestamp, Timestamp } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { after, decodeRows, transaction } from "../../platform/postgres/queries/Sql.ts"
import {
  CustomFieldDefinition,
  type CustomFieldResourceType,
  CustomFieldValue,
  type CustomFieldValueSet
} from "./CustomField.ts"

const decodeDefinitions = decodeRows(CustomFieldDefinition)
const decodeListed = decodeRows(Schema.Struct({ ...CustomFieldValue.fields, id: Schema.String, created_at: Timestamp }))
const decodeLicenses = decodeRows(
  Schema.Struct({ product_id: Schema.String, status: Schema.String, customer_id: Schema.optionalKey(Schema.String) })
)
const decodeStored = decodeRows(
  Schema.Struct({ value: Schema.Union([Schema.String, Schema.Number, Schema.Boolean]), updated_at: Timestamp })
)

type Input = typeof CustomFieldValueSet.Type
type SetRefusal = Failure.Refusal<
  "NOT_FOUND" | "CONFLICT" | "VALIDATION_ERROR" | "CUSTOM_FIELD_TYPE_MISMATCH" | "CUSTOM_FIELD_REQUIRED"
>

export class CustomFieldValues extends Context.Service<
  CustomFieldValues,
  {
    /** The values that are set, newest first. A token limited to products sees the fields of those products. */
    list(
      resourceType: CustomFieldResourceType,
      resourceId: string,
      page: PageRequest
    ): Effect.Effect<Page<CustomFieldValue>, Failure.Refusal<"NOT_FOUND">>
    /** The field must belong to the license's product. Undefined after clearing. */
    setOfLicense(
      licenseId: string,
      fieldId: string,
      input: Input
    ): Effect.Effect<CustomFieldValue | undefined, SetRefusal | Failure.Refusal<"LICENSE_STATE_CONFLICT">>
    /** The field may belong to any product. Undefined after clearing. */
    setOfCustomer(
      customerId: string,
      fieldId: string,
      input: Input
    ): Effect.Effect<CustomFieldValue | undefined, SetRefusal>
  }
>()("licensing/vendor/customFields/CustomFieldValues") {
  static readonly layer = Layer.effect(
    CustomFieldValues,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const inTransaction = transaction(sql)
      const { definitionOf, list, refuseErasing } = yield* makeReads
      const set = yield* makeSet

      const setOfLicense = Effect.fn("CustomFieldValues.setOfLicense")(function* (
        id: string,
        fieldId: string,
        input: Input
      ) {
        const [license] = yield* decodeLicenses(sql`
          SELECT product_id, status, customer_id FROM licenses WHERE id = ${id} FOR NO KEY UPDATE`)
        if (license === undefined) return yield* resourceNotFound("license", id)
        yield* refuseErasing(license.customer_id)
        const definition = yield* definitionOf("license", fieldId, license.product_id)
        const fault = faultOf(definition, input)
        if (fault !== undefined) return yield* fault
        if (license.status === "revoked") {
          return yield* Failure.refuse(
            "LICENSE_STATE_CONFLICT",
            "The license is revoked and cannot be changed: issue a new one.",
            "revoked"
          )
        }
        return yield* set(definition, id, input)
      }, inTransaction)

      const setOfCustomer = Effect.fn("CustomFieldValues.setOfCustomer")(function* (
        id: string,
        fieldId: string,
        input: Input
      ) {
        const [customer] = yield* sql`SELECT id FROM customers WHERE id = ${id} FOR NO KEY UPDATE`
        if (customer === undefined) return yield* resourceNotFound("customer", id)
        yield* refuseErasing(id)
        const definition = yield* definitionOf("customer", fieldId)
        const fault = faultOf(definition, input)
        if (fault !== undefined) return yield* fault
        return yield* set(definition, id, input)
      }, inTransaction)

      return CustomFieldValues.of({ list, setOfLicense, setOfCustomer })
    })
  )
}

const tables = { license: "licenses", customer: "customers" } as const
const owners = { license: "license_id", customer: "customer_id" } as const
const valueColumns = ["string_value", "integer_value", "boolean_value", "datetime_value", "enum_value"] as const

const resourceNotFound = (resourceType: CustomFieldResourceType, id: string) =>
  Failure.refuseUnknownId(resourceType, id)

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const list = Effect.fn("CustomFieldValues.list")(
    function* (
      resourceType: CustomFieldResourceType,
      resourceId: string,
      { limit = limitDefault, cursor }: PageRequest
    ) {
      const rows = yield* decodeListed(sql`
      SELECT * FROM (
        SELECT definition_id AS id, field_value.created_at, definition_id, product_id, resource_type,
          ${resourceId}::text AS resource_id, code, name, value_type, is_required, enum_options, metadata,
          field_value.updated_at, ${sql.literal(valueColumns.join(", "))}
        FROM custom_field_values AS field_value
        JOIN custom_field_definitions AS definition ON definition.id = definition_id
        WHERE ${sql(owners[resourceType])} = ${resourceId}
          AND ${ownedBy(sql, "custom_field_definitions", "definition", yield* CurrentProducts)}
      ) AS listed
      WHERE ${after(sql, cursor)} ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`)
      if (rows.length === 0) {
        const resources = yield* sql`SELECT 1 FROM ${sql(tables[resourceType])} WHERE id = ${resourceId}`
        if (resources.length === 0) return yield* resourceNotFound(resourceType, resourceId)
      }
      const { items, ...page } = pageOf(rows, limit)
      return { ...page, items: items.map(({ id: _, created_at: __, ...value }) => value) }
    },
    Effect.catchTag("SqlError", Effect.die)
  )

  /** Locks the definition against changes. */
  const definitionOf = Effect.fnUntraced(function* (
    resourceType: CustomFieldResourceType,
    id: string,
    productId?: string
  ) {
    const [definition] = yield* decodeDefinitions(sql`
      SELECT id, product_id, resource_type, code, name, value_type, is_required, enum_options, metadata, created_at,
        updated_at
      FROM custom_field_definitions
      WHERE id = ${id} AND resource_type = ${resourceType}
        AND ${productId === undefined ? sql`TRUE` : sql`product_id = ${productId}`}
      FOR SHARE`)
    return definition ?? (yield* Failure.refuseUnknownId(`custom field of the ${resourceType}`, id, "field_id"))
  })

  /** Until an erasure is finished, its customer and the customer's licenses get no values. */
  const refuseErasing = Effect.fnUntraced(function* (customerId: string | undefined) {
    if (customerId === undefined) return
    const erasures = yield* sql`SELECT FROM erasures WHERE customer_id = ${customerId}`
    if (erasures.length > 0) return yield* Failure.refuseErasing("id")
  })

  return { list, definitionOf, refuseErasing }
})

type StoredValue = string | number | boolean

const makeSet = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventLog

  return Effect.fnUntraced(function* (definition: CustomFieldDefinition, resourceId: string, input: Input) {
    const { id, resource_type, value_type, code } = definition
    const column = `${value_type}_value` as const
    const owner = sql(owners[resource_type])
    const [before] = yield* decodeStored(sql`
      SELECT ${sql(column)} AS value, updated_at FROM custom_field_values
      WHERE ${owner} = ${resourceId} AND definition_id = ${id}`)
    const value = input[column]
    const append = (event_type: "custom_field_value.set" | "custom_field_value.cleared") =>
      events.append({
        event_type,
        resource_type,
        resource_id: resourceId,
        metadata: {
          definition_id: id,
          code,
          value: { old: eventValue(definition, before?.value), new: eventValue(definition, value) }
        }
      })

    if (value === undefined) {
      if (before === undefined) return undefined
      if (definition.is_required) {
        return yield* Failure.refuse(
          "CUSTOM_FIELD_REQUIRED",
          "The field is required: set another value instead of clearing it.",
          "clear"
        )
      }
      yield* sql`DELETE FROM custom_field_values WHERE ${owner} = ${resourceId} AND definition_id = ${id}`
      yield* append("custom_field_value.cleared")
      return undefined
    }
    if (before?.value === value) return fieldValueOf(definition, resourceId, value, before.updated_at)
    const now = yield* Clock.currentTimeMillis
    const stored = value_type === "datetime" ? instant(value as number) : value
    yield* sql`
      INSERT INTO custom_field_values (definition_id, ${owner}, ${sql(column)}, created_at, updated_at)
      VALUES (${id}, ${resourceId}, ${stored}, ${instant(now)}, ${instant(now)})
      ON CONFLICT (${owner}, definition_id) WHERE ${owner} IS NOT NULL
      DO UPDATE SET ${sql(column)} = excluded.${sql(column)}, updated_at = excluded.updated_at`
    yield* append("custom_field_value.set")
    return fieldValueOf(definition, resourceId, value, now)
  })
})

const faultOf = ({ value_type, enum_options }: CustomFieldDefinition, input: Input) => {
  const given = valueColumns.filter((column) => input[column] !== undefined)
  const [column] = given
  if (given.length + (input.clear === true ? 1 : 0) !== 1) {
    return Failure.refuse(
      "VALIDATION_ERROR",
      "Give exactly one typed value, or clear: true.",
      given[1] ?? (column && "clear")
    )
  }
  if (column === undefined) return undefined
  if (column !== `${value_type}_value`) {
    return Failure.refuse(
      "CUSTOM_FIELD_TYPE_MISMATCH",
      `The field is of the type ${value_type}: give ${value_type}_value.`,
      column
    )
  }
  return input.enum_value !== undefined && !enum_options.includes(input.enum_value)
    ? Failure.refuse(
        "VALIDATION_ERROR",
        "The value is not one of the field's options: choose one of its enum_options.",
        "enum_value"
      )
    : undefined
}

const eventValue = ({ value_type }: CustomFieldDefinition, value: StoredValue | undefined) =>
  value_type === "datetime" && typeof value === "number" ? formatTimestamp(value) : (value ?? null)

const fieldValueOf = (
  { id, created_at: _, ...definition }: CustomFieldDefinition,
  resource_id: string,
  value: StoredValue,
  updated_at: number
): CustomFieldValue => ({
  ...definition,
  definition_id: id,
  resource_id,
  updated_at,
  [`${definition.value_type}_value`]: value
})
