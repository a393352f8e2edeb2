/** Scenarios of trials without a license key, and of the license's other devices. */
import * as R from "./Responses.ts"
import { activated, first, offline, open, type Said, second, type Told } from "./StartScenarios.ts"

const trial = R.entitlement("trial", 0, { license_key: R.licenseKey, license_type: "trial" })
const otherTrial = R.entitlement("trial of another license", 1, {
  ...{ license_key: R.otherLicenseKey, license_id: "lic_01J0000000000000000000000B", license_type: "trial" }
})
const trialOf = (name: string, more: Parameters<typeof R.entitlement>[2], signing?: R.Signing) =>
  R.entitlement(name, 0, { license_key: R.licenseKey, ...more }, signing)
const used = R.plain("used trial", '{"error":{"code":"TRIAL_ALREADY_USED","message":"x"},"meta":{}}')

const start = { do: "start_trial", with: { policy_code: "trial" } } as const

const trials: ReadonlyArray<Told> = [
  {
    name: "a trial",
    why: "The response has the license key: it is kept, and from then on the license is used as any other.",
    steps: [
      open,
      { at: 0, ...start, given: [{ response: trial }], says: "run LICENSED", got: "granted run" },
      { at: 20, do: "open", says: "run LICENSED" },
      { at: 24, do: "wake", given: [{ response: second }], says: "run LICENSED" },
      { at: 24, do: "deactivate", given: offline, says: "run LICENSED", got: "missed run" }
    ]
  },
  {
    name: "a trial that the machine has used",
    why: "The unsigned 403 tells the application why; it takes nothing away, and another status says nothing.",
    steps: [
      open,
      {
        ...{ at: 0, ...start, given: [{ response: used, status: 403 }] },
        ...{ says: "ask TRIAL_ALREADY_USED", got: "missed ask" }
      },
      {
        ...{ at: 0, ...start, given: [{ response: used, status: 401 }] },
        ...{ says: "ask NOT_REACHED", got: "missed ask" }
      },
      ...activated.slice(1),
      {
        ...{ at: 1, ...start, given: [{ response: used, status: 403 }] },
        ...{ says: "run LICENSED", got: "missed run" }
      },
      { at: 1, ...start, given: [{ response: otherTrial }], says: "run LICENSED", got: "granted run" }
    ]
  },
  {
    name: "a trial that is not for this machine",
    why: "It is believed by the same rules as an activation.",
    steps: [
      open,
      { at: 0, ...start, given: offline, says: "ask NOT_REACHED", got: "missed ask" },
      ...[
        trialOf("forged trial", {}, R.forgedBy),
        trialOf("trial for another machine", { binding_hash: "0".repeat(64) }),
        trialOf("trial for another product", { product_code: "editor-lite" }),
        trialOf("captured trial", { nonce: "another nonce" })
      ].map((response): Said => {
        const says = "ask NOT_REACHED"
        return { at: 0, ...start, given: [{ response }], says, got: "missed ask" }
      })
    ]
  }
]

const laptop = "dev_01J0000000000000000000000B"
const devices = R.devices("devices", 0)
const deactivated = R.deactivation("deactivation of the laptop", 0, { device_id: laptop, binding_hash: "1".repeat(64) })
const list = { do: "list_devices", with: { license_key: R.licenseKey } } as const
const free = { do: "deactivate_device", with: { device_id: laptop } } as const
const freeWithKey = { do: "deactivate_device", with: { device_id: laptop, license_key: R.licenseKey } } as const

const others: ReadonlyArray<Told> = [
  {
    name: "the license's devices before an activation",
    why: "A lost device's slot is freed with the license key alone.",
    steps: [
      open,
      { at: 0, do: "list_devices", says: "ask NOT_ACTIVATED", got: "missed ask" },
      { at: 0, do: "deactivate_device", with: free.with, says: "ask NOT_ACTIVATED", got: "missed ask" },
      { at: 0, ...list, given: [{ response: devices }], says: "ask NOT_ACTIVATED", got: "granted ask" },
      { at: 0, ...freeWithKey, given: [{ response: deactivated }], says: "ask NOT_ACTIVATED", got: "granted ask" },
      {
        ...{ at: 0, do: "activate", with: { license_key: R.licenseKey }, given: [{ response: first }] },
        ...{ says: "run LICENSED", got: "granted run" }
      }
    ]
  },
  {
    name: "what is said of other devices",
    why: "It changes nothing of this one: not even a refusal that would end its use.",
    steps: [
      ...activated,
      { at: 1, do: "list_devices", given: [{ response: devices }], says: "run LICENSED", got: "granted run" },
      ...(["DEVICE_NOT_FOUND", "DEVICE_STATE_CONFLICT", "LICENSE_REVOKED"] as const).map(
        (code): Said => ({
          ...{ at: 1, ...free, given: [{ response: R.refusal(`laptop: ${code}`, code, 0.9), status: 409 }] },
          ...{ says: "run LICENSED", got: "refused warn" }
        })
      ),
      { at: 1, do: "list_devices", given: offline, says: "run LICENSED", got: "missed run" },
      { at: 24, ...free, given: offline, says: "warn NOT_REACHED", got: "missed warn" }
    ]
  },
  {
    name: "a clock that is set back behind a list of devices",
    why: "Its instant is stored as that of any other response, so a restart does not forget it.",
    steps: [
      ...activated,
      {
        ...{ at: 5, do: "list_devices", given: [{ response: R.devices("devices later", 5) }] },
        ...{ says: "run LICENSED", got: "granted run" }
      },
      { at: 4, do: "open", says: "ask CLOCK_WRONG" }
    ]
  },
  {
    name: "responses about other devices that are not believed",
    why: "A deactivation must name the device that was asked for, and the path has one segment for it.",
    steps: [
      ...activated,
      {
        ...{ at: 1, ...free, given: [{ response: R.deactivation("deactivation of this machine", 1) }] },
        ...{ says: "run LICENSED", got: "missed run" }
      },
      {
        ...{ at: 1, do: "list_devices", given: [{ response: R.devices("forged devices", 1, R.forgedBy) }] },
        ...{ says: "run LICENSED", got: "missed run" }
      },
      { at: 1, do: "list_devices", given: [{ response: deactivated }], says: "run LICENSED", got: "missed run" },
      {
        ...{ at: 1, do: "deactivate_device", with: { device_id: "../trial" }, given: offline },
        ...{ says: "run LICENSED", got: "missed run" }
      }
    ]
  }
]

export const customerScenarios = [...trials, ...others]
