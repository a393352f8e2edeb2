/** Why no believed response came, for a log or a support case. */

export interface Problem {
  /**
   * dns: the host name is unknown. refused: nothing listens there. tls: the certificate is not trusted. timeout: no response in
   * time. response: not the service's, but a proxy's or a login page. network: anything else; in a page of another origin perhaps
   * also that the service does not allow its origin.
   */
  readonly kind: "dns" | "refused" | "tls" | "timeout" | "response" | "network" | "network or cors"
  /** The status of the response. */
  readonly status?: number
  /** The platform's own word, as ECONNREFUSED. */
  readonly cause?: string
}

// Node and Bun give codes, Deno sentences.
const kinds: ReadonlyArray<readonly [kind: Problem["kind"], words: RegExp]> = [
  ["dns", /ENOTFOUND|EAI_|dns error/i],
  ["refused", /ECONNREFUSED|connection ?refused/i],
  ["timeout", /TIMEOUT|ETIMEDOUT|timed out/i],
  ["tls", /CERT|TLS|SSL|VERIFY|SELF_SIGNED/i]
]

const causeLengthMax = 200

/** The problem of a fetch that was rejected. Browsers hide the cause, so that a page cannot tell an origin that is not allowed. */
export const problemOf = (error: unknown, url: string): Problem => {
  const { cause, code, message } = error as { readonly [name in "cause" | "code" | "message"]?: unknown }
  const inner = cause as { readonly code?: unknown; readonly message?: unknown } | undefined
  const text = String(inner?.code ?? code ?? inner?.message ?? message).slice(0, causeLengthMax)
  const kind = kinds.find(([, words]) => words.test(text))?.[0]
  if (kind !== undefined) return { kind, cause: text }
  const { location } = globalThis as { readonly location?: { readonly origin: string } }
  return location === undefined || new URL(url).origin === location.origin
    ? { kind: "network", cause: text }
    : { kind: "network or cors", cause: `${text} (LICENSING_CORS_ORIGINS must have ${location.origin})` }
}
