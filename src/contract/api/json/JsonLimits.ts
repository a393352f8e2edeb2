/** Limits of a JSON text that are checked before it is parsed (`JsonScan`). */

/** Levels of objects and lists, the body itself included. No operation takes more than a handful. */
export const depthMax = 16
/** Names of one object, repeated ones included. No operation needs half of them, and V8 parses an object of more in three times the time. */
export const namesMax = 128
/** Names of one object within `metadata`. */
export const metadataNamesMax = 64
/** Different names. V8 takes more than a microsecond to parse a new name, and almost no time for one that a list repeats. */
export const differentNamesMax = 2_000
/** Members and list elements of a body, unless an operation takes lists of records. An empty object or list counts twice. */
export const valuesMaxDefault = 10_000
