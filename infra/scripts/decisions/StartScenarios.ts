/** Scenarios of the first start, and of times without the service. */
import type { Step } from "./Replay.ts"
import * as R from "./Responses.ts"

/** A step with the verdict that must hold after it, and the outcome's first word and decision where there is one. */
export type Said = Omit<Step, "at"> & { readonly at: number | string; readonly says: string; readonly got?: string }

export interface Told {
  readonly name: string
  readonly why: string
  readonly options?: Parameters<typeof Object.assign>[1]
  readonly random?: number
  readonly steps: ReadonlyArray<Said>
}

export const first = R.entitlement("entitlement", 0)
export const second = R.entitlement("entitlement after a day", 24)
const third = R.entitlement("entitlement after two days", 48)
const captured = R.entitlement("captured entitlement", 24, { nonce: "another nonce" })
const hotel = R.plain("page of a hotel", "<!doctype html><title>Welcome to the hotel</title>")
const gateway = R.plain("502 of a proxy", '{"error":{"code":"LICENSE_REVOKED","message":"Bad gateway."}}')
const limited = R.plain("rate limit", '{"error":{"code":"RATE_LIMITED","message":"Too many requests."},"meta":{}}')
const unknownKey = R.plain("unknown license key", '{"error":{"code":"LICENSE_KEY_INVALID","message":"x"},"meta":{}}')

export const open: Said = { at: 0, do: "open", says: "ask NOT_ACTIVATED" }
export const activated: ReadonlyArray<Said> = [
  open,
  {
    ...{ at: 0, do: "activate", with: { license_key: R.licenseKey }, given: [{ response: first }] },
    ...{ says: "run LICENSED", got: "granted run" }
  }
]
export const offline = [{ fails: "refused" }] as const

/** All that ECMAScript trims. */
export const whiteSpace =
  "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"

const beginnings: ReadonlyArray<Told> = [
  {
    name: "the first start",
    why: "A key in small letters without groups is sent as issued; the response is kept, and the next request is due a day later.",
    steps: [
      open,
      { at: 0, do: "validate", says: "ask NOT_ACTIVATED", got: "missed ask" },
      {
        ...{ at: 0, do: "activate", with: { license_key: ` ${R.licenseKey.toLowerCase().replaceAll("-", "")} ` } },
        ...{ given: [{ response: first }], says: "run LICENSED", got: "granted run" }
      },
      { at: 23.99, do: "wake", says: "run LICENSED" },
      { at: 24, do: "wake", given: [{ response: second }], says: "run LICENSED" }
    ]
  },
  {
    name: "a license key from the clipboard",
    why: "White space around it, as no-break spaces and byte order marks, is no part of any key, also not of a vendor's own.",
    steps: [
      open,
      ...[R.licenseKey, "vendor-key-1"].map(
        (key): Said => ({
          ...{ at: 0, do: "activate", with: { license_key: `${whiteSpace}${key}${whiteSpace}` } },
          ...{ given: [{ response: first }], says: "run LICENSED", got: "granted run" }
        })
      )
    ]
  },
  {
    name: "no network at the first start",
    why: "Nothing is believed yet: the application asks, and a later attempt succeeds.",
    steps: [
      open,
      {
        ...{ at: 0, do: "activate", with: { license_key: R.licenseKey }, given: offline },
        ...{ says: "ask NOT_REACHED", got: "missed ask" }
      },
      {
        ...{ at: 0.05, do: "activate", with: { license_key: R.licenseKey }, given: [{ response: first }] },
        ...{ says: "run LICENSED", got: "granted run" }
      }
    ]
  },
  {
    name: "a wrong license key",
    why: "The unsigned 401 asks for another key while nothing is held, and only warns while a stored response lasts. A key that no header can have is not sent.",
    steps: [
      open,
      {
        ...{ at: 0, do: "activate", with: { license_key: "LK-TYPO" } },
        ...{ given: [{ response: unknownKey, status: 401 }], says: "ask LICENSE_KEY_INVALID", got: "missed ask" }
      },
      // With the dashes of a word processor, which no header has.
      {
        ...{ at: 0, do: "activate", with: { license_key: R.licenseKey.replaceAll("-", "\u2013") } },
        ...{ says: "ask LICENSE_KEY_INVALID", got: "missed ask" }
      },
      ...activated.slice(1),
      {
        ...{ at: 24, do: "validate", given: [{ response: unknownKey, status: 401 }] },
        ...{ says: "warn LICENSE_KEY_INVALID", got: "missed warn" }
      },
      { at: 96, do: "look", says: "ask LICENSE_KEY_INVALID" }
    ]
  },
  {
    name: "an activation that is refused",
    why: "All slots are taken: ask, and keep no license.",
    steps: [
      open,
      {
        ...{ at: 1, do: "activate", with: { license_key: R.licenseKey } },
        given: [
          { response: R.refusal("limit reached", "ACTIVATION_LIMIT_REACHED", 1, { max: 1, used: 1 }), status: 409 }
        ],
        ...{ says: "ask ACTIVATION_LIMIT_REACHED", got: "refused ask" }
      }
    ]
  },
  {
    name: "another license's key",
    why: "Until it is granted, the license before stays.",
    steps: [
      ...activated,
      {
        ...{ at: 0.05, do: "activate", with: { license_key: R.otherLicenseKey }, given: offline },
        ...{ says: "run LICENSED", got: "missed run" }
      },
      {
        ...{
          at: 0.2,
          do: "activate",
          with: { license_key: R.otherLicenseKey },
          says: "run LICENSED",
          got: "granted run"
        },
        given: [
          {
            response: R.entitlement("entitlement of another license", 0.2, {
              license_id: "lic_01J0000000000000000000000B"
            })
          }
        ]
      }
    ]
  }
]

const offlineTimes: ReadonlyArray<Told> = [
  {
    name: "a start without a network",
    why: "Until next_check_at the application runs; then it warns until the tolerance is used up; then it stops. Retries come later and later.",
    steps: [
      ...activated,
      { at: 20, do: "open", says: "run LICENSED" },
      { at: 24, do: "wake", given: offline, says: "warn NOT_REACHED" },
      { at: R.at(24, 9_999), do: "wake", says: "warn NOT_REACHED" },
      { at: R.at(24, 10_000), do: "wake", given: [{ fails: "timeout" }], says: "warn NOT_REACHED" },
      { at: R.at(24, 30_000), do: "wake", given: offline, says: "warn NOT_REACHED" },
      { at: R.at(96, -1), do: "validate", given: offline, says: "warn NOT_REACHED", got: "missed warn" },
      { at: 96, do: "look", says: "stop NOT_REACHED" },
      { at: 96, do: "validate", given: offline, says: "stop NOT_REACHED", got: "missed stop" },
      {
        ...{ at: 96, do: "wake", says: "stop NOT_REACHED" }
      },
      {
        ...{ at: 97, do: "validate", says: "run LICENSED", got: "granted run" },
        given: [{ response: R.entitlement("entitlement after four days", 97) }]
      }
    ]
  },
  {
    name: "no tolerance",
    why: "The tolerance is the application's choice.",
    options: { tolerance_hours: 0 },
    steps: [
      ...activated,
      { at: R.at(24, -1), do: "look", says: "run LICENSED" },
      { at: 24, do: "look", says: "stop NOT_REACHED" }
    ]
  },
  {
    name: "a tolerance beyond the year 9999",
    why: "No date type of a language has to hold a later instant: the end is the last of that year.",
    steps: [
      open,
      {
        ...{ at: 0, do: "activate", with: { license_key: R.licenseKey }, says: "run LICENSED", got: "granted run" },
        given: [
          {
            response: R.entitlement("perpetual entitlement", 0, {
              ...{ expires_at: undefined, license_type: "perpetual", next_check_at: "9999-12-31T00:00:00.000Z" }
            })
          }
        ]
      },
      { at: 1, do: "look", says: "run LICENSED" }
    ]
  },
  {
    name: "retries of many machines",
    why: "The random byte shortens a wait by up to a fifth.",
    random: 255,
    steps: [
      ...activated,
      { at: 24, do: "validate", given: offline, says: "warn NOT_REACHED", got: "missed warn" },
      { at: 24, do: "validate", given: offline, says: "warn NOT_REACHED", got: "missed warn" }
    ]
  },
  {
    name: "retries for hours",
    why: "A wait is never longer than an hour, and begins anew after a response that is believed.",
    steps: [
      ...activated,
      ...Array.from({ length: 11 }, (_, index) => ({
        ...{ at: 25 + index, do: "validate", given: offline, says: "warn NOT_REACHED", got: "missed warn" }
      })),
      { at: 48, do: "validate", given: [{ response: third }], says: "run LICENSED", got: "granted run" },
      { at: 73, do: "validate", given: offline, says: "warn NOT_REACHED", got: "missed warn" }
    ]
  },
  {
    name: "a license that starts later",
    why: "The service says in how many seconds. The application asks again after an hour at most: the vendor may change the start.",
    steps: [
      ...activated,
      {
        ...{ at: 1, do: "validate", says: "ask LICENSE_NOT_STARTED", got: "refused ask" },
        given: [
          {
            response: R.refusal("not started", "LICENSE_NOT_STARTED", 1, {
              ...{ starts_at: R.at(31 * 24 + 1), retry_after_seconds: 31 * 86_400 }
            }),
            status: 403
          }
        ]
      },
      { at: R.at(2, -1), do: "wake", says: "ask LICENSE_NOT_STARTED" },
      {
        at: 2,
        do: "wake",
        given: [{ response: R.entitlement("started", 2, { entitlement_version: 5 }) }],
        says: "run LICENSED"
      }
    ]
  },
  {
    name: "proxies and hotels",
    why: "What is not signed ends nothing, whatever it says; Retry-After is kept.",
    steps: [
      ...activated,
      { at: 1, do: "validate", given: [{ response: hotel }], says: "run LICENSED", got: "missed run" },
      { at: 1, do: "validate", given: [{ response: gateway, status: 502 }], says: "run LICENSED", got: "missed run" },
      { at: 1, do: "validate", given: [{ response: gateway, status: 403 }], says: "run LICENSED", got: "missed run" },
      { at: 1, do: "validate", given: [{ response: hotel, status: 302 }], says: "run LICENSED", got: "missed run" },
      {
        ...{ at: 1, do: "validate", given: [{ response: limited, status: 429, retry_after: 600 }] },
        ...{ says: "run LICENSED", got: "missed run" }
      },
      { at: 25, do: "validate", given: [{ response: hotel }], says: "warn NOT_REACHED", got: "missed warn" }
    ]
  },
  {
    name: "responses that are not for this request",
    why: "Each breaks one rule and counts as a service that was not reached.",
    steps: [
      ...activated,
      ...(
        [
          [captured, "nonce"],
          [R.entitlement("forged entitlement", 24, {}, R.forgedBy), "signature"],
          [R.entitlement("entitlement of an unknown key", 24, {}, R.unknownKey), "kid"],
          [R.entitlement("entitlement for another product", 24, { product_code: "editor-lite" }), "product"],
          [R.entitlement("entitlement for another machine", 24, { binding_hash: "0".repeat(64) }), "binding"],
          [R.entitlement("entitlement of a stranger's license", 24, { license_id: "lic_2" }), "license"],
          [R.deactivation("deactivation", 24), "kind"],
          [R.entitlement("entitlement without issued_at", 24, { issued_at: "today" }), "times"]
        ] as const
      ).map(([response, rule]): Said => {
        const says = rule === "times" ? "warn CLOCK_WRONG" : "warn NOT_REACHED"
        return { at: 24, do: "validate", given: [{ response }], says, got: "missed warn" }
      })
    ]
  }
]

export const startScenarios = [...beginnings, ...offlineTimes]
