/** What both ways of identifying a machine have in common: the options, and the text that does not lead back to the machine. */
import type { Store } from "../sending/Platform.ts"

export interface MachineIdOptions {
  /** The code of the application's product: each product gets another id of the same machine. */
  readonly product: string
  /** In a browser only: keeps the random id; localStorage unless given. */
  readonly store?: Store
}

const productPattern = /^[a-z0-9][a-z0-9._-]{0,63}$/

export const checkProduct = (product: string): void => {
  if (!productPattern.test(product))
    throw new TypeError("machineId: product is the code of the product, as editor-pro.")
}

/** HMAC-SHA-256 under the machine's own id, in hex: neither the service nor another product learns that id. */
export const saltedId = async (source: string, id: string, product: string): Promise<string> => {
  const utf8 = new TextEncoder()
  const algorithm = { name: "HMAC", hash: "SHA-256" }
  const key = await crypto.subtle.importKey("raw", utf8.encode(`${source}:${id}`), algorithm, false, ["sign"])
  const text = utf8.encode(`licensing-service/machine-id/v1:${product}`)
  return hexOf(new Uint8Array(await crypto.subtle.sign("HMAC", key, text)))
}

export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
