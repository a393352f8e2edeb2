/**
 * The kit's verdicts on the published test vectors, one line each. It imports nothing of a platform, so that the same code runs on
 * Node, on Deno and in a browser.
 */
import { bindingHashOf } from "../../../src/clients/kit/judging/BindingHash.ts"
import {
  Distrusted,
  type Expected,
  type Judge,
  judgeOf,
  type TrustedKey
} from "../../../src/clients/kit/judging/Judge.ts"
import { openEnvelope } from "../../../src/clients/kit/judging/OfflineEnvelope.ts"
import { LicenseKit, memoryStore } from "../../../src/clients/kit/LicenseKit.ts"
import { licenseKeyOf } from "../../../src/clients/kit/texts/LicenseKeyText.ts"
import type { Binding } from "../../../src/clients/kit/texts/Payloads.ts"
import { bodyBytesMax, fromBase64, textOf } from "../../../src/clients/kit/texts/ResponseText.ts"

export const vectorFiles = [
  "signatures",
  "responses",
  "hostile",
  "offline-envelopes",
  "air-gap",
  "bindings",
  "license-keys"
] as const
export type VectorFiles = { readonly [Name in (typeof vectorFiles)[number]]: VectorFile }

interface Vector {
  readonly name: string
  readonly canonical: string
  readonly signature: object
  readonly response: string
  readonly body: ReadonlyArray<Chunk>
  readonly envelope: ReadonlyArray<Chunk>
  readonly license_key: string
  readonly expected?: Given
  readonly request: object
  readonly binding: Binding
  readonly product_code: string
  readonly input: string
}

type VectorFile = { readonly [group: string]: ReadonlyArray<Vector> } & {
  readonly keys: ReadonlyArray<TrustedKey>
  readonly expected: Given
  readonly license_key: string
}

interface Chunk {
  readonly base64: string
  readonly times: number
}

/** An expectation as the vectors write it: null for none. */
interface Given {
  readonly [name: string]: unknown
  readonly binding?: { readonly kind: string; readonly key: string } | null
  readonly clock?: { readonly now: string; readonly highest_issued_at: string | null } | null
}

export const verdictsOf = async (files: VectorFiles): Promise<ReadonlyArray<string>> => {
  const lines: Array<string> = []
  const each = async (title: string, vectors: ReadonlyArray<Vector> = [], verdict: (vector: Vector) => unknown) => {
    for (const vector of vectors) lines.push(`${title}: ${vector.name}: ${await believed(() => verdict(vector))}`)
  }
  const { bindings, hostile, responses, signatures } = files
  const envelopes = files["offline-envelopes"]
  const judges = Object.fromEntries(
    Object.entries({ hostile, responses, signatures, envelopes }).map(([name, { keys }]) => [name, judgeOf(keys)])
  ) as { readonly [Name in "hostile" | "responses" | "signatures" | "envelopes"]: Judge }

  const signed = ({ canonical, signature }: Vector) =>
    judges.signatures(`{"data":${canonical},"signature":${JSON.stringify(signature)}}`)
  await each("signatures", signatures["valid"], signed)
  await each("signatures", signatures["invalid"], signed)
  const opened = async ({ envelope, license_key }: Vector) =>
    judges.envelopes(await openEnvelope(license_key, JSON.stringify(envelope)))
  await each("offline-envelopes", envelopes["valid"], opened)
  await each("offline-envelopes", envelopes["invalid"], opened)
  await each("responses", responses["vectors"], async ({ expected, response }) =>
    judges.responses(response, await expectedOf(responses, expected))
  )
  await each("hostile responses", hostile["responses"], async ({ body, expected }) =>
    judges.hostile(received(body, "signature"), await expectedOf(hostile, expected))
  )
  for (const [name, file] of [
    ["hostile", hostile],
    ["air-gap", files["air-gap"]]
  ] as const) {
    const judge = judgeOf(file.keys)
    await each(`${name} envelopes`, file["envelopes"], async ({ envelope, expected }) =>
      judge(await openEnvelope(file.license_key, received(envelope, "envelope")), await expectedOf(file, expected))
    )
  }
  for (const { binding, name, product_code: productCode } of files["air-gap"]["requests"] ?? []) {
    const options = { baseUrl: "https://licenses.example.com", keys: files["air-gap"].keys, store: memoryStore() }
    const kit = await LicenseKit.open({ ...options, productCode, binding })
    lines.push(`air-gap requests: ${name}: ${kit.offlineRequest()}`)
  }
  for (const { name, request } of bindings["vectors"] ?? []) {
    const { hash, kind } = await bindingHashOf(request)
    lines.push(`bindings: ${name}: ${kind} ${hash}`)
  }
  for (const { input } of files["license-keys"]["valid"] ?? []) {
    lines.push(`license-keys: ${input}: ${licenseKeyOf(input)}`)
  }
  return lines
}

const believed = async (judge: () => unknown): Promise<string> => {
  try {
    await judge()
    return "believe"
  } catch (problem) {
    return problem instanceof Distrusted ? problem.rule : `crashed: ${problem}`
  }
}

const expectedOf = async (file: VectorFile, more: Given | undefined): Promise<Expected> => {
  const merged = { ...file.expected, ...more }
  const given = Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null)) as Given
  const { binding, clock, ...rest } = given
  const { is_container, fingerprint } = { is_container: binding?.kind === "container", fingerprint: binding?.key ?? "" }
  return {
    ...rest,
    // A container's key of the vectors is given as such: only hardware's is hashed from a request.
    binding: binding && !is_container ? await bindingHashOf({ fingerprint }) : undefined,
    clock: clock
      ? {
          now: Date.parse(clock.now),
          highestIssuedAt:
            clock.highest_issued_at === null ? Number.NEGATIVE_INFINITY : Date.parse(clock.highest_issued_at)
        }
      : undefined
  }
}

/** The text of what was received; what is no text breaks the rule before any other. */
const received = (chunks: ReadonlyArray<Chunk>, rule: "signature" | "envelope"): string => {
  const parts = chunks.map(({ base64, times }) => ({ bytes: fromBase64(base64), times }))
  const length = parts.reduce((total, { bytes, times }) => total + bytes.length * times, 0)
  if (length > bodyBytesMax) throw new Distrusted(rule)
  const joined = new Uint8Array(length)
  let at = 0
  for (const { bytes, times } of parts) {
    for (let time = 0; time < times; time++, at += bytes.length) joined.set(bytes, at)
  }
  try {
    return textOf(joined)
  } catch {
    throw new Distrusted(rule)
  }
}
