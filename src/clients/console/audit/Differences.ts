/** What an event changed: old and new values by name. */
import type { Schema } from "effect"
import type { NameOf } from "../parts/FeatureNames.ts"
import { wordsOf } from "../parts/Format.ts"

export interface Difference {
  readonly name: string
  readonly before: Schema.Json
  readonly after: Schema.Json
}

export type Members = Readonly<Record<string, Schema.Json>>

export const isMembers = (value: Schema.Json | undefined): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A member that has an old and a new value. */
export const isChange = (value: Schema.Json): value is { readonly old: Schema.Json; readonly new: Schema.Json } =>
  isMembers(value) && "old" in value && "new" in value

const ofFeature = "features."

/** The code of the feature that a member is about. */
export const featureIn = (name: string): string | undefined =>
  name.startsWith(ofFeature) ? name.slice(ofFeature.length) : undefined

/** What changed, in words: a member of the record, or one of its features by name. */
export const memberOf = (name: string, nameOf: NameOf): string => {
  const code = featureIn(name)
  return code === undefined ? wordsOf(name.replace(/_id$/, "")) : nameOf(code)
}

/** Events have digests of fingerprints and host names. Readers see the device's name instead. */
const isDigest = (value: Schema.Json) => typeof value === "string" && /^sha256:[\da-f]+$/.test(value)

/** What was recorded, by name, without digests, and without changes from empty to empty, such as the metadata of a new record. */
export const recordedIn = ({ changes, ...others }: Members): ReadonlyArray<readonly [string, Schema.Json]> =>
  Object.entries({ ...others, ...(isMembers(changes) ? changes : {}) }).filter(
    ([, value]) => !isDigest(value) && !(isChange(value) && isEmpty(value.old) && isEmpty(value.new))
  )

export const differencesOf = (recorded: Members): ReadonlyArray<Difference> =>
  recordedIn(recorded).flatMap(([name, value]) =>
    isChange(value) ? [{ name, before: value.old, after: value.new }] : []
  )

export const isEmpty = (value: Schema.Json) => value === null || (isMembers(value) && Object.keys(value).length === 0)
