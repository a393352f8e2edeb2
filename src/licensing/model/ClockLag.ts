/**
 * By how much a clock may be behind the clock that recorded a change by time: twice the difference between two nodes,
 * because a clock may also be set back. Limited, so that a clock that is far ahead ends nothing permanently.
 */
export const clockLagMillisMax = 60_000
