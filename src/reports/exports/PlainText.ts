/**
 * Texts that stand in CSV as they are and in JSON between quotes: nothing in them needs an escape, and nothing at their beginning
 * could be taken for a formula. From such a line of a file the figures can be read back as they were.
 */

/** Characters that are the same in both, one entry for each byte. */
const same = new Uint8Array(256)
for (let code = 0x20; code < 0x7f; code++) same[code] = 1
for (const char of '",\\') same[char.charCodeAt(0)] = 0

// An apostrophe is what a formula is defused with.
const first = Uint8Array.from(same)
for (const char of " =+-@'") first[char.charCodeAt(0)] = 0

/** Whether the text is one of these; an empty one is not, for a missing one looks the same. */
export const isPlain = (bytes: Uint8Array, start: number, size: number): boolean => {
  if (size === 0 || first[bytes[start]!] === 0) return false
  for (let index = start + 1; index < start + size; index++) if (same[bytes[index]!] === 0) return false
  return true
}
