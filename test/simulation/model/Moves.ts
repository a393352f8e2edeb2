/**
 * The states that may follow from each state, once more and by hand: a slip in the tables of the rules must not become one here.
 * `unchanged` is accepted and records nothing, `conflict` is refused, `by clock` is what the dates say.
 */
type Moves = { readonly [from: string]: string }

export const licenseMoves = {
  suspend: {
    active: "suspended",
    grace_period: "suspended",
    expired: "suspended",
    suspended: "unchanged",
    revoked: "conflict"
  } as Moves,
  reinstate: {
    active: "unchanged",
    grace_period: "unchanged",
    expired: "conflict",
    suspended: "by clock",
    revoked: "conflict"
  } as Moves,
  revoke: {
    active: "revoked",
    grace_period: "revoked",
    expired: "revoked",
    suspended: "revoked",
    revoked: "unchanged"
  } as Moves,
  renew: {
    active: "active",
    grace_period: "active",
    expired: "active",
    suspended: "suspended",
    revoked: "conflict"
  } as Moves
}

export const deviceMoves = {
  reset: {
    active: "reset",
    deactivated: "reset",
    expired: "reset",
    reset: "unchanged",
    blacklisted: "conflict"
  } as Moves,
  blacklist: {
    active: "blacklisted",
    deactivated: "blacklisted",
    expired: "blacklisted",
    reset: "blacklisted",
    blacklisted: "unchanged"
  } as Moves,
  unblacklist: {
    active: "conflict",
    deactivated: "conflict",
    expired: "conflict",
    reset: "conflict",
    blacklisted: "reset"
  } as Moves
}
