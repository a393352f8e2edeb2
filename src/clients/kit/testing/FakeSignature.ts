/** Signs as the service does: Ed25519 over canonical JSON, and offline envelopes under the license key. */
import type { TrustedKey } from "../judging/Judge.ts"
import { platform } from "../sending/Platform.ts"
import { toBase64 } from "../texts/ResponseText.ts"

export interface FakeKey {
  readonly kid: string
  readonly published: TrustedKey
  /** The canonical JSON of `content` as this member of a response, with its signature; without `meta` as an envelope has it. */
  sign(member: "data" | "error", content: object, meta?: object): Promise<string>
}

const utf8 = new TextEncoder()

export const makeFakeKey = async (kid: string): Promise<FakeKey> => {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as {
    readonly publicKey: Parameters<typeof crypto.subtle.exportKey>[1]
    readonly privateKey: Parameters<typeof crypto.subtle.sign>[1]
  }
  const bytes = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey))
  return {
    kid,
    published: { kid, algorithm: "Ed25519", public_key: toBase64(bytes), status: "active" },
    sign: async (member, content, meta) => {
      const text = canonical(content)
      const value = toBase64(new Uint8Array(await crypto.subtle.sign("Ed25519", pair.privateKey, utf8.encode(text))))
      const signature = JSON.stringify({ alg: "Ed25519", kid, value })
      const end = meta === undefined ? "}" : `,"meta":${JSON.stringify(meta)}}`
      return `{"${member}":${text},"signature":${signature}${end}`
    }
  }
}

/** RFC 8785 for what responses contain: texts, whole numbers, lists and objects. Absent members are left out. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  const sorted = members.sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${sorted.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`
}

/** The envelope of a signed text, as POST /license/offline gives it. */
export const sealed = async (licenseKey: string, kid: string, text: string) => {
  const [salt, nonce] = [new Uint8Array(platform.randomBytes(32)), new Uint8Array(platform.randomBytes(12))]
  const secret = await crypto.subtle.importKey("raw", utf8.encode(licenseKey), "HKDF", false, ["deriveKey"])
  const derivation = { name: "HKDF", hash: "SHA-256", salt, info: utf8.encode("licensing-service/offline/v1") }
  const key = await crypto.subtle.deriveKey(derivation, secret, { name: "AES-GCM", length: 256 }, false, ["encrypt"])
  const algorithm = { name: "AES-GCM", iv: nonce, additionalData: utf8.encode(kid), tagLength: 128 }
  const ciphertext = new Uint8Array(await crypto.subtle.encrypt(algorithm, key, utf8.encode(text)))
  return { kid, salt: toBase64(salt), nonce: toBase64(nonce), ciphertext: toBase64(ciphertext) }
}
