/** A browser shows no machine: a random id of the product, which the browser's profile keeps. */
import { platform, type Store } from "../sending/Platform.ts"
import { checkProduct, hexOf, type MachineIdOptions } from "./MachineText.ts"

export type { MachineIdOptions } from "./MachineText.ts"

/** 64 hex characters: the kept ones, or new ones that are kept from now on. */
export const machineId = async ({ product, store }: MachineIdOptions): Promise<string> => {
  checkProduct(product)
  const its = store ?? localStore(`licensing-service/machine-id/${product}`)
  const kept = await its.read()
  if (kept != null && /^[0-9a-f]{64}$/.test(kept)) return kept
  const id = hexOf(platform.randomBytes(32))
  await its.write(id)
  if ((await its.read()) !== id) throw new Error("machineId: the store did not keep the id. Give another store.")
  return id
}

interface Storage {
  getItem(name: string): string | null
  setItem(name: string, text: string): void
}

/** Workers have no localStorage; a browser that stores nothing throws when it is touched. */
const localStore = (name: string): Store => {
  const storage = () => {
    const { localStorage } = globalThis as { readonly localStorage?: Storage }
    if (localStorage === undefined)
      throw new Error("machineId: there is no localStorage here. Give a store, as the kit's.")
    return localStorage
  }
  return { read: () => storage().getItem(name), write: (text) => storage().setItem(name, text) }
}
