/**
 * By how much a clock may be behind the one that recorded a change by time: twice what the clocks of two nodes may differ
 * by, because a clock may also be set back. A limit, so that a clock that is far ahead ends nothing for good.
 */
export const clockLagMillisMax = 60_000
