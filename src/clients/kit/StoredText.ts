/** The text that the application's store keeps. Users can edit it: what is signed is verified again at each start. */
import type { TrustedKey } from "./judging/Judge.ts"
import type { Holding } from "./judging/Verdict.ts"
import { instantOf, type JsonObject, objectOf } from "./texts/ResponseText.ts"

/** The believed responses that are kept, each as the text that was received. */
export const slots = ["entitlement", "offline", "checkout", "lease", "refusal"] as const
export type Slot = (typeof slots)[number]

export interface Stored {
  readonly license_key?: string | undefined
  readonly license_id?: string | undefined
  readonly product_id?: string | undefined
  readonly holding?: Holding | undefined
  /** The highest issued_at of all believed responses. */
  readonly highest_issued_at?: string | undefined
  /** When the service is to be asked again. */
  readonly due_at?: string | undefined
  /** Keys that the service has published since the application was built. */
  readonly published_keys?: ReadonlyArray<TrustedKey> | undefined
  readonly responses: { readonly [Name in Slot]?: string }
}

const textMax = 16_777_216
const publishedKeysMax = 64

/** The valid parts of a stored text. Never throws. */
export const storedOf = (text: string | null | undefined): Stored => {
  const stored = objectIn(text)
  const responses = isObject(stored["responses"]) ? stored["responses"] : {}
  const string = (from: JsonObject, name: string) =>
    Object.hasOwn(from, name) && typeof from[name] === "string" ? from[name] : undefined
  const holding = string(stored, "holding")
  const keys = stored["published_keys"]
  return {
    license_key: string(stored, "license_key"),
    license_id: string(stored, "license_id"),
    product_id: string(stored, "product_id"),
    holding: holding === "device" || holding === "seat" ? holding : undefined,
    highest_issued_at: instant(string(stored, "highest_issued_at")),
    due_at: instant(string(stored, "due_at")),
    published_keys: keysIn(keys),
    responses: Object.fromEntries(
      slots.flatMap((slot) => {
        const response = string(responses, slot)
        return response === undefined ? [] : [[slot, response]]
      })
    )
  }
}

/** The keys in a list of GET /api/v1/system/public-keys. */
export const keysIn = (list: unknown): ReadonlyArray<TrustedKey> =>
  Array.isArray(list)
    ? list
        .filter(
          (key): key is TrustedKey => isObject(key) && typeof key["kid"] === "string" && isText(key, "public_key")
        )
        .slice(0, publishedKeysMax)
        .map(({ kid, public_key }) => ({ kid, public_key }))
    : []

const isText = (object: JsonObject, name: string): boolean => typeof object[name] === "string"

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const instant = (text: string | undefined): string | undefined => (Number.isNaN(instantOf(text)) ? undefined : text)

const objectIn = (text: unknown): JsonObject => {
  if (typeof text !== "string" || text.length > textMax) return {}
  try {
    return objectOf(text)
  } catch {
    return {}
  }
}
