/** What a refusal's message must be: one or two sentences in plain English that say what to do, without internals. */

/** A message gives its advice after a colon, or is an instruction itself. */
const advice = /: |^(Send|Give) /

const unclear: ReadonlyArray<RegExp> = [
  /\bcan not\b/i,
  /n't\b/,
  /\b(e\.g|i\.e|etc)\./i,
  /\bplease\b/i,
  /\b(is|are) none\b/,
  /2\^53/
]

/** Traces of the code, the database or a missing value. */
const internal: ReadonlyArray<RegExp> = [
  /\bundefined\b|\bNaN\b|\[object|=>/,
  /\w(Error|Exception)\b|\bstack\b|\.ts\b|node_modules/,
  /\b(SELECT|INSERT|UPDATE|DELETE FROM|relation|constraint)\b/,
  /\b(Effect|Schema|fiber|refinement|UTF-16)\b/,
  /\bexpected (string|number|boolean|array|object)\b| \| /
]

/** What a message repeats of the request, which may be anything. */
const repeated = /(?<= has the id ).*(?=: use the id )|(?<=^The (?:field|query parameter) ).*(?= is not known)/

/** What is wrong with a message, or undefined. */
export const messageFault = (given: string): string | undefined => {
  const message = given.replace(repeated, "value")
  if (!/^[A-Z].*\.$/su.test(message)) return "is not a sentence"
  if (message.includes("\n")) return "has more than one line"
  if (message.split(/(?<=\.) (?=[A-Z])/).length > 2) return "has more than two sentences"
  if (!advice.test(message)) return "does not say what to do"
  const found = [...unclear, ...internal].find((pattern) => pattern.test(message))
  return found === undefined ? undefined : `contains ${found}`
}
