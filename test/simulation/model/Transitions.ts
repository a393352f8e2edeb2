/**
 * The allowed transitions, written a second time by hand, so that an error in the rules' tables is not repeated here.
 * `unchanged` is accepted and records nothing, `conflict` is refused, `by clock` is the state that the dates give.
 */
type Transitions = { readonly [from: string]: string }

export const licenseTransitions = {
  suspend: {
    active: "suspended",
    grace_period: "suspended",
    expired: "suspended",
    suspended: "unchanged",
    revoked: "conflict"
  } as Transitions,
  reinstate: {
    active: "unchanged",
    grace_period: "unchanged",
    expired: "conflict",
    suspended: "by clock",
    revoked: "conflict"
  } as Transitions,
  revoke: {
    active: "revoked",
    grace_period: "revoked",
    expired: "revoked",
    suspended: "revoked",
    revoked: "unchanged"
  } as Transitions,
  renew: {
    active: "active",
    grace_period: "active",
    expired: "active",
    suspended: "suspended",
    revoked: "conflict"
  } as Transitions
}

export const deviceTransitions = {
  reset: {
    active: "reset",
    deactivated: "reset",
    expired: "reset",
    reset: "unchanged",
    blacklisted: "conflict"
  } as Transitions,
  blacklist: {
    active: "blacklisted",
    deactivated: "blacklisted",
    expired: "blacklisted",
    reset: "blacklisted",
    blacklisted: "unchanged"
  } as Transitions,
  unblacklist: {
    active: "conflict",
    deactivated: "conflict",
    expired: "conflict",
    reset: "conflict",
    blacklisted: "reset"
  } as Transitions
}

/** The events of a state of the clock, also if a reinstatement leads to it. */
export const clockEvents: { readonly [status: string]: ReadonlyArray<string> } = {
  grace_period: ["license.grace_period_started"],
  expired: ["license.expired"]
}
