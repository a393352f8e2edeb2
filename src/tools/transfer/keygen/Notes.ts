/** What an account has and this service does not, counted by message. */
import { sha256 } from "../../../platform/signing/Digest.ts"

export const makeNotes = () => {
  const notes = new Map<string, { count: number; readonly example: string }>()
  return {
    add: (message: string, example: string): void => {
      const note = notes.get(message)
      if (note === undefined) notes.set(message, { count: 1, example })
      else note.count++
    },
    list: () => [...notes].map(([message, { count, example }]) => ({ message, count, example }))
  }
}
export type Notes = ReturnType<typeof makeNotes>

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const idLength = 26

/**
 * The id of what is made of one or two of Keygen's resources: the same in each import, so that it can be repeated. Keygen's ids are
 * random and no secrets.
 */
export const idOf = (prefix: string, ...sources: ReadonlyArray<string>): string => {
  const bytes = sha256(sources.join("/"))
  let id = ""
  for (let index = 0; index < idLength; index++) id += alphabet[bytes[index]! & 31]
  return `${prefix}_${id}`
}
