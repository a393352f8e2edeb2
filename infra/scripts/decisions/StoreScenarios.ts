/** Scenarios of clocks, stores and keys. */

import * as R from "./Responses.ts"
import { activated, offline, open, type Told } from "./StartScenarios.ts"

const clocks: ReadonlyArray<Told> = [
  {
    name: "a clock that is set back",
    why: "More than five minutes behind what was seen asks to set the clock, also after a restart.",
    steps: [
      ...activated,
      { at: R.at(0, -300_000), do: "look", says: "run LICENSED" },
      { at: R.at(0, -300_001), do: "look", says: "ask CLOCK_WRONG" },
      { at: R.at(0, -300_001), do: "open", says: "ask CLOCK_WRONG" },
      {
        ...{ at: R.at(0, -300_001), do: "validate", given: [{ response: "entitlement" }] },
        ...{ says: "ask CLOCK_WRONG", got: "missed ask" }
      },
      { at: 0.05, do: "validate", given: [{ response: "entitlement" }], says: "run LICENSED", got: "granted run" }
    ]
  },
  {
    name: "a clock that is set back behind a refusal",
    why: "The instant of a refusal is stored as that of any other response, also if it says that nothing is left to give back.",
    steps: [
      ...activated,
      {
        ...{ at: 5, do: "deactivate", says: "ask NOT_ACTIVATED", got: "granted ask" },
        given: [{ response: R.refusal("device not found later", "DEVICE_NOT_FOUND", 5), status: 404 }]
      },
      { at: 4, do: "open", says: "ask CLOCK_WRONG" }
    ]
  },
  {
    name: "a clock that is set back behind a lost activation",
    why: "The refusal is believed although the service is not reached for the new activation.",
    steps: [
      ...activated,
      {
        ...{ at: 5, do: "validate", says: "run LICENSED", got: "missed run" },
        given: [{ response: "device not found later", status: 404 }, ...offline]
      },
      { at: 4, do: "open", says: "ask CLOCK_WRONG" }
    ]
  },
  {
    name: "a clock that is ahead",
    why: "A response that is old when it arrives warns of the clock; a term that has ended only by this clock does not expire.",
    steps: [
      ...activated,
      {
        ...{ at: 24.2, do: "validate", says: "warn CLOCK_WRONG", got: "granted warn" },
        given: [{ response: "entitlement after a day" }]
      },
      { at: 366 * 24, do: "look", says: "ask CLOCK_WRONG" }
    ]
  },
  {
    name: "a clock that was ahead and is set right",
    why: "What was planned by the wrong clock is due at once: otherwise nothing would be sent until the wrong time comes.",
    steps: [
      open,
      {
        ...{ at: 366 * 24, do: "activate", with: { license_key: R.licenseKey } },
        given: [{ response: R.entitlement("entitlement without an end", 0, { expires_at: R.at(9_999 * 24) }) }],
        ...{ says: "ask CLOCK_WRONG", got: "granted ask" }
      },
      { at: 1, do: "wake", given: [{ response: "entitlement after a use" }], says: "run LICENSED" },
      { at: 2, do: "wake", says: "run LICENSED" }
    ]
  },
  {
    name: "a clock that is set right while the application is closed",
    why: "A stored plan that is later than the service's own is not believed.",
    steps: [
      ...activated,
      {
        ...{ at: 366 * 24, do: "validate", given: [{ response: "regained again" }] },
        ...{ says: "ask CLOCK_WRONG", got: "granted ask" }
      },
      { at: 3, do: "open", says: "run LICENSED" },
      { at: 3, do: "wake", given: [{ response: R.entitlement("entitlement after a start", 3) }], says: "run LICENSED" },
      { at: 4, do: "open", says: "run LICENSED" },
      { at: 4, do: "wake", says: "run LICENSED" }
    ]
  }
]

const forgedStore = JSON.stringify({
  ...{ license_key: R.licenseKey, holding: "device", highest_issued_at: "soon", due_at: 12 },
  responses: { entitlement: R.responses["forged entitlement"], offline: 7, lease: "{}" }
})

const stores: ReadonlyArray<Told> = [
  {
    name: "a store that is corrupt",
    why: "What is no JSON is nothing; what is not signed by the service is not believed; the rest is ignored.",
    steps: [
      { ...open, store: '{"license_key":"LK-' },
      { ...open, store: "[]" },
      { ...open, store: '{"holding":"seat","responses":[]}' },
      { at: 0, do: "wake", says: "ask NOT_ACTIVATED" },
      { at: 0, do: "open", store: forgedStore, says: "stop NOT_REACHED" },
      { at: 0, do: "wake", given: [{ response: "entitlement" }], says: "run LICENSED" }
    ]
  },
  {
    name: "a store of another machine",
    why: "The binding of the stored response is not this machine's: it is not believed, and the service is asked at once.",
    steps: [
      ...activated,
      { at: 1, do: "open", options: { binding: { fingerprint: "another machine" } }, says: "stop NOT_REACHED" },
      {
        ...{ at: 25, do: "wake", says: "ask ACTIVATION_LIMIT_REACHED" },
        given: [
          { response: "device not found", status: 404 },
          { response: "limit reached", status: 409 }
        ]
      }
    ]
  },
  {
    name: "a store of another product",
    why: "A key of a cheap product opens no other product.",
    steps: [
      ...activated,
      { at: 1, do: "open", options: { product_code: "suite" }, says: "stop NOT_REACHED" },
      {
        ...{ at: 25, do: "validate", says: "ask PRODUCT_MISMATCH", got: "refused ask" },
        given: [{ response: R.refusal("product mismatch", "PRODUCT_MISMATCH", 25), status: 403 }]
      }
    ]
  },
  {
    name: "members that are not known",
    why: "Later versions of the service sign further members: they are ignored, and kept.",
    steps: [
      open,
      {
        ...{ at: 0, do: "activate", with: { license_key: R.licenseKey }, says: "run LICENSED", got: "granted run" },
        given: [{ response: R.entitlement("entitlement with more", 0, { later: { deep: [1, "ž", null, 1.5, -3] } }) }]
      },
      { at: 1, do: "open", says: "run LICENSED" }
    ]
  }
]

const keyScenarios: ReadonlyArray<Told> = [
  {
    name: "a new signing key that is not built in",
    why: "Unless published keys are trusted, the response is not believed; an application with the new key believes both. If nothing stored is believed, the service is asked at once.",
    steps: [
      ...activated,
      {
        ...{ at: 24, do: "validate", says: "warn NOT_REACHED", got: "missed warn" },
        given: [{ response: R.entitlement("entitlement of the next key", 24, {}, R.nextKey) }]
      },
      { at: 24, do: "open", options: { built_in: R.keys.map(({ kid }) => kid) }, says: "warn NOT_REACHED" },
      {
        ...{ at: 24, do: "validate", given: [{ response: "entitlement of the next key" }] },
        ...{ says: "run LICENSED", got: "granted run" }
      },
      { at: 25, do: "open", options: { built_in: [R.keys[0]!.kid] }, says: "stop NOT_REACHED" },
      { at: 47.5, do: "open", says: "stop NOT_REACHED" },
      {
        ...{ at: 47.5, do: "wake", says: "run LICENSED" },
        given: [{ response: R.entitlement("entitlement of the key before", 47.5) }]
      }
    ]
  },
  {
    name: "a new signing key that the service publishes",
    why: "The published keys are fetched once over TLS, kept, and used after a restart.",
    options: { trust_published_keys: true },
    steps: [
      ...activated,
      {
        ...{ at: 24, do: "validate", says: "run LICENSED", got: "granted run" },
        given: [{ response: "entitlement of the next key" }, { response: R.publicKeys("public keys") }]
      },
      { at: 25, do: "open", says: "run LICENSED" },
      {
        ...{ at: 25, do: "validate", says: "run LICENSED", got: "missed run" },
        given: [{ response: "entitlement of an unknown key" }, { response: "public keys" }]
      },
      {
        ...{ at: 25, do: "validate", says: "run LICENSED", got: "missed run" },
        given: [{ response: "entitlement of an unknown key" }]
      }
    ]
  }
]

export const storeScenarios = [...clocks, ...stores, ...keyScenarios]
