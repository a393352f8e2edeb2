/** How the verifiers of docs/clients/ are built and run, and what they must print. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { hostileWords } from "./Hostile.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const home = `${root}docs/clients`
export const vectorFolder = `${root}schema/vectors`

export type Command = readonly [program: string, ...args: ReadonlyArray<string>]

export interface Language {
  readonly name: string
  /** What the machine must have, as the reason of a skipped test says it. */
  readonly needs: string
  /** Succeeds only on a machine that has it, and downloads nothing. */
  readonly probe: Command
  readonly builds: ReadonlyArray<Command>
  readonly run: Command
  /** Set if the language has a kit, which decides, beside the verifier. */
  readonly hasKit?: true
}

const netHttp = "mcs -r:System.Net.Http.dll"
/** Debian's name of the library, where a package for .NET brings its own. */
const libraryMap = `<configuration><dllmap dll="libsodium" target="libsodium.so.23"/></configuration>`

const python = (): Language => ({
  name: "Python",
  needs: "python3 with the package cryptography",
  probe: ["python3", "-c", "import cryptography"],
  builds: [],
  // Leaves no byte code in the sources.
  run: ["python3", "-B", `${home}/license_kit_check.py`],
  hasKit: true
})

const go = (folder: string): Language => ({
  name: "Go",
  needs: "Go 1.24 or newer",
  probe: ["go", "list", "crypto/hkdf"],
  builds: [
    ["go", "vet", "-C", `${home}/go`, "./..."],
    ["go", "build", "-C", `${home}/go`, "-o", `${folder}/go`, "./check"]
  ],
  run: [`${folder}/go`],
  hasKit: true
})

const rust = (folder: string): Language => ({
  name: "Rust",
  needs: "cargo, with the crate ring downloaded",
  probe: ["cargo", "tree", "--offline", "--locked", "--manifest-path", `${home}/rust/Cargo.toml`],
  builds: [
    [
      // Without what a debugger needs.
      ...(["cargo", "build", "--offline", "--locked", "--config", "profile.dev.debug=0"] as const),
      ...["--manifest-path", `${home}/rust/Cargo.toml`, "--target-dir", `${folder}/rust`]
    ]
  ],
  run: [`${folder}/rust/debug/licensing-check`]
})

const java = (folder: string): Language => ({
  name: "Java",
  needs: "a JDK 17 or newer",
  probe: ["javac", "--release", "17", "-version"],
  builds: [
    [
      "javac",
      "-Xlint:all,-serial",
      "-Werror",
      "-d",
      `${folder}/java`,
      ...["Licensing", "LicenseKit", "LicenseKitCheck"].map((name) => `${home}/${name}.java`)
    ]
  ],
  run: ["java", "-cp", `${folder}/java`, "LicenseKitCheck"],
  hasKit: true
})

const csharp = (folder: string): Language => ({
  name: "C#",
  needs: "mcs and mono with System.Net.Http, and libsodium.so.23",
  probe: [
    "sh",
    "-c",
    `cd ${folder} && echo "class P {}" > P.cs && ${netHttp} -target:library P.cs && ldconfig -p | grep -q libsodium.so.23`
  ],
  builds: [
    [
      "sh",
      "-c",
      `${netHttp} -warnaserror -define:LICENSING_CHECK -main:Licensing.LicenseKitCheck -out:${folder}/check.exe ${home}/*.cs`
    ],
    ["sh", "-c", `echo '${libraryMap}' > ${folder}/check.exe.config`]
  ],
  run: ["mono", `${folder}/check.exe`],
  hasKit: true
})

const cpp = (folder: string): Language => ({
  name: "C++",
  needs: "g++ and the headers of OpenSSL and libcurl",
  probe: ["g++", "-fsyntax-only", "-x", "c++", "-include", "openssl/evp.h", "-include", "curl/curl.h", "/dev/null"],
  builds: [
    [
      ...(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"] as const),
      ...["-fno-sanitize-recover=all", `${home}/check.cpp`, "-lcrypto", "-lcurl", "-o", `${folder}/cpp`]
    ]
  ],
  run: [`${folder}/cpp`],
  hasKit: true
})

const swift = (folder: string): Language => ({
  name: "Swift",
  needs: "swiftc with CryptoKit",
  probe: ["sh", "-c", `echo 'import CryptoKit' > ${folder}/probe.swift && swiftc -typecheck ${folder}/probe.swift`],
  builds: [["swiftc", "-DLICENSING_CHECK", "-parse-as-library", `${home}/Licensing.swift`, "-o", `${folder}/swift`]],
  run: [`${folder}/swift`]
})

/** All that is built goes into the folder. */
export const languagesIn = (folder: string): ReadonlyArray<Language> =>
  [python, go, rust, java, csharp, cpp, swift].map((language) => language(folder))

interface Vector {
  readonly name: string
  readonly verdict: string
  readonly rule?: string
  readonly reason?: string
  readonly scheme: string
  readonly kind: string
  readonly hash: string
  readonly request: string
}

const read = (name: string) =>
  JSON.parse(readFileSync(`${vectorFolder}/${name}.json`, "utf8")) as Readonly<Record<string, ReadonlyArray<Vector>>>

interface Decisions {
  readonly scenarios: ReadonlyArray<{ readonly name: string; readonly steps: ReadonlyArray<object> }>
}

/** The lines that a right kit prints beside those of its verifier. */
export const kitLines = (): ReadonlyArray<string> => {
  const { scenarios } = read("decisions") as unknown as Decisions
  const keys = read("license-keys")["valid"] as unknown as ReadonlyArray<{
    readonly input: string
    readonly canonical: string
  }>
  return [
    ...scenarios.flatMap(({ name, steps }) =>
      steps.map((_, index) => `decisions: ${name}, step ${index + 1}: as expected`)
    ),
    ...keys.map(({ canonical, input }) => `license-keys: ${input}: ${canonical}`)
  ]
}

/** The lines that a right verifier prints, in any order, but for its last one. */
export const wantedLines = (): ReadonlyArray<string> => {
  const lines = (file: string, vectors: ReadonlyArray<Vector> = [], verdictOf: (vector: Vector) => string) =>
    vectors.map((vector) => `${file}: ${vector.name}: ${verdictOf(vector)}`)
  const [signatures, offline] = [read("signatures"), read("offline-envelopes")]
  const [hostile, airGap] = [read("hostile"), read("air-gap")]
  const rule = (vector: Vector) => vector.rule ?? vector.verdict
  return [
    ...lines("signatures", signatures["valid"], () => "believe"),
    ...lines("signatures", signatures["invalid"], () => "signature"),
    ...lines("offline-envelopes", offline["valid"], () => "believe"),
    ...lines("offline-envelopes", offline["invalid"], () => "envelope"),
    ...lines("responses", read("responses")["vectors"], rule),
    ...lines("hostile responses", hostile["responses"], rule),
    ...lines("hostile envelopes", hostile["envelopes"], rule),
    ...lines("air-gap requests", airGap["requests"], ({ request }) => request),
    ...lines("air-gap envelopes", airGap["envelopes"], rule),
    ...lines("bindings", read("bindings")["vectors"], ({ hash, kind }) => `${kind} ${hash}`),
    ...(read("webhooks")["vectors"] ?? []).map(
      ({ name, reason, scheme, verdict }) => `webhooks ${scheme}: ${name}: ${reason ?? verdict}`
    )
  ]
}

/** What a life with a running service comes to, and then with servers that are none. */
export const livedWords = [
  "activate: granted, run LICENSED",
  "validate: granted, run LICENSED",
  "consume: granted, run LICENSED",
  "consume again: granted, run LICENSED",
  "remaining: 8",
  "consume too much: not granted, warn USAGE_LIMIT_EXCEEDED",
  "offline: granted, run LICENSED",
  "restart: run LICENSED",
  "a key in another form: not opened",
  ...hostileWords,
  "devices: granted, run LICENSED",
  "other device: not granted, warn DEVICE_NOT_FOUND",
  "deactivate: granted, ask NOT_ACTIVATED",
  "checkout: granted, run LICENSED",
  "threads: run LICENSED, 8",
  "checkin: granted, ask NOT_ACTIVATED",
  "trial: granted, run LICENSED",
  "trial again: not granted, ask TRIAL_ALREADY_USED",
  "devices: 1"
]
