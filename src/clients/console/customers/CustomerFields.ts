import { email, type FieldsOf, text } from "../parts/Fields.tsx"
import { metadata } from "../parts/Metadata.tsx"
import type { Payload } from "../service/Service.ts"

export type CustomerPayload = Payload<"createCustomer">
export type CustomerUpdate = Payload<"updateCustomer">

/** The fields of a customer, new or not. */
export const customerFields: FieldsOf<CustomerPayload> = {
  name: text("Name", { required: true }),
  code: text("Code", {
    required: true,
    hint: "Lower-case letters, digits, dots and dashes; no other customer has it."
  }),
  email: email("E-mail"),
  metadata: metadata()
}
