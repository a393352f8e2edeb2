/**
 * Custom field definitions. A change locks the definition's row, and setting a value locks it too. So no option or definition
 * is removed while a transaction sets a value that needs it.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { checkUnchanged } from "../../access/preconditions/RecordTag.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { Page } from "../../contract/api/Paging.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { columns as arrays, instant, json } from "../../platform/postgres/driver/Parameters.ts"
import {
  constraints,
  decodeRows,
  patched,
  refuseIfReferenced,
  transaction
} from "../../platform/postgres/queries/Sql.ts"
import { Products, productNotFound } from "../products/Products.ts"
import { editOf, eventsOf, type FilteredBy, listOfProduct } from "../Records.ts"
import {
  type CustomFieldCreate,
  CustomFieldDefinition,
  CustomFieldUpdate,
  definitionFilters,
  definitionSorts
} from "./CustomField.ts"

const decodeDefinitions = decodeRows(CustomFieldDefinition)
const decodeOptions = decodeRows(Schema.Struct({ enum_value: Schema.String }))

const notFound = (id: string) => refuseUnknownId("custom field of the product", id, "field_id")
const duplicateCode = (code: string) =>
  refuse(
    "DUPLICATE_CODE",
    `The product has a custom field with the code ${code} for that kind of resource already: choose a different one.`,
    "code"
  )

type CustomFieldFilter = FilteredBy<typeof definitionFilters>

export class CustomFields extends Context.Service<
  CustomFields,
  {
    list(productId: string, filter: CustomFieldFilter): Effect.Effect<Page<CustomFieldDefinition>, Refusal<"NOT_FOUND">>
    get(productId: string, id: string): Effect.Effect<CustomFieldDefinition, Refusal<"NOT_FOUND">>
    create(
      productId: string,
      input: typeof CustomFieldCreate.Type
    ): Effect.Effect<CustomFieldDefinition, Refusal<"NOT_FOUND" | "DUPLICATE_CODE" | "VALIDATION_ERROR">>
    update(
      productId: string,
      id: string,
      input: typeof CustomFieldUpdate.Type
    ): Effect.Effect<
      CustomFieldDefinition,
      Refusal<"NOT_FOUND" | "DUPLICATE_CODE" | "RESOURCE_IN_USE" | "VALIDATION_ERROR" | "CONFLICT">
    >
    delete(productId: string, id: string): Effect.Effect<void, Refusal<"NOT_FOUND" | "RESOURCE_IN_USE">>
  }
>()("licensing/vendor/customFields/CustomFields") {
  static readonly layer = Layer.effect(
    CustomFields,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const products = yield* Products
      const columns = sql.literal(
        "id, product_id, resource_type, code, name, value_type, is_required, enum_options, metadata, created_at, updated_at"
      )
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "custom_field")
      const edit = editOf(events, "custom_field", CustomFieldUpdate)

      const list = Effect.fn("CustomFields.list")(
        listOfProduct(
          sql,
          products.get,
          { columns, table: "custom_field_definitions", sorts: definitionSorts, decode: decodeDefinitions },
          definitionFilters
        )
      )

      const read = Effect.fnUntraced(function* (productId: string, id: string, lock: Statement.Fragment) {
        const [field] = yield* decodeDefinitions(sql`
          SELECT ${columns} FROM custom_field_definitions WHERE id = ${id} AND product_id = ${productId} ${lock}`)
        if (field !== undefined) return field
        yield* products.get(productId)
        return yield* notFound(id)
      })
      const get = Effect.fn("CustomFields.get")(
        (productId: string, id: string) => read(productId, id, sql``),
        Effect.catchTag("SqlError", Effect.die)
      )
      const locked = (productId: string, id: string) => read(productId, id, sql`FOR UPDATE`)

      const create = Effect.fn("CustomFields.create")(function* (
        productId: string,
        input: typeof CustomFieldCreate.Type
      ) {
        const now = yield* Clock.currentTimeMillis
        const id = yield* ids.make("customField")
        const defaults = { is_required: false, enum_options: [], metadata: {} }
        const field: CustomFieldDefinition = {
          id,
          product_id: productId,
          ...defaults,
          ...input,
          created_at: now,
          updated_at: now
        }
        const fault = optionsFault(field)
        // An unknown product in the path is reported before faults in the body.
        if (fault !== undefined) return yield* Effect.andThen(products.get(productId), fault)
        const { resource_type, code, value_type } = field
        yield* sql`
          INSERT INTO custom_field_definitions (id, product_id, resource_type, code, name, value_type, is_required,
            enum_options, metadata, created_at, updated_at)
          VALUES (${id}, ${productId}, ${resource_type}, ${code}, ${field.name}, ${value_type}, ${field.is_required},
            ${arrays.text(field.enum_options)}, ${json(field.metadata)}, ${instant(now)}, ${instant(now)})`.pipe(
          constraints({
            custom_field_definitions_code_key: () => duplicateCode(code),
            custom_field_definitions_product_id_fkey: () => productNotFound(productId)
          })
        )
        yield* append("custom_field.created", id, { product_id: productId, resource_type, code, value_type })
        return field
      }, inTransaction)

      const refuseOptionsInUse = Effect.fnUntraced(function* (id: string, removed: ReadonlyArray<string>) {
        if (removed.length === 0) return
        const [used] = yield* decodeOptions(sql`
          SELECT enum_value FROM custom_field_values
          WHERE definition_id = ${id} AND enum_value = ANY(${arrays.text(removed)}) LIMIT 1`)
        if (used === undefined) return
        return yield* refuse(
          "RESOURCE_IN_USE",
          `The option ${used.enum_value} is the value of a field: change that value first.`,
          "enum_options"
        )
      })

      const update = Effect.fn("CustomFields.update")(function* (
        productId: string,
        id: string,
        input: typeof CustomFieldUpdate.Type
      ) {
        const before = yield* locked(productId, id)
        yield* checkUnchanged(CustomFieldUpdate, before)
        const now = yield* Clock.currentTimeMillis
        const field: CustomFieldDefinition = { ...patched<CustomFieldDefinition>(before, input), updated_at: now }
        const fault = optionsFault(field)
        if (fault !== undefined) return yield* fault
        return yield* edit(before, field, function* () {
          const remaining = new Set(field.enum_options)
          yield* refuseOptionsInUse(
            id,
            before.enum_options.filter((option) => !remaining.has(option))
          )
          yield* sql`
            UPDATE custom_field_definitions SET code = ${field.code}, name = ${field.name},
              is_required = ${field.is_required}, enum_options = ${arrays.text(field.enum_options)},
              metadata = ${json(field.metadata)}, updated_at = ${instant(now)}
            WHERE id = ${id}`.pipe(constraints({ custom_field_definitions_code_key: () => duplicateCode(field.code) }))
        })
      }, inTransaction)

      const remove = Effect.fn("CustomFields.delete")(function* (productId: string, id: string) {
        const { resource_type, code } = yield* locked(productId, id)
        yield* sql`DELETE FROM custom_field_definitions WHERE id = ${id}`.pipe(
          refuseIfReferenced(() =>
            refuse("RESOURCE_IN_USE", "The custom field has values: clear those first.", "field_id")
          )
        )
        yield* append("custom_field.deleted", id, { product_id: productId, resource_type, code })
      }, inTransaction)

      return CustomFields.of({ list, get, create, update, delete: remove })
    })
  )
}

const optionsFault = ({ value_type, enum_options }: CustomFieldDefinition) => {
  if (value_type === "enum" && enum_options.length === 0) {
    return refuse(
      "VALIDATION_ERROR",
      "A field of the type enum needs at least one option: give enum_options.",
      "enum_options"
    )
  }
  return value_type !== "enum" && enum_options.length > 0
    ? refuse("VALIDATION_ERROR", "Only a field of the type enum has options: leave out enum_options.", "enum_options")
    : undefined
}
