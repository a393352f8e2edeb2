/** Entity tags of responses (RFC 9110, 8.8.3). */

/** Whether the value of If-None-Match names this tag, or all tags. The comparison ignores whether a tag is weak (13.1.2). */
export const matchesEntityTag = (header: string | undefined, tag: string): boolean =>
  header?.split(",").some((part) => part.trim() === "*" || part.trim().replace(/^W\//, "") === tag) ?? false
