/** The fields of bodies that name records. */
import { type Json, resolved } from "./Surface.ts"

/** The members of a body's schema that end like an id, at any depth. */
export const idFieldsOf = (schema: Json): ReadonlyArray<string> => {
  const {
    anyOf = [],
    items,
    properties = {}
  } = resolved(schema) as {
    readonly anyOf?: ReadonlyArray<Json>
    readonly items?: Json
    readonly properties?: { readonly [name: string]: Json }
  }
  const inner = [...anyOf, ...(items === undefined ? [] : [items]), ...Object.values(properties)]
  return [...Object.keys(properties).filter((name) => name.endsWith("_id")), ...inner.flatMap(idFieldsOf)]
}

/** The body with an id in the field of this name, wherever its schema has it, and the field's path. */
export const withId = (
  schema: Json,
  body: unknown,
  field: string,
  id: string
): { readonly body: unknown; readonly path: string } | undefined => {
  const { items, properties = {} } = resolved(schema) as {
    readonly items?: Json
    readonly properties?: { readonly [name: string]: Json }
  }
  if (items !== undefined) {
    const inner = withId(items, (body as ReadonlyArray<unknown> | undefined)?.[0], field, id)
    return inner && { body: [inner.body], path: `[0].${inner.path}` }
  }
  if (field in properties) return { body: { ...(body as object), [field]: id }, path: field }
  for (const [name, member] of Object.entries(properties)) {
    const inner = withId(member, (body as { readonly [name: string]: unknown } | undefined)?.[name], field, id)
    if (inner !== undefined)
      return { body: { ...(body as object), [name]: inner.body }, path: `${name}.${inner.path}`.replace(".[", "[") }
  }
  return undefined
}

/** The body such that it may have the field: a reset takes one of two fields, and a bulk job a policy to move licenses to. */
export const acceptedWith = (operation: string, field: string, body: { readonly feature_code?: string }): object => {
  const { feature_code, ...others } = body
  if (operation === "resetLicenseUsage" && field === "feature_id") return others
  if (operation === "previewLicenseChange" && field === "customer_id") return { action: "transfer", parameters: {} }
  return operation === "createBulkJob" && field === "policy_id" ? { ...body, action: "policy" } : body
}
