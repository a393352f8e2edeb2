/** What the kit needs of its surroundings, and the defaults. Only this file reads time, timers and randomness. */

/** The part of fetch that the kit uses. */
export interface KitRequest {
  readonly method: "GET" | "POST"
  readonly headers: { readonly [name: string]: string }
  readonly body?: string
  readonly redirect: "manual"
  readonly signal: AbortSignal
}

export interface KitResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: {
    getReader(): {
      read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
      cancel(): Promise<void>
    }
  } | null
}

/** Keeps one text for the application: a file, localStorage, the keychain. It holds the license key. */
export interface Store {
  readonly read: () => Promise<string | null | undefined> | string | null | undefined
  readonly write: (text: string) => Promise<void> | void
}

export interface Platform {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly fetch: (url: string, request: KitRequest) => Promise<KitResponse>
  /** Calls back once, later; returns how to cancel it. */
  readonly after: (millis: number, callback: () => void) => () => void
  /** So many random bytes. */
  readonly randomBytes: (count: number) => Uint8Array
}

export const platform: Platform = {
  now: () => Date.now(),
  fetch: (url, request) => fetch(url, request),
  after: (millis, callback) => {
    const timer: unknown = setTimeout(callback, millis)
    // On Node a timer that waits for the next heartbeat must not keep the process alive.
    const { unref } = timer as { readonly unref?: () => void }
    if (typeof unref === "function") unref.call(timer)
    return () => clearTimeout(timer as Parameters<typeof clearTimeout>[0])
  },
  randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count))
}

/** A store that forgets at the end of the process: for tests, and for machines that activate at each start. */
export const memoryStore = (text?: string): Store => {
  let kept = text
  return {
    read: () => kept,
    write: (next) => {
      kept = next
    }
  }
}
