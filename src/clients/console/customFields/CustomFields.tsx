/** The custom fields that a product defines for its licenses and for customers. */
import { refuse } from "../../../contract/api/Failure.ts"
import type { CustomFieldDefinition, CustomFieldValueType } from "../../../vendor/customFields/CustomField.ts"
import type { Product } from "../../../vendor/products/Product.ts"
import { Action } from "../parts/Dialog.tsx"
import { type ChangeFieldsOf, choice, type FieldsOf, flag, lines, text } from "../parts/Fields.tsx"
import { sentenceOf } from "../parts/Format.ts"
import { Menu } from "../parts/Menu.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { Loaded, Section, Table } from "../parts/Show.tsx"
import { change, changeBy, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { resourceChoices, valueTypeChoices, valueTypes } from "./TypedInputs.ts"

type Creation = Payload<"createCustomField">
type Update = Payload<"updateCustomField">

const enumOptions = lines("Options", { hint: "One in each line." })

const common = {
  name: text("Name", { required: true }),
  code: text("Code", { required: true, hint: "Lower-case letters, digits, dots and dashes." })
}

const required = flag("Once it has a value, it keeps one", { hint: "The value can then be changed, not cleared." })

/** The options are shown for the type that has them (look/styles/forms.css). */
const creationFields: FieldsOf<Creation> = {
  ...common,
  resource_type: choice("For", resourceChoices, { required: true }),
  value_type: choice("Type", valueTypeChoices, { required: true }),
  enum_options: enumOptions,
  is_required: required,
  metadata: metadata()
}

const updateFields = (type: CustomFieldValueType): ChangeFieldsOf<Update> => ({
  ...common,
  ...(type === "enum" ? { enum_options: enumOptions } : {}),
  is_required: required,
  metadata: metadata()
})

/** What was typed as options before another type was chosen is not sent. */
const createdOf = ({ enum_options, ...body }: Creation): Creation =>
  body.value_type === "enum" && enum_options !== undefined ? { ...body, enum_options } : body

const isWithoutOptions = ({ enum_options = [], value_type }: Creation) =>
  value_type === "enum" && enum_options.length === 0

export const CustomFields = ({ product: { id } }: { readonly product: Product }) => {
  const may = useMay()
  const fields = useAsk("listCustomFields", { params: { id }, query: { limit: 200 } })
  return (
    <Section
      id="custom-fields"
      title="Custom fields"
      actions={
        may("product:write") && (
          <Action
            label="New custom field"
            send="Create custom field"
            effect="Each license of the product, or each customer, can then have a value of it."
            fields={creationFields}
            run={(payload: Creation) =>
              isWithoutOptions(payload)
                ? changeBy(refuse("VALIDATION_ERROR", "Give at least one option.", "enum_options"))
                : change("createCustomField", { params: { id }, payload: createdOf(payload) })
            }
          />
        )
      }
    >
      <Loaded of={fields}>
        {({ items }) => (
          <Table
            caption="Custom fields"
            rows={items}
            keyOf={({ id }) => id}
            empty="There is no custom field yet."
            columns={[
              { title: "Name", show: ({ name }) => name },
              { title: "Code", goes: "first", show: ({ code }) => <code>{code}</code> },
              { title: "For", goes: "next", show: ({ resource_type }) => sentenceOf(`${resource_type}s`) },
              {
                title: "Type",
                goes: "last",
                show: ({ enum_options, value_type }) => (
                  <>
                    {valueTypes[value_type]}
                    {enum_options.length > 0 && <small>{enum_options.join(", ")}</small>}
                  </>
                )
              },
              { title: "Can be cleared", goes: "first", show: ({ is_required }) => (is_required ? "no" : "yes") },
              {
                title: "Actions",
                quiet: true,
                number: true,
                show: (field) => may("product:write") && <Actions field={field} />
              }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

const Actions = ({ field }: { readonly field: CustomFieldDefinition }) => {
  const params = { id: field.product_id, field_id: field.id }
  return (
    <Menu label={`Actions for ${field.name}`} quiet>
      <Action
        label="Edit"
        send="Save"
        name={`Edit ${field.name}`}
        effect="Values stay. What it is for and its type cannot change. An option that a value has cannot be removed."
        fields={updateFields(field.value_type)}
        edited={{ record: field, reread: () => run("getCustomField", { params }) }}
        run={(payload: Update, read) => change("updateCustomField", { params, payload }, read)}
      />
      <Action
        label="Delete"
        name={`Delete ${field.name}`}
        effect={`${field.name} is deleted. This works only if it has no value.`}
        danger
        run={() => change("deleteCustomField", { params })}
      />
    </Menu>
  )
}
