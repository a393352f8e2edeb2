/**
 * A life of an application with the kit at a running service, as words. It imports nothing of a platform, so that the same code runs
 * on Node, on Deno and in a browser, with the platform's own clock, fetch, timers and randomness.
 */
import { LicenseKit, memoryStore, type Outcome, type TrustedKey } from "../../../src/clients/kit/LicenseKit.ts"

export interface ScenarioInput {
  readonly baseUrl: string
  readonly productCode: string
  readonly licenseKey: string
  readonly keys: ReadonlyArray<TrustedKey>
  readonly fingerprint: string
  /** A service that does not allow the page's origin. */
  readonly closedUrl?: string
}

export const scenario = async (input: ScenarioInput): Promise<ReadonlyArray<string>> => {
  const { baseUrl, fingerprint, keys, licenseKey, productCode } = input
  const words: Array<string> = []
  const say = (title: string, { decision, granted, reason }: Outcome<unknown>) =>
    words.push(`${title}: ${granted ? "granted" : "not granted"}, ${decision} ${reason}`)
  const store = memoryStore()
  const options = { baseUrl, productCode, keys, store, binding: { fingerprint } }
  const kit = await LicenseKit.open(options)
  kit.start()
  say("activate", await kit.activate(licenseKey))
  say("validate", await kit.validate())
  say("consume", await kit.consume({ feature_code: "export", event_id: `${fingerprint} 1`, amount: 2 }))
  say("consume too much", await kit.consume({ feature_code: "export", event_id: `${fingerprint} 2`, amount: 1000 }))
  say("offline", await kit.issueOffline())
  const again = await LicenseKit.open({ ...options, baseUrl: "http://127.0.0.1:9" })
  words.push(`restart: ${again.verdict.decision} ${again.verdict.reason}`)
  const unreachable = await again.validate()
  say("unreachable", unreachable)
  // Browsers and Node refuse to fetch from this port.
  words.push(`problem: ${unreachable.problem?.kind.startsWith("network") ? "refused" : unreachable.problem?.kind}`)
  say("deactivate", await kit.deactivate())
  say("checkout", await kit.checkout())
  say("checkin", await kit.checkin())
  const other = await LicenseKit.open({ ...options, store: memoryStore(), productCode: "another" })
  say("another product", await other.activate(licenseKey))
  if (input.closedUrl !== undefined) {
    const closed = await LicenseKit.open({ ...options, store: memoryStore(), baseUrl: input.closedUrl })
    words.push(`closed: ${(await closed.activate(licenseKey)).problem?.kind}`)
  }
  kit.stop()
  return words
}

export const wantedWords: ReadonlyArray<string> = [
  "activate: granted, run LICENSED",
  "validate: granted, run LICENSED",
  "consume: granted, run LICENSED",
  "consume too much: not granted, warn USAGE_LIMIT_EXCEEDED",
  "offline: granted, run LICENSED",
  "restart: run LICENSED",
  "unreachable: not granted, run NOT_REACHED",
  "problem: refused",
  "deactivate: granted, ask NOT_ACTIVATED",
  "checkout: granted, run LICENSED",
  "checkin: granted, ask NOT_ACTIVATED",
  "another product: not granted, ask PRODUCT_MISMATCH"
]
