/** Scenarios of what ended while the application waited for its next request. */
import * as R from "./Responses.ts"
import { taken } from "./SeatScenarios.ts"
import { activated, offline, open, type Said, type Told } from "./StartScenarios.ts"

/** Requests whose last one is repeated only after minutes. */
const failing = (
  hours: ReadonlyArray<number>,
  says: string,
  got: string,
  given: NonNullable<Said["given"]>
): ReadonlyArray<Said> => hours.map((hour) => ({ at: hour, do: "validate", given, says, got }))

const expired = { response: R.refusal("expired before a renewal", "LICENSE_EXPIRED", 1, { status: "expired" }) }

export const recoveryScenarios: ReadonlyArray<Told> = [
  {
    name: "a network that comes back",
    why: "The application that calls wake knows that the machine is online. After 10 seconds it need not wait for the retry, but for what Retry-After says.",
    steps: [
      ...activated,
      ...failing([25, 26, 27, 28, 29, 30], "warn NOT_REACHED", "missed warn", offline),
      { at: R.at(30, 9_999), do: "wake", says: "warn NOT_REACHED" },
      {
        ...{ at: R.at(30, 10_000), do: "wake", says: "run LICENSED" },
        given: [{ response: R.entitlement("entitlement of a network that is back", 30) }]
      },
      ...failing([55], "warn NOT_REACHED", "missed warn", [{ response: "rate limit", status: 429, retry_after: 600 }]),
      { at: R.at(55, 599_999), do: "wake", says: "warn NOT_REACHED" }
    ]
  },
  {
    name: "a start after a renewal",
    why: "An application that must not run asks at its start, not when the last one would have: its user renewed the license.",
    steps: [
      ...activated,
      ...failing([1, 2, 3, 4, 5, 6], "ask LICENSE_EXPIRED", "refused ask", [{ ...expired, status: 403 }]),
      { at: 6, do: "open", says: "ask LICENSE_EXPIRED" },
      {
        ...{ at: 6, do: "wake", says: "run LICENSED" },
        given: [{ response: R.entitlement("entitlement after a renewal", 6) }]
      }
    ]
  },
  {
    name: "a start after the tolerance",
    why: "It asks at once: perhaps the network is back. While the application may run, a start changes no plan.",
    steps: [
      ...activated,
      ...failing([90, 91, 92, 93, 94], "warn NOT_REACHED", "missed warn", offline),
      { at: 94, do: "open", says: "warn NOT_REACHED" },
      { at: 94, do: "wake", says: "warn NOT_REACHED" },
      ...failing([95], "warn NOT_REACHED", "missed warn", offline),
      ...failing([96], "stop NOT_REACHED", "missed stop", offline),
      { at: 96, do: "open", says: "stop NOT_REACHED" },
      {
        ...{ at: 96, do: "wake", says: "run LICENSED" },
        given: [{ response: R.entitlement("entitlement after the tolerance", 96) }]
      }
    ]
  },
  {
    name: "a seat during maintenance",
    why: "Proxies ask for an hour with their page. A seat would end before: its heartbeat is repeated after a third of the term at most.",
    steps: [
      ...taken,
      {
        ...{ at: R.at(0, 600_000), do: "wake", says: "run LICENSED" },
        given: [{ response: "page of a hotel", status: 503, retry_after: 3_600 }]
      },
      { at: R.at(0, 1_199_999), do: "wake", says: "run LICENSED" },
      {
        ...{ at: R.at(0, 1_200_000), do: "wake", says: "run LICENSED" },
        given: [{ response: R.seat("heartbeat after maintenance", "floating_lease", 1 / 3) }]
      }
    ]
  },
  {
    name: "a license that is renewed in time",
    why: "The application asks at expires_at, also if next_check_at is later: it does not tell of a grace period that the renewal has prevented.",
    steps: [
      open,
      {
        ...{ at: 0, do: "activate", with: { license_key: R.licenseKey }, says: "run LICENSED", got: "granted run" },
        given: [
          {
            response: R.entitlement("entitlement before a renewal", 0, {
              ...{ expires_at: R.at(12), access_ends_at: R.at(7 * 24) }
            })
          }
        ]
      },
      { at: R.at(12, -1), do: "wake", says: "run LICENSED" },
      {
        ...{ at: 12, do: "wake", says: "run LICENSED" },
        given: [{ response: R.entitlement("entitlement after a renewal in time", 12) }]
      }
    ]
  }
]
