/** Scenarios of floating seats. */
import * as R from "./Responses.ts"
import { offline, open, type Said, type Told } from "./StartScenarios.ts"

const seat = R.seat("checkout", "floating_checkout", 0)
export const taken: ReadonlyArray<Said> = [
  open,
  {
    ...{ at: 0, do: "checkout", with: { license_key: R.licenseKey }, given: [{ response: seat }] },
    ...{ says: "run LICENSED", got: "granted run" }
  }
]
export const heartbeat = R.seat("heartbeat", "floating_lease", 1 / 6)
const leaseLost = R.refusal("lease expired", "LEASE_EXPIRED", 0.5)
const full = R.refusal("all seats taken", "FLOATING_LIMIT_REACHED", 0.5, { max: 2, used: 2 })

const borrowed: ReadonlyArray<Said> = [
  open,
  {
    ...{ at: 0, do: "checkout", with: { license_key: R.licenseKey, until: R.at(48) } },
    given: [
      {
        response: R.seat("borrowed checkout", "floating_checkout", 0, {
          lease_expires_at: R.at(48),
          borrowed_until: R.at(48)
        })
      }
    ],
    ...{ says: "run LICENSED", got: "granted run" }
  }
]

const checkedIn = R.seat("checkin of a borrowed seat", "floating_lease", 6, { lease_expires_at: R.at(6) })

export const seatScenarios: ReadonlyArray<Told> = [
  {
    name: "a seat and its heartbeats",
    why: "A heartbeat is due after a third of the term; after two thirds without one the application warns, and at the end it stops.",
    steps: [
      ...taken,
      { at: R.at(0, 599_999), do: "wake", says: "run LICENSED" },
      { at: R.at(0, 600_000), do: "wake", given: [{ response: heartbeat }], says: "run LICENSED" },
      { at: R.at(0, 1_200_000), do: "wake", given: offline, says: "run LICENSED" },
      { at: R.at(0, 1_210_000), do: "wake", given: [{ fails: "timeout" }], says: "run LICENSED" },
      { at: R.at(0, 1_799_999), do: "look", says: "run LICENSED" },
      { at: R.at(0, 1_800_000), do: "look", says: "warn NOT_REACHED" },
      { at: R.at(0, 2_400_000), do: "look", says: "stop SEAT_ENDED" },
      {
        ...{ at: 1, do: "wake", says: "run LICENSED" },
        given: [{ response: R.seat("heartbeat that takes the seat again", "floating_lease", 1, { renewed: true }) }]
      }
    ]
  },
  {
    name: "a seat that is lost and regained",
    why: "A lost seat is checked out once again; if all are taken the application asks, and tries again at most a third of a term later.",
    steps: [
      ...taken,
      {
        ...{ at: 0.5, do: "wake", says: "run LICENSED" },
        given: [{ response: leaseLost, status: 409 }, { response: R.seat("checkout again", "floating_checkout", 0.5) }]
      },
      {
        ...{ at: 0.75, do: "wake", says: "ask FLOATING_LIMIT_REACHED" },
        given: [
          { response: leaseLost, status: 409 },
          { response: full, status: 409 }
        ]
      },
      { at: 0.8, do: "wake", given: [{ response: full, status: 409 }], says: "ask FLOATING_LIMIT_REACHED" },
      {
        ...{ at: 1, do: "wake", says: "run LICENSED" },
        given: [{ response: R.seat("checkout after waiting", "floating_checkout", 1) }]
      }
    ]
  },
  {
    name: "a lost seat that is given back",
    why: "There is no lease_token to send: nothing is asked, and no seat is taken later.",
    steps: [
      ...taken,
      {
        ...{ at: 0.5, do: "wake", says: "ask FLOATING_LIMIT_REACHED" },
        given: [
          { response: leaseLost, status: 409 },
          { response: full, status: 409 }
        ]
      },
      { at: 0.6, do: "checkin", says: "ask FLOATING_LIMIT_REACHED", got: "granted ask" },
      { at: 1, do: "wake", says: "ask FLOATING_LIMIT_REACHED" },
      { at: 1, do: "checkin", says: "ask FLOATING_LIMIT_REACHED", got: "granted ask" }
    ]
  },
  {
    name: "a use with a seat",
    why: "The entitlement in the answer shows features, but the seat alone decides, and a restart begins with a heartbeat.",
    steps: [
      ...taken,
      {
        ...{ at: 0.1, do: "consume", with: { feature_code: "export", event_id: "use-1" } },
        given: [
          {
            response: R.entitlement("entitlement of a seat's holder", 0.1, {
              features: [{ code: "export", enabled: true, quota: 1000, consumed: 13, remaining: 987 }]
            })
          }
        ],
        ...{ says: "run LICENSED", got: "granted run" }
      },
      { at: 0.5, do: "look", says: "stop SEAT_ENDED" },
      { at: 0.5, do: "open", put: { entitlement: "entitlement" }, says: "stop SEAT_ENDED" },
      { at: 0.2, do: "open", says: "run LICENSED" },
      { at: 0.2, do: "wake", given: [{ response: heartbeat }], says: "run LICENSED" },
      {
        ...{ at: 0.3, do: "checkin", says: "ask NOT_ACTIVATED", got: "granted ask" },
        given: [{ response: R.seat("checkin", "floating_lease", 0.3, { lease_expires_at: R.at(0.3) }) }]
      }
    ]
  },
  {
    name: "a validation with a seat",
    why: "It shows features and keeps nothing: the next heartbeat is due as before. After a refusal the seat is taken again.",
    steps: [
      ...taken,
      {
        ...{ at: 0.1, do: "validate", says: "run LICENSED", got: "granted run" },
        given: [{ response: R.entitlement("validation of a seat's holder", 0.1) }]
      },
      { at: R.at(0, 600_000), do: "wake", given: [{ response: heartbeat }], says: "run LICENSED" },
      { at: 0.49, do: "look", says: "run LICENSED" },
      {
        ...{ at: 0.49, do: "validate", says: "stop LICENSE_SUSPENDED", got: "refused stop" },
        given: [{ response: R.refusal("suspended with a seat", "LICENSE_SUSPENDED", 0.49), status: 403 }]
      },
      {
        ...{ at: R.at(0.49, 10_000), do: "wake", says: "run LICENSED" },
        given: [{ response: R.seat("checkout after a suspension", "floating_checkout", 0.49) }]
      }
    ]
  },
  {
    name: "a deactivation with a seat",
    why: "It gives back the activation that the machine has beside the seat, if it has one; only a checkin gives the seat back.",
    steps: [
      ...taken,
      {
        ...{ at: 0.1, do: "deactivate", says: "run LICENSED", got: "granted run" },
        given: [{ response: R.deactivation("deactivation beside a seat", 0.1) }]
      },
      {
        ...{ at: 0.1, do: "deactivate", says: "run LICENSED", got: "granted run" },
        given: [{ response: R.refusal("no activation", "DEVICE_STATE_CONFLICT", 0.1), status: 409 }]
      },
      {
        ...{ at: 0.15, do: "checkin", says: "ask NOT_ACTIVATED", got: "granted ask" },
        given: [{ response: R.seat("checkin after it", "floating_lease", 0.15, { lease_expires_at: R.at(0.15) }) }]
      }
    ]
  },
  {
    name: "a borrowed seat",
    why: "It needs no heartbeat until it ends, also after a restart; half a minute before its end it becomes an ordinary one.",
    steps: [
      ...borrowed,
      { at: 40, do: "open", says: "run LICENSED" },
      { at: 40, do: "wake", says: "run LICENSED" },
      {
        ...{ at: 40, do: "checkout", with: { until: R.at(400) }, says: "run LICENSED", got: "refused warn" },
        given: [{ response: R.refusal("borrow too long", "BORROW_TOO_LONG", 40, { until_max: R.at(72) }), status: 403 }]
      },
      {
        ...{ at: R.at(48, -30_000), do: "wake", says: "run LICENSED" },
        given: [
          {
            response: R.seat("heartbeat at the end of a loan", "floating_lease", 48, {
              issued_at: R.at(48, -30_000),
              lease_expires_at: R.at(48.5)
            })
          }
        ]
      },
      { at: 48.5, do: "look", says: "stop SEAT_ENDED" }
    ]
  },
  {
    name: "an activation beside a borrowed seat",
    why: "The seat stays taken. Its token is kept over a restart, a suspension and a deactivation, until a checkin.",
    steps: [
      ...borrowed,
      {
        ...{ at: 1.5, do: "activate", says: "run LICENSED", got: "granted run" },
        given: [{ response: R.entitlement("activation beside a seat", 1.5) }]
      },
      { at: 2, do: "open", says: "run LICENSED" },
      {
        ...{ at: 3, do: "validate", says: "stop LICENSE_SUSPENDED", got: "refused stop" },
        given: [{ response: R.refusal("suspended beside a seat", "LICENSE_SUSPENDED", 3), status: 403 }]
      },
      {
        ...{ at: 4, do: "validate", says: "run LICENSED", got: "granted run" },
        given: [{ response: R.entitlement("reinstated beside a seat", 4) }]
      },
      {
        ...{ at: 5, do: "deactivate", says: "ask NOT_ACTIVATED", got: "granted ask" },
        given: [{ response: R.deactivation("deactivation beside a borrowed seat", 5) }]
      },
      {
        ...{ at: 6, do: "checkin", says: "ask NOT_ACTIVATED", got: "granted ask" },
        given: [{ response: checkedIn }]
      },
      { at: 6, do: "checkin", says: "ask NOT_ACTIVATED", got: "granted ask" }
    ]
  },
  ...(
    [
      ["VERSION_NOT_ENTITLED", "ask"],
      ["VERSION_UNKNOWN", "ask"],
      ["VM_NOT_ALLOWED", "stop"],
      ["CONTAINER_NOT_ALLOWED", "stop"],
      ["DEVICE_BLACKLISTED", "stop"],
      ["FLOATING_NOT_ENABLED", "ask"]
    ] as const
  ).map(
    ([code, decision]): Told => ({
      name: `a borrowed seat and ${code}`,
      why: "The refusal ends the use, and not the lease: its token is kept for a checkin. No heartbeat lifts the refusal.",
      steps: [
        ...borrowed,
        {
          ...{ at: 3, do: "checkout", says: `${decision} ${code}`, got: `refused ${decision}` },
          given: [{ response: R.refusal(`borrowed: ${code}`, code, 3), status: 403 }]
        },
        {
          ...{ at: 4, do: "wake", says: `${decision} ${code}` },
          given: [{ response: R.refusal(`borrowed, again: ${code}`, code, 4), status: 403 }]
        },
        { at: 5, do: "open", says: `${decision} ${code}` },
        {
          ...{ at: 6, do: "checkin", says: `${decision} ${code}`, got: `granted ${decision}` },
          given: [{ response: checkedIn }]
        }
      ]
    })
  ),
  {
    name: "a borrowed seat of a revoked license",
    why: "The revocation has ended it: nothing is left to give back.",
    steps: [
      ...borrowed,
      {
        ...{ at: 3, do: "validate", says: "stop LICENSE_REVOKED", got: "refused stop" },
        given: [{ response: R.refusal("revoked while borrowed", "LICENSE_REVOKED", 3), status: 403 }]
      },
      { at: 6, do: "checkin", says: "stop LICENSE_REVOKED", got: "granted stop" }
    ]
  },
  {
    name: "a checkin beside an activation",
    why: "It gives back the seat that was held before. The activation stays.",
    steps: [
      ...taken,
      {
        ...{ at: 0.25, do: "activate", says: "run LICENSED", got: "granted run" },
        given: [{ response: R.entitlement("activation after a seat", 0.25) }]
      },
      {
        ...{ at: 0.4, do: "checkin", says: "run LICENSED", got: "granted run" },
        given: [
          { response: R.seat("checkin after an activation", "floating_lease", 0.4, { lease_expires_at: R.at(0.4) }) }
        ]
      },
      { at: 0.5, do: "checkin", says: "run LICENSED", got: "granted run" }
    ]
  }
]
