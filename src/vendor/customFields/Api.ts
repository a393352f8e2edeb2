/** The operations on custom field definitions, and on the values of licenses and customers. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { listQuery, pageQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import {
  CustomFieldCreate,
  CustomFieldDefinition,
  CustomFieldUpdate,
  CustomFieldValue,
  CustomFieldValueSet,
  definitionFilters,
  definitionSorts
} from "./CustomField.ts"

const ofResource = { id: Schema.String }
const params = { ...ofResource, field_id: Schema.String }

const definitions = [
  HttpApiEndpoint.get("list", "/products/:id/custom-fields", {
    params: ofResource,
    query: listQuery(definitionSorts, definitionFilters),
    success: Paged(CustomFieldDefinition),
    error: failures("NOT_FOUND")
  }).annotateMerge(
    operation({ id: "listCustomFields", summary: "List a product's custom fields", scopes: ["product:read"] })
  ),
  HttpApiEndpoint.post("create", "/products/:id/custom-fields", {
    params: ofResource,
    payload: CustomFieldCreate,
    success: Data(CustomFieldDefinition).pipe(HttpApiSchema.status(201)),
    error: failures("NOT_FOUND", "DUPLICATE_CODE", "VALIDATION_ERROR")
  }).annotateMerge(
    operation({
      id: "createCustomField",
      summary: "Define a custom field",
      description:
        "Defines a typed value that the vendor keeps with the product's licenses, or with customers. The value of a required field can be replaced, not cleared.",
      scopes: ["product:write"]
    })
  ),
  HttpApiEndpoint.get("get", "/products/:id/custom-fields/:field_id", {
    params,
    success: Data(CustomFieldDefinition),
    error: failures("NOT_FOUND")
  }).annotateMerge(operation({ id: "getCustomField", summary: "Get a custom field", scopes: ["product:read"] })),
  HttpApiEndpoint.patch("update", "/products/:id/custom-fields/:field_id", {
    params,
    payload: CustomFieldUpdate,
    success: Data(CustomFieldDefinition),
    error: failures("NOT_FOUND", "DUPLICATE_CODE", "RESOURCE_IN_USE", "VALIDATION_ERROR")
  })
    .middleware(Conditional)
    .annotateMerge(
      operation({
        id: "updateCustomField",
        summary: "Update a custom field",
        description:
          "Its resource_type and value_type cannot be changed; an option cannot be removed while it is in use.",
        scopes: ["product:write"]
      })
    ),
  HttpApiEndpoint.delete("delete", "/products/:id/custom-fields/:field_id", {
    params,
    success: HttpApiSchema.NoContent,
    error: failures("NOT_FOUND", "RESOURCE_IN_USE")
  }).annotateMerge(
    operation({
      id: "deleteCustomField",
      summary: "Delete a custom field",
      description: "Refused while it has values.",
      scopes: ["product:write"]
    })
  )
] as const

const clearing = "Responds with the new value, or with 204 after clearing."

const licenseValues = [
  HttpApiEndpoint.get("listLicenseValues", "/licenses/:id/custom-fields", {
    params: ofResource,
    query: pageQuery,
    success: Paged(CustomFieldValue),
    error: failures("NOT_FOUND")
  })
    .annotateMerge(
      operation({
        id: "listLicenseCustomFieldValues",
        summary: "List a license's custom field values",
        description: "Only fields with a value.",
        scopes: ["license:read"]
      })
    )
    .annotate(PathTables, { id: "licenses" }),
  HttpApiEndpoint.put("setLicenseValue", "/licenses/:id/custom-fields/:field_id", {
    params,
    payload: CustomFieldValueSet,
    success: [Data(CustomFieldValue), HttpApiSchema.NoContent],
    error: failures(
      "NOT_FOUND",
      "CONFLICT",
      "LICENSE_STATE_CONFLICT",
      "VALIDATION_ERROR",
      "CUSTOM_FIELD_TYPE_MISMATCH",
      "CUSTOM_FIELD_REQUIRED"
    )
  })
    .annotateMerge(
      operation({
        id: "setLicenseCustomFieldValue",
        summary: "Set or clear a license's custom field value",
        description: clearing,
        scopes: ["license:write"]
      })
    )
    .annotate(PathTables, { id: "licenses", field_id: "custom_field_definitions" })
] as const

const customerValues = [
  HttpApiEndpoint.get("listCustomerValues", "/customers/:id/custom-fields", {
    params: ofResource,
    query: pageQuery,
    success: Paged(CustomFieldValue),
    error: failures("NOT_FOUND")
  })
    .annotateMerge(
      operation({
        id: "listCustomerCustomFieldValues",
        summary: "List a customer's custom field values",
        description: "Only fields with a value.",
        scopes: ["license:read"]
      })
    )
    .annotate(PathTables, { id: "customers" }),
  HttpApiEndpoint.put("setCustomerValue", "/customers/:id/custom-fields/:field_id", {
    params,
    payload: CustomFieldValueSet,
    success: [Data(CustomFieldValue), HttpApiSchema.NoContent],
    error: failures("NOT_FOUND", "CONFLICT", "VALIDATION_ERROR", "CUSTOM_FIELD_TYPE_MISMATCH", "CUSTOM_FIELD_REQUIRED")
  })
    .annotateMerge(
      operation({
        id: "setCustomerCustomFieldValue",
        summary: "Set or clear a customer's custom field value",
        description: clearing,
        scopes: ["license:write"]
      })
    )
    .annotate(PathTables, { id: "customers", field_id: "custom_field_definitions" })
] as const

export class CustomFieldsApi extends HttpApiGroup.make("custom-fields")
  .add(...definitions, ...licenseValues, ...customerValues)
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "products", field_id: "custom_field_definitions" })
  .annotate(OpenApi.Description, "Fields that a vendor adds to licenses and customers.") {}
