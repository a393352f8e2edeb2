/** Responses that no service sends, and the rule by which a client refuses each. */

import type { Rule } from "../../src/clients/kit/judging/Judge.ts"
import { canonicalize, type Json } from "../../src/contract/api/CanonicalJson.ts"
import { sha256Hex } from "../../src/platform/signing/Digest.ts"
import { algorithm, type SigningKey, signSync } from "../../src/platform/signing/SigningKey.ts"
import {
  active,
  base64,
  data,
  entitlement,
  error,
  expected,
  foreign,
  type Members,
  meta,
  offline,
  refusal,
  without
} from "./responseVectors.ts"

/** Bytes that are repeated, so that a large input has a short vector. */
type Chunk = readonly [bytes: string | Uint8Array, times: number]
export type Input = string | ReadonlyArray<Chunk>

export interface Hostile {
  readonly name: string
  readonly input: Input
  readonly expected?: Members
  /** Absent for an input that is believed all the same. */
  readonly rule?: Rule
}

const genuine = data(entitlement)
const genuineBytes = canonicalize(entitlement)
const forgedBytes = canonicalize({ ...entitlement, features: [{ code: "everything", enabled: true }] })
export const signatureOf = (bytes: string, key: SigningKey = active) =>
  ({ alg: algorithm, kid: key.kid, value: base64(signSync(key, Buffer.from(bytes))) }) as const
const signature = signatureOf(genuineBytes)
export const signatureText = JSON.stringify(signature)

/** A genuine entitlement with another signature member. */
const withSignature = (text: string): string => `{"data":${genuineBytes},"signature":${text},"meta":${meta}}`
const withValue = (value: Json): string => withSignature(JSON.stringify({ ...signature, value }))
const withMember = (name: string, value: Json): string => withSignature(JSON.stringify({ ...signature, [name]: value }))
/** A genuine entitlement with another text in place of meta. */
const withMeta = (text: string): string => `{"data":${genuineBytes},"signature":${signatureText},"meta":${text}}`

const signatureBytes = Buffer.from(signature.value, "base64")

/** The same signature with S + L in place of S, which a verifier that does not check S < L takes for another valid one. */
const malleable = (): string => {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const scalar = BigInt(`0x${Buffer.from(signatureBytes.subarray(32)).reverse().toString("hex")}`) + order
  const bytes = Buffer.from(scalar.toString(16).padStart(64, "0"), "hex").reverse()
  return base64(Buffer.concat([signatureBytes.subarray(0, 32), bytes]))
}

/** The same bytes, written with one of the bits set that padding leaves unused. */
const looseBase64 = (text: string): string =>
  text.replace(/.(?==+$)/, (last) => ({ A: "B", Q: "R", g: "h", w: "x" })[last] ?? "B")

export const unsigned = (...inputs: ReadonlyArray<readonly [name: string, input: Input]>): ReadonlyArray<Hostile> =>
  inputs.map(([name, input]) => ({ name, input, rule: "signature" }))

const notOneObject = unsigned(
  ["nothing", ""],
  ["a page of HTML", "<html><body>Sign in to the hotel's network</body></html>"],
  ["a response that was cut off", genuine.slice(0, 300)],
  ["a response that was cut off before its last brace", genuine.slice(0, -1)],
  ["a response with something behind it", `${genuine}{}`],
  ["a response after a byte order mark", `\u{feff}${genuine}`],
  ["an array", `[${genuine}]`],
  ["null", "null"],
  ["a text", '"data"'],
  ["a number", "1"],
  ["a response in UTF-16", [[Buffer.from(genuine, "utf16le"), 1]]],
  ["a zero byte", [[new Uint8Array(1), 1]]],
  [
    "bytes that are not UTF-8",
    [
      [`{"data":${genuineBytes},"signature":${signatureText},"meta":"`, 1],
      [new Uint8Array([0xc3, 0x28]), 1],
      ['"}', 1]
    ]
  ],
  [
    "an overlong UTF-8 form",
    [
      [`{"data":${genuineBytes},"signature":${signatureText},"meta":"`, 1],
      [new Uint8Array([0xc0, 0xaf]), 1],
      ['"}', 1]
    ]
  ],
  [
    "a hundred thousand open arrays",
    [
      [genuine.slice(0, -1), 1],
      [',"more":', 1],
      ["[", 100_000]
    ]
  ],
  ["33 levels", withMeta(`${"[".repeat(32)}${"]".repeat(32)}`)],
  [
    "a hundred thousand nested arrays",
    [
      [genuine.slice(0, -1), 1],
      [',"more":', 1],
      ["[", 100_000],
      ["]", 100_000],
      ["}", 1]
    ]
  ],
  [
    "a hundred thousand nested objects",
    [
      ['{"data":', 100_000],
      ["1", 1],
      ["}", 100_000]
    ]
  ],
  [
    "two million spaces behind the response",
    [
      [genuine, 1],
      [" ", 2_000_000]
    ]
  ],
  ["a comma too many", `${genuine.slice(0, -1)},}`],
  ["a comment", `${genuine.slice(0, -1)}/* genuine */}`],
  ["names in single quotes", genuine.replaceAll('"', "'")],
  ["NaN, which is not JSON", withMeta("NaN")],
  ["a number with a leading zero", withMeta("01")],
  ["a number without digits", withMeta("-")],
  ["a half-written literal", withMeta("tru")],
  ["a line break in a text", withMeta('"a\nb"')],
  ["an unknown escape", withMeta('"\\x41"')],
  ["an escape that was cut off", withMeta('"\\u00"')],
  ["a text without an end", `${withMeta('"')}`]
)

const members = unsigned(
  ["an empty object", "{}"],
  ["no data and no error", `{"signature":${signatureText},"meta":${meta}}`],
  [
    "data and error",
    `{"data":${genuineBytes},"error":${canonicalize(refusal)},"signature":${signatureText},"meta":${meta}}`
  ],
  [
    "data twice, the forged one last",
    `{"data":${genuineBytes},"signature":${signatureText},"data":${forgedBytes},"meta":${meta}}`
  ],
  [
    "data twice, the forged one first",
    `{"data":${forgedBytes},"signature":${signatureText},"data":${genuineBytes},"meta":${meta}}`
  ],
  [
    "data twice, the forged name escaped",
    `{"data":${genuineBytes},"signature":${signatureText},"d\\u0061ta":${forgedBytes},"meta":${meta}}`
  ],
  [
    "data twice, the genuine name escaped",
    `{"d\\u0061ta":${genuineBytes},"signature":${signatureText},"data":${forgedBytes},"meta":${meta}}`
  ],
  ["Data in place of data", genuine.replace('"data"', '"Data"')],
  ["data within another member", `{"body":${genuine}}`],
  ["data is null", `{"data":null,"signature":${JSON.stringify(signatureOf("null"))},"meta":${meta}}`],
  ["data is a number", `{"data":1,"signature":${JSON.stringify(signatureOf("1"))},"meta":${meta}}`],
  ["data is an array", `{"data":[],"signature":${JSON.stringify(signatureOf("[]"))},"meta":${meta}}`],
  ["data is a text", `{"data":"data","signature":${JSON.stringify(signatureOf('"data"'))},"meta":${meta}}`],
  ["error is null", `{"error":null,"signature":${JSON.stringify(signatureOf("null"))},"meta":${meta}}`],
  [
    "signature twice, the forged one last",
    `{"data":${forgedBytes},"signature":${signatureText},"signature":${JSON.stringify(signatureOf(forgedBytes, foreign))},"meta":${meta}}`
  ],
  [
    "two kids",
    withSignature(`{"alg":"Ed25519","kid":"${foreign.kid}","kid":"${active.kid}","value":"${signature.value}"}`)
  ]
)

const signatures = [
  ...unsigned(
    ["no signature", `{"data":${genuineBytes},"meta":${meta}}`],
    ["the signature is null", withSignature("null")],
    ["the signature is a text", withSignature(`"${signature.value}"`)],
    ["the signature is an array", withSignature(`[${signatureText}]`)],
    ["the signature is empty", withSignature("{}")],
    ["no algorithm", withSignature(JSON.stringify({ kid: signature.kid, value: signature.value }))],
    ["the algorithm is none", withMember("alg", "none")],
    ["the algorithm is null", withMember("alg", null)],
    ["the algorithm is a list", withMember("alg", ["Ed25519"])],
    ["the algorithm in small letters", withMember("alg", "ed25519")],
    ["an HMAC with the public key", withMember("alg", "HS256")],
    ["no value", withSignature(JSON.stringify({ alg: algorithm, kid: signature.kid }))],
    ["the value is null", withValue(null)],
    ["the value is a number", withValue(0)],
    ["the value is empty", withValue("")],
    ["the value is no base64", withValue("not base64!")],
    ["the value is zeros", withValue(base64(new Uint8Array(64)))],
    ["the value has 63 bytes", withValue(base64(signatureBytes.subarray(0, 63)))],
    ["the value has 65 bytes", withValue(base64(Buffer.concat([signatureBytes, new Uint8Array(1)])))],
    ["the value has S + L in place of S", withValue(malleable())],
    ["the value has no padding", withValue(signature.value.replace(/=+$/, ""))],
    ["the value has a line break", withValue(`${signature.value}\n`)],
    ["the value has set bits in its padding", withValue(looseBase64(signature.value))]
  ),
  ...(
    [null, 32, ["32a43d21680dac33"], {}, "", "__proto__", `${signature.kid}\0`, signature.kid.toUpperCase()] as const
  ).map(
    (kid): Hostile => ({
      name: `the kid is ${JSON.stringify(kid)}`,
      input: withMember("kid", kid as Json),
      rule: "kid"
    })
  ),
  {
    name: "no kid",
    input: withSignature(JSON.stringify({ alg: algorithm, value: signature.value })),
    rule: "kid" as const
  }
]

const signedContent: ReadonlyArray<Hostile> = [
  { name: "data is an empty object", input: data({}), rule: "kind" },
  { name: "the kind is a list", input: data({ ...entitlement, kind: ["entitlement"] }), rule: "kind" },
  { name: "the license is a number", input: data({ ...entitlement, license_id: 1 }), rule: "license" },
  { name: "the license is missing", input: data(without(entitlement, "license_id")), rule: "license" },
  { name: "the product's code is missing", input: data(without(entitlement, "product_code")), rule: "product" },
  { name: "the product is missing in a refusal", input: error(without(refusal, "product_id")), rule: "product" },
  { name: "the binding is missing", input: data(without(entitlement, "binding_hash")), rule: "binding" },
  {
    name: "the binding in capitals",
    input: data({ ...entitlement, binding_hash: sha256Hex(expected.binding.key).toUpperCase() }),
    rule: "binding"
  },
  { name: "the nonce is null", input: data({ ...entitlement, nonce: null }), rule: "nonce" },
  { name: "the nonce with a zero byte", input: data({ ...entitlement, nonce: `${expected.nonce}\0` }), rule: "nonce" },
  { name: "issued_at is missing", input: data(without(entitlement, "issued_at")), rule: "times" },
  { name: "issued_at is a number", input: data({ ...entitlement, issued_at: 0 }), rule: "times" },
  { name: "issued_at is no instant", input: data({ ...entitlement, issued_at: "yesterday" }), rule: "times" },
  {
    name: "issued_at far in the future",
    input: data({ ...entitlement, issued_at: "9999-12-31T23:59:59.999Z" }),
    rule: "times"
  },
  {
    name: "an offline payload without its end",
    input: data(without(offline, "offline_expires_at")),
    expected: { kind: "offline" },
    rule: "times"
  },
  {
    name: "an offline payload that ends never",
    input: data({ ...offline, offline_expires_at: "never" }),
    expected: { kind: "offline" },
    rule: "times"
  },
  {
    name: "a seat without its end",
    input: data({ ...entitlement, kind: "floating_checkout" }),
    expected: { kind: "floating_checkout" },
    rule: "times"
  },
  { name: "a refusal without issued_at", input: error(without(refusal, "issued_at")), rule: "times" }
]

/** Unknown members are no reason to distrust, and they must not be taken for known ones. */
const harmless: ReadonlyArray<Hostile> = [
  { name: "unknown members", input: `{"__proto__":{"data":1},"length":[],${genuine.slice(1)}` },
  { name: "Data and DATA beside data", input: `{"Data":${forgedBytes},${genuine.slice(1, -1)},"DATA":${forgedBytes}}` },
  { name: "no meta", input: `{"data":${genuineBytes},"signature":${signatureText}}` },
  { name: "meta in place of data", input: withMeta(`{"data":${forgedBytes},"error":{}}`) },
  { name: "data in a text", input: withMeta(JSON.stringify(`"data":${forgedBytes},"`)) },
  { name: "all escapes", input: withMeta('"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00"') },
  { name: "all kinds of numbers", input: withMeta("[0,-0,1.5,-2.25e-10,1E+30,9007199254740991]") },
  { name: "32 levels", input: withMeta(`${"[".repeat(31)}${"]".repeat(31)}`) },
  {
    name: "members the application does not know",
    input: data({ ...entitlement, "ž 🗝": ["\u{1f600}", null, { a: 1e-7 }] })
  }
]

export const hostileResponses: ReadonlyArray<Hostile> = [
  ...notOneObject,
  ...members,
  ...signatures,
  ...signedContent,
  ...harmless
]
