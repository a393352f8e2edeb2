import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { CustomFieldUpdate } from "./CustomField.ts"
import { CustomFields } from "./CustomFields.ts"
import { CustomFieldValues } from "./CustomFieldValues.ts"

export const CustomFieldsHttp = operationGroup(
  Api,
  "custom-fields",
  Effect.fn(function* (handlers) {
    const fields = yield* CustomFields
    const values = yield* CustomFieldValues
    return handlers.handleAll({
      list: ({ params, query }) => fields.list(params.id, query),
      create: ({ params, payload }) => fields.create(params.id, payload),
      get: ({ params }) => withTag(CustomFieldUpdate, fields.get(params.id, params.field_id)),
      update: ({ params, payload }) => withTag(CustomFieldUpdate, fields.update(params.id, params.field_id, payload)),
      delete: ({ params }) => fields.delete(params.id, params.field_id),
      listLicenseValues: ({ params, query }) => values.list("license", params.id, query),
      setLicenseValue: ({ params, payload }) => values.setOfLicense(params.id, params.field_id, payload),
      listCustomerValues: ({ params, query }) => values.list("customer", params.id, query),
      setCustomerValue: ({ params, payload }) => values.setOfCustomer(params.id, params.field_id, payload)
    })
  })
)
