/** How the verifiers of docs/verifying/ are built and run, and what they must print. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))
const home = `${root}docs/verifying`
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
}

const netHttp = "mcs -r:System.Net.Http.dll"
/** Debian's name of the library, where a package for .NET brings its own. */
const libraryMap = `<configuration><dllmap dll="libsodium" target="libsodium.so.23"/></configuration>`

const python = (): Language => ({
  name: "Python",
  needs: "python3 with the package cryptography",
  probe: ["python3", "-c", "import cryptography"],
  builds: [],
  run: ["python3", `${home}/licensing.py`]
})

const go = (folder: string): Language => ({
  name: "Go",
  needs: "Go 1.24 or newer",
  probe: ["go", "list", "crypto/hkdf"],
  builds: [["go", "build", "-o", `${folder}/go`, `${home}/go/licensing.go`, `${home}/go/check.go`]],
  run: [`${folder}/go`]
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
      "-J-XX:TieredStopAtLevel=1",
      "-Xlint:all,-serial",
      "-Werror",
      "-d",
      `${folder}/java`,
      `${home}/Licensing.java`
    ]
  ],
  // Programs of a second: the optimizing compiler would take longer than it saves.
  run: ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", `${folder}/java`, "Licensing"]
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
    ["sh", "-c", `${netHttp} -define:LICENSING_CHECK -out:${folder}/check.exe ${home}/Licensing.cs`],
    ["sh", "-c", `echo '${libraryMap}' > ${folder}/check.exe.config`]
  ],
  run: ["mono", `${folder}/check.exe`]
})

const cpp = (folder: string): Language => ({
  name: "C++",
  needs: "g++ and OpenSSL's headers",
  probe: ["g++", "-fsyntax-only", "-x", "c++", "-include", "openssl/evp.h", "/dev/null"],
  builds: [
    [
      ...(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"] as const),
      ...["-fno-sanitize-recover=all", "-DLICENSING_CHECK", `${home}/licensing.cpp`, "-lcrypto", "-o", `${folder}/cpp`]
    ]
  ],
  run: [`${folder}/cpp`]
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
