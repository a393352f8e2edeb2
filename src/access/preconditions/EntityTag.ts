/** Entity tags of responses (RFC 9110, 8.8.3). */

/** Compares a list of tags, or `*` for all tags, with a tag. Weak and strong tags are equal (13.1.2). */
export const matchesEntityTag = (header: string | undefined, tag: string): boolean =>
  header?.split(",").some((part) => part.trim() === "*" || part.trim().replace(/^W\//, "") === tag) ?? false
