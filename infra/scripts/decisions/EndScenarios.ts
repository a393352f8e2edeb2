/** Scenarios of licenses and activations that end: what a refusal ends, and what not. */
import * as R from "./Responses.ts"
import { activated, first, offline, open, type Said, second, type Told } from "./StartScenarios.ts"

const revoked = R.refusal("revoked", "LICENSE_REVOKED", 1, { status: "revoked" })
const suspended = R.refusal("suspended", "LICENSE_SUSPENDED", 1, { status: "suspended" })
const forgedRefusal = R.refusal("forged revoked", "LICENSE_REVOKED", 1, { status: "revoked" }, R.foreign)
const lost = R.refusal("device not found", "DEVICE_NOT_FOUND", 1)

export const endScenarios: ReadonlyArray<Told> = [
  {
    name: "the grace period and the end",
    why: "expires_at and access_ends_at are of the response: without a network too the grace period warns and the end asks.",
    steps: [
      open,
      {
        ...{ at: 0, do: "activate", with: { license_key: R.licenseKey }, says: "run LICENSED", got: "granted run" },
        given: [
          {
            response: R.entitlement("entitlement that ends soon", 0, { expires_at: R.at(30), access_ends_at: R.at(40) })
          }
        ]
      },
      { at: R.at(30, -1), do: "look", says: "warn NOT_REACHED" },
      { at: 30, do: "look", says: "warn GRACE_PERIOD" },
      {
        ...{ at: 31, do: "validate", says: "warn GRACE_PERIOD", got: "granted warn" },
        given: [
          {
            response: R.entitlement("entitlement in the grace period", 31, {
              ...{ status: "grace_period", expires_at: R.at(30), access_ends_at: R.at(40), next_check_at: R.at(40) }
            })
          }
        ]
      },
      { at: 40, do: "open", says: "ask LICENSE_EXPIRED" },
      {
        ...{ at: 40, do: "validate", says: "ask LICENSE_EXPIRED", got: "refused ask" },
        given: [
          {
            response: R.refusal("expired", "LICENSE_EXPIRED", 40, { status: "expired", expires_at: R.at(30) }),
            status: 403
          }
        ]
      },
      {
        ...{ at: 41, do: "validate", says: "run LICENSED", got: "granted run" },
        given: [{ response: R.entitlement("entitlement after the renewal", 41) }]
      }
    ]
  },
  {
    name: "revoked",
    why: "A signed refusal stops, also after a restart and if it is removed from the store; no request is due after it.",
    steps: [
      ...activated,
      {
        at: 1,
        do: "validate",
        given: [{ response: revoked, status: 403 }],
        says: "stop LICENSE_REVOKED",
        got: "refused stop"
      },
      { at: 100, do: "wake", says: "stop LICENSE_REVOKED" },
      { at: 100, do: "open", says: "stop LICENSE_REVOKED" },
      { at: 100, do: "open", forget: ["refusal"], says: "stop NOT_REACHED" },
      { at: 100, do: "open", put: { entitlement: first }, says: "stop NOT_REACHED" },
      { at: 2, do: "open", put: { entitlement: first }, says: "run LICENSED" }
    ]
  },
  {
    name: "revoked by a forger",
    why: "A refusal that another key signed, or that was captured, ends nothing.",
    steps: [
      ...activated,
      {
        at: 1,
        do: "validate",
        given: [{ response: forgedRefusal, status: 403 }],
        says: "run LICENSED",
        got: "missed run"
      },
      {
        ...{ at: 1, do: "validate", says: "run LICENSED", got: "missed run" },
        given: [
          { response: R.refusal("captured revoked", "LICENSE_REVOKED", 1, { nonce: "another nonce" }), status: 403 }
        ]
      },
      {
        ...{ at: 1, do: "validate", says: "run LICENSED", got: "missed run" },
        given: [
          {
            response: R.refusal("revoked of another license", "LICENSE_REVOKED", 1, { license_id: "lic_2" }),
            status: 403
          }
        ]
      },
      { at: 1, do: "open", put: { refusal: forgedRefusal }, says: "run LICENSED" }
    ]
  },
  {
    name: "suspended and reinstated",
    why: "The application asks again after a suspension, with growing waits.",
    steps: [
      ...activated,
      {
        at: 1,
        do: "validate",
        given: [{ response: suspended, status: 403 }],
        says: "stop LICENSE_SUSPENDED",
        got: "refused stop"
      },
      { at: 1.1, do: "wake", given: offline, says: "stop LICENSE_SUSPENDED" },
      { at: 24, do: "wake", given: [{ response: second }], says: "run LICENSED" }
    ]
  },
  {
    name: "a use and a deactivation of a suspended license",
    why: "What refuses them refuses everything: the application does not wait for the next validation to ask again.",
    steps: [
      ...activated,
      {
        ...{ at: 1, do: "consume", with: { feature_code: "export", event_id: "use-1" } },
        ...{ given: [{ response: suspended, status: 403 }], says: "stop LICENSE_SUSPENDED", got: "refused stop" }
      },
      { at: R.at(1, 9_999), do: "wake", says: "stop LICENSE_SUSPENDED" },
      { at: R.at(1, 10_000), do: "wake", given: [{ response: "regained" }], says: "run LICENSED" },
      {
        ...{ at: 2, do: "deactivate", says: "stop DEVICE_BLACKLISTED", got: "refused stop" },
        given: [{ response: R.refusal("blacklisted", "DEVICE_BLACKLISTED", 2), status: 403 }]
      },
      { at: R.at(2, 10_000), do: "wake", given: [{ response: "regained again" }], says: "run LICENSED" }
    ]
  },
  {
    name: "a borrowed seat of a suspended license",
    why: "The application stops, but the seat stays taken: its token gives it back, and a reinstatement brings it back.",
    steps: [
      open,
      {
        ...{ at: 0, do: "checkout", with: { license_key: R.licenseKey, until: R.at(48) } },
        ...{ given: [{ response: "borrowed checkout" }], says: "run LICENSED", got: "granted run" }
      },
      {
        ...{ at: 1, do: "validate", given: [{ response: "suspended", status: 403 }] },
        ...{ says: "stop LICENSE_SUSPENDED", got: "refused stop" }
      },
      { at: 1, do: "open", says: "stop LICENSE_SUSPENDED" },
      {
        ...{ at: R.at(1, 10_000), do: "wake", says: "run LICENSED" },
        given: [
          {
            response: R.seat("checkout after a reinstatement", "floating_checkout", 1, {
              ...{ lease_expires_at: R.at(48), borrowed_until: R.at(48) }
            })
          }
        ]
      },
      {
        ...{ at: 2, do: "validate", says: "ask LICENSE_EXPIRED", got: "refused ask" },
        given: [{ response: R.refusal("expired with a borrowed seat", "LICENSE_EXPIRED", 2), status: 403 }]
      },
      {
        ...{ at: 3, do: "checkin", says: "ask LICENSE_EXPIRED", got: "granted ask" },
        given: [{ response: R.seat("checkin after the end", "floating_lease", 3, { lease_expires_at: R.at(3) }) }]
      },
      {
        ...{ at: 4, do: "checkout", with: { until: R.at(48) }, says: "run LICENSED", got: "granted run" },
        given: [
          {
            response: R.seat("borrowed checkout after a renewal", "floating_checkout", 4, {
              ...{ lease_expires_at: R.at(48), borrowed_until: R.at(48) }
            })
          }
        ]
      },
      {
        ...{ at: 5, do: "validate", says: "stop LICENSE_REVOKED", got: "refused stop" },
        given: [{ response: R.refusal("revoked with a borrowed seat", "LICENSE_REVOKED", 5), status: 403 }]
      }
    ]
  },
  {
    name: "a refusal that only this request gets",
    why: "A feature that is off or used up warns, an unknown code ends nothing.",
    steps: [
      ...activated,
      ...(
        [
          ["FEATURE_NOT_ENTITLED", "refused warn"],
          ["USAGE_LIMIT_EXCEEDED", "refused warn"],
          ["DEVICE_STATE_CONFLICT", "refused run"],
          ["A_LATER_CODE", "refused warn"]
        ] as const
      ).map(
        ([code, got]): Said => ({
          ...{ at: 1, do: "consume", with: { feature_code: "export", event_id: "use-1" }, says: "run LICENSED", got },
          given: [{ response: R.refusal(code.toLowerCase(), code, 1), status: 403 }]
        })
      ),
      {
        ...{ at: 1, do: "consume", with: { feature_code: "export", event_id: "use-1", amount: 2 } },
        ...{ given: [{ fails: "timeout" }], says: "run LICENSED", got: "missed run" }
      },
      {
        ...{ at: 1, do: "consume", with: { feature_code: "export", event_id: "use-1", amount: 2 } },
        given: [
          {
            response: R.entitlement("entitlement after a use", 1, {
              features: [
                { code: "export", enabled: true, quota: 1000, consumed: 14, remaining: 986, resets_at: R.at(10) },
                { code: "preview", enabled: true, expires_at: R.at(5) }
              ]
            })
          }
        ],
        ...{ says: "run LICENSED", got: "granted run" }
      },
      { at: 5, do: "look", says: "run LICENSED" },
      { at: 10, do: "look", says: "run LICENSED" },
      {
        ...{ at: 1, do: "reverse", with: { feature_code: "export", event_id: "use-1" }, given: offline },
        ...{ says: "run LICENSED", got: "missed run" }
      }
    ]
  },
  {
    name: "a lost activation",
    why: "The machine activates once again and repeats a use with the same event_id; it stops or asks only if that is refused.",
    steps: [
      ...activated,
      {
        ...{
          at: 1,
          do: "validate",
          given: [{ response: lost, status: 404 }, { response: R.entitlement("regained", 1) }]
        },
        ...{ says: "run LICENSED", got: "granted run" }
      },
      {
        ...{ at: 2, do: "consume", with: { feature_code: "export", event_id: "use-2" } },
        given: [
          { response: R.refusal("heartbeat overdue", "HEARTBEAT_OVERDUE", 2), status: 403 },
          { response: R.entitlement("regained again", 2) },
          { response: R.entitlement("entitlement after a second use", 2, { entitlement_version: 4 }) }
        ],
        ...{ says: "run LICENSED", got: "granted run" }
      },
      {
        ...{ at: 3, do: "validate", given: [{ response: lost, status: 404 }, ...offline] },
        ...{ says: "run LICENSED", got: "missed run" }
      },
      {
        ...{
          at: 3,
          do: "validate",
          given: [
            { response: lost, status: 404 },
            { response: "limit reached", status: 409 }
          ]
        },
        ...{ says: "ask ACTIVATION_LIMIT_REACHED", got: "refused ask" }
      },
      {
        ...{
          at: 3,
          do: "validate",
          given: [
            { response: lost, status: 404 },
            { response: lost, status: 404 }
          ]
        },
        ...{ says: "stop DEVICE_NOT_FOUND", got: "refused stop" }
      }
    ]
  },
  {
    name: "the activation is given back",
    why: "What the service no longer has need not be given back.",
    steps: [
      ...activated,
      { at: 1, do: "deactivate", given: offline, says: "run LICENSED", got: "missed run" },
      {
        ...{ at: 24, do: "deactivate", given: [{ response: "deactivation" }] },
        ...{ says: "ask NOT_ACTIVATED", got: "granted ask" }
      },
      { at: 24, do: "wake", says: "ask NOT_ACTIVATED" },
      { at: 24, do: "activate", given: [{ response: second }], says: "run LICENSED", got: "granted run" },
      { at: 25, do: "validate", given: offline, says: "run LICENSED", got: "missed run" },
      {
        at: 25,
        do: "deactivate",
        given: [{ response: lost, status: 404 }],
        says: "ask NOT_ACTIVATED",
        got: "granted ask"
      }
    ]
  }
]
