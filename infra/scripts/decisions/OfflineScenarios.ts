/** Scenarios of offline envelopes. */
import * as R from "./Responses.ts"
import { heartbeat, taken } from "./SeatScenarios.ts"
import { activated, offline, open, type Told, whiteSpace } from "./StartScenarios.ts"

const week = R.envelope("offline file", 0)

const pasted = R.plain("offline file from the clipboard", `${whiteSpace}${R.responses[week]}${whiteSpace}`)

export const offlineScenarios: ReadonlyArray<Told> = [
  {
    name: "an offline envelope before a journey",
    why: "The application runs until offline_expires_at; from next_check_at on the reason is OFFLINE.",
    steps: [
      ...activated,
      {
        ...{ at: 0, do: "issue_offline", given: [{ response: R.issued("issued envelope", week) }] },
        ...{ says: "run LICENSED", got: "missed run" }
      },
      {
        ...{ at: 0, do: "issue_offline", says: "run LICENSED", got: "granted run" },
        given: [
          {
            response: R.issued(
              "issued envelope of this request",
              R.envelope("offline file of this request", 0, { nonce: Buffer.alloc(16).toString("base64") })
            )
          }
        ]
      },
      { at: 24, do: "validate", given: offline, says: "run OFFLINE", got: "missed run" },
      { at: R.at(168, -1), do: "open", says: "run OFFLINE" },
      { at: 168, do: "look", says: "stop NOT_REACHED" },
      {
        ...{ at: 168, do: "issue_offline", says: "stop NOT_REACHED", got: "refused stop" },
        given: [{ response: R.refusal("no offline use", "OFFLINE_NOT_ALLOWED", 168), status: 403 }]
      }
    ]
  },
  {
    name: "an offline envelope from the clipboard",
    why: "White space around it is no part of it.",
    steps: [
      open,
      {
        ...{ at: 0, do: "open_offline", with: { file: pasted, license_key: R.licenseKey } },
        ...{ says: "run OFFLINE", got: "granted run" }
      }
    ]
  },
  {
    name: "an offline envelope for a seat",
    why: "Only an activation has one. The refusal warns and ends nothing: the seat keeps its token and its next heartbeat.",
    steps: [
      ...taken,
      {
        ...{ at: 0.1, do: "issue_offline", says: "run LICENSED", got: "refused warn" },
        given: [{ response: R.refusal("no activation beside the seat", "DEVICE_NOT_ACTIVE", 0.1), status: 403 }]
      },
      { at: R.at(0, 600_000), do: "wake", given: [{ response: heartbeat }], says: "run LICENSED" }
    ]
  },
  {
    name: "an offline envelope beside a seat",
    why: "The machine is activated, too. Its envelope is kept, and the activation counts from then on, as after an activation. The seat stays taken until a checkin.",
    steps: [
      ...taken,
      {
        ...{ at: 0.1, do: "issue_offline", says: "run OFFLINE", got: "granted run" },
        given: [
          {
            response: R.issued(
              "issued envelope beside a seat",
              R.envelope("offline file beside a seat", 0.1, { nonce: Buffer.alloc(16).toString("base64") })
            )
          }
        ]
      },
      { at: 0.5, do: "look", says: "run OFFLINE" },
      { at: 20, do: "open", says: "run OFFLINE" },
      {
        ...{ at: 24, do: "checkin", says: "run OFFLINE", got: "granted run" },
        given: [{ response: R.refusal("lease ended long ago", "LEASE_NOT_ACTIVE", 24), status: 409 }]
      },
      {
        at: 24.1,
        do: "wake",
        given: [{ response: R.entitlement("validation after an envelope", 24.1) }],
        says: "run LICENSED"
      }
    ]
  },
  {
    name: "a machine without a network",
    why: "A file that is brought to the machine is opened with the license key; spaces around it do not matter.",
    steps: [
      open,
      {
        ...{ at: 1, do: "open_offline", with: { file: week, license_key: R.otherLicenseKey } },
        ...{ says: "ask NOT_ACTIVATED", got: "missed ask" }
      },
      {
        ...{ at: 1, do: "open_offline", with: { license_key: R.licenseKey } },
        ...{ says: "ask NOT_ACTIVATED", got: "missed ask" }
      },
      {
        at: 1,
        do: "open_offline",
        with: {
          license_key: R.licenseKey,
          file: R.envelope("offline file of another machine", 0, { binding_hash: "0".repeat(64) })
        },
        ...{ says: "ask NOT_ACTIVATED", got: "missed ask" }
      },
      {
        ...{ at: 1, do: "activate", with: { license_key: R.licenseKey } },
        given: [{ response: R.refusal("no slot is free", "ACTIVATION_LIMIT_REACHED", 0), status: 403 }],
        ...{ says: "ask ACTIVATION_LIMIT_REACHED", got: "refused ask" }
      },
      {
        at: 1,
        do: "open_offline",
        with: { license_key: R.licenseKey, file: R.plain("offline file with spaces", ` \r\n${R.responses[week]}\n`) },
        ...{ says: "run OFFLINE", got: "granted run" }
      },
      { at: R.at(24, -1), do: "wake", says: "run OFFLINE" },
      { at: 24, do: "wake", given: offline, says: "run OFFLINE" },
      { at: 100, do: "open", says: "run OFFLINE" },
      { at: 168, do: "open", says: "stop NOT_REACHED" },
      { at: 168, do: "open_offline", with: { file: week }, says: "stop NOT_REACHED", got: "missed stop" },
      {
        ...{ at: 168, do: "open_offline", with: { file: R.envelope("next offline file", 160) } },
        ...{ says: "run OFFLINE", got: "granted run" }
      }
    ]
  },
  {
    name: "an offline file after a revocation",
    why: "A file from before the refusal does not lift it.",
    steps: [
      ...activated,
      {
        ...{ at: 1, do: "validate", given: [{ response: "revoked", status: 403 }] },
        ...{ says: "stop LICENSE_REVOKED", got: "refused stop" }
      },
      { at: 2, do: "open_offline", with: { file: week }, says: "stop LICENSE_REVOKED", got: "granted stop" },
      { at: 2, do: "open", says: "stop LICENSE_REVOKED" }
    ]
  }
]
