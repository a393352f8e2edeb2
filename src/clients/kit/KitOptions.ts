/** What the application gives the kit. */
import type { TrustedKey } from "./judging/Judge.ts"
import type { Verdict } from "./judging/Verdict.ts"
import type { Platform, Store } from "./sending/Platform.ts"
import type { Binding } from "./texts/Payloads.ts"

export interface KitOptions {
  /** For example `https://licenses.example.com`. */
  readonly baseUrl: string
  /** The code of the application's product, a constant of the application. */
  readonly productCode: string
  /** The public keys of the service, as of GET /api/v1/system/public-keys: build them into the application. */
  readonly keys: ReadonlyArray<TrustedKey>
  readonly binding: Binding
  readonly store: Store
  readonly appVersion?: string
  /** How long the application continues after next_check_at while the service is not reached; 72 hours unless given. */
  readonly toleranceHours?: number
  /** How long a request may take; 15 seconds unless given, at most 2,147,483,647 (24 days). */
  readonly timeoutMillis?: number
  /** Also trusts keys that the service publishes later, over TLS: after a rotation of the signing key. */
  readonly trustPublishedKeys?: boolean
  /** Called when the decision or its reason changes. */
  readonly onVerdict?: (verdict: Verdict) => void
  /** Replaces clock, fetch, timers or randomness: for tests. */
  readonly platform?: Partial<Platform>
}
