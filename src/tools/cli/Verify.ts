/**
 * Verifies a saved response or offline envelope by the rules of docs/VERIFYING.md in their order. It needs no
 * service and no settings: support checks files from customers with it.
 */
import { Clock, Config, Effect, FileSystem, Option, Path, Result, Schema, Stdio, Stream } from "effect"
import { Argument, Flag } from "effect/cli"
import { type BindingHash, bindingHashOf } from "../../clients/kit/judging/BindingHash.ts"
import { Distrusted, type Expected, judgeOf, type Rule, type TrustedKey } from "../../clients/kit/judging/Judge.ts"
import { openEnvelope } from "../../clients/kit/judging/OfflineEnvelope.ts"
import { membersOf, textOf } from "../../clients/kit/texts/ResponseText.ts"
import { parseTimestamp } from "../../contract/api/Timestamp.ts"
import * as LicenseKey from "../../licensing/model/LicenseKey.ts"
import { systemReason } from "../../platform/config/SystemErrors.ts"
import { CommandEnded, jsonFlag, print } from "./Output.ts"

const kinds = ["entitlement", "deactivation", "offline", "floating_checkout", "floating_lease"] as const

const text = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.optional)

export const verifyFlags = {
  file: Argument.String("file").pipe(
    Argument.withDescription("The body of a response, byte for byte, or an offline envelope; - reads standard input.")
  ),
  keys: Flag.String("keys").pipe(
    Flag.withDescription("A file with the public keys, saved from GET /api/v1/system/public-keys.")
  ),
  licenseKeyFile: text("license-key-file", "A file with the license key, which opens an offline envelope."),
  kind: Flag.Literals("kind", kinds).pipe(Flag.withDescription("The kind of the operation's response."), Flag.optional),
  licenseId: text("license-id", "The license of the first response."),
  productCode: text("product-code", "The code of the application's product."),
  productId: text("product-id", "The product's id, which a refusal has."),
  fingerprint: text("fingerprint", "The fingerprint of the machine."),
  clusterId: text("cluster-id", "This and the next three: the ids of the container, as they were sent."),
  namespace: text("namespace", "See --cluster-id."),
  podName: text("pod-name", "See --cluster-id."),
  containerId: text("container-id", "See --cluster-id."),
  nonce: text("nonce", "The nonce of the request."),
  now: text("now", "The application's clock, as 2026-11-22T14:00:00Z; the present unless given."),
  highestIssuedAt: text("highest-issued-at", "The highest issued_at that the application has seen."),
  ...jsonFlag
}

type Texts = Exclude<keyof typeof verifyFlags, "file" | "keys" | "kind" | "json">
type Flags = { readonly [K in Texts]: Option.Option<string> } & {
  readonly file: string
  readonly keys: string
  readonly kind: Option.Option<string>
  readonly json: boolean
}

const unanswered = (message: string) => new CommandEnded({ exitCode: 2, message })

export const verifyResponse = Effect.fnUntraced(function* (flags: Flags) {
  const keys = yield* readKeys(yield* readInput(flags.keys))
  const body = Buffer.from(yield* readInput(flags.file))
  const licenseKey = Option.isSome(flags.licenseKeyFile)
    ? yield* readLicenseKey(yield* readInput(flags.licenseKeyFile.value))
    : undefined
  const expected = yield* expectedOf(flags)
  if (isOffline(body) && licenseKey === undefined) {
    return yield* unanswered("This is an offline envelope: give --license-key-file to open it.")
  }
  const judged = yield* Effect.result(judge(keys, body, licenseKey, expected))
  if (judged._tag === "Failure") {
    const { failure } = judged
    if (!(failure instanceof Distrusted)) return yield* unanswered(`The response cannot be checked: ${failure}`)
    const { rule } = failure
    const message = breaches[rule]
    yield* print(flags.json, { genuine: false, rule, message }, [`not genuine: it breaks the rule ${rule}: ${message}`])
    return yield* new CommandEnded({ exitCode: 1, message: "" })
  }
  const { content, member } = judged.success
  // The lease token is a credential.
  const shown = "lease_token" in content ? { ...content, lease_token: "(not shown)" } : content
  const unchecked = uncheckedRules(member, expected)
  yield* print(flags.json, { genuine: true, member, unchecked_rules: unchecked, content: shown }, [
    `genuine: ${member === "data" ? `a response of the kind ${content["kind"]}` : `a refusal, ${content["code"]}`}`,
    ...(unchecked.length === 0 ? [] : [`not checked, because nothing was given to compare: ${unchecked.join(", ")}`]),
    ...JSON.stringify(shown, null, 2).split("\n")
  ])
})

/** npm and infra/licensing change to the project's folder; INIT_CWD is the caller's folder. */
const readInput = Effect.fnUntraced(function* (name: string) {
  if (name === "-") {
    const { stdin } = yield* Stdio.Stdio
    return Buffer.concat(yield* Effect.orDie(Stream.runCollect(stdin)))
  }
  const paths = yield* Path.Path
  const files = yield* FileSystem.FileSystem
  const folder = yield* Config.String("INIT_CWD").pipe(Config.withDefault("."))
  return yield* Effect.mapError(files.readFile(paths.resolve(folder, name)), (error) =>
    unanswered(`${name} cannot be read: ${systemReason(error)}`)
  )
})

const Keys = Schema.Array(
  Schema.Struct({ kid: Schema.String, algorithm: Schema.Literal("Ed25519"), public_key: Schema.String })
)
/** The keys alone, or the whole response. */
const SavedKeys = Schema.fromJsonString(Schema.Union([Keys, Schema.Struct({ data: Keys })]))

const readKeys = (bytes: Uint8Array) =>
  Schema.decodeUnknownEffect(SavedKeys)(new TextDecoder().decode(bytes)).pipe(
    Effect.map((saved): ReadonlyArray<TrustedKey> => ("data" in saved ? saved.data : saved)),
    Effect.mapError(() => unanswered("--keys must be a file saved from GET /api/v1/system/public-keys."))
  )

/** An envelope is encrypted with the key as it was issued. */
const readLicenseKey = (bytes: Uint8Array) =>
  Option.match(LicenseKey.read(new TextDecoder().decode(bytes).trim()), {
    onNone: () => unanswered("--license-key-file must be a file with nothing but a license key."),
    onSome: (key) => Effect.succeed<string>(key)
  })

const expectedOf = Effect.fnUntraced(function* (flags: Flags) {
  const [now, highestIssuedAt] = [
    yield* instantOf("now", flags.now),
    yield* instantOf("highest-issued-at", flags.highestIssuedAt)
  ]
  const binding = yield* bindingOf(flags)
  const given = {
    kind: Option.getOrUndefined(flags.kind),
    license_id: Option.getOrUndefined(flags.licenseId),
    product_code: Option.getOrUndefined(flags.productCode),
    product_id: Option.getOrUndefined(flags.productId),
    nonce: Option.getOrUndefined(flags.nonce),
    binding
  }
  return {
    ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Expected),
    clock: { now: now ?? (yield* Clock.currentTimeMillis), highestIssuedAt: highestIssuedAt ?? 0 }
  } satisfies Expected
})

const instantOf = (name: string, given: Option.Option<string>) =>
  Effect.suspend(() => {
    if (Option.isNone(given)) return Effect.succeed(undefined)
    const instant = parseTimestamp(given.value)
    return instant === undefined
      ? unanswered(`--${name} must be a time such as 2026-11-22T14:00:00Z.`)
      : Effect.succeed(instant)
  })

const bindingOf = ({
  clusterId,
  containerId,
  fingerprint,
  namespace,
  podName
}: Flags): Effect.Effect<BindingHash | undefined> => {
  const named = { fingerprint, cluster_id: clusterId, namespace, pod_name: podName, container_id: containerId }
  const given = Object.entries(named).flatMap(([name, id]) => (Option.isSome(id) ? [[name, id.value] as const] : []))
  if (given.length === 0) return Effect.succeed(undefined)
  const is_container = Option.isNone(fingerprint)
  return Effect.promise(() => bindingHashOf({ ...Object.fromEntries(given), is_container }))
}

const isOffline = (body: Buffer): boolean => {
  const { data, ...envelope } = parsed(body)
  return "ciphertext" in envelope || (typeof data === "object" && data !== null && "ciphertext" in data)
}

const parsed = (body: Buffer): { readonly [member: string]: unknown } => {
  const value = Result.getOrUndefined(Result.try(() => JSON.parse(body.toString()) as unknown))
  return typeof value === "object" && value !== null ? { ...value } : {}
}

/** An envelope in a response is signed twice: the response is signed, and so is the encrypted payload. */
const judge = Effect.fnUntraced(function* (
  keys: ReadonlyArray<TrustedKey>,
  body: Buffer,
  licenseKey: string | undefined,
  expected: Expected
) {
  const judgeText = judgeOf(keys)
  const believe = (text: string, expected?: Expected) => attempt(() => judgeText(text, expected))
  const open = (key: string, envelope: string) => attempt(() => openEnvelope(key, envelope))
  // Bytes that are no text cannot be a signed response.
  const text = yield* Effect.mapError(
    Effect.fromResult(Result.try(() => textOf(body))),
    () => new Distrusted("signature")
  )
  if (licenseKey === undefined || !isOffline(body)) return yield* believe(text, expected)
  if (!body.includes('"signature"')) return yield* believe(yield* open(licenseKey, text), expected)
  yield* believe(text)
  return yield* believe(yield* open(licenseKey, membersOf(text).get("data") ?? ""), expected)
})

const attempt = <A>(judged: () => Promise<A>) => Effect.tryPromise({ try: judged, catch: (error) => error })

const breaches: { readonly [rule in Rule]: string } = {
  envelope: "the license key does not open it",
  signature: "it is no signed response, or the signature does not match its bytes",
  kid: "none of the keys has signed it",
  kind: "it is of another kind",
  license: "it is about another license",
  product: "it is about another product",
  binding: "it is for another machine or container",
  nonce: "it answers another request",
  times: "it has ended, its times are malformed, or the clock is more than five minutes behind them"
}

const uncheckedRules = (member: "data" | "error", expected: Expected): ReadonlyArray<string> =>
  [
    ["kind", member === "data" ? expected.kind : undefined],
    ["license", expected.license_id],
    ["product", (member === "data" ? expected.product_code : undefined) ?? expected.product_id],
    ["binding", member === "data" ? expected.binding : undefined],
    ["nonce", expected.nonce]
  ].flatMap(([rule, given]) => (given === undefined ? [String(rule)] : []))
