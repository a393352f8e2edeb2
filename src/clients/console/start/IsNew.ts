/** Whether the service is new: at most one license, and no device. */
import { causeOf, lastOf, useAsk } from "../service/Hooks.ts"

/** Undefined while that is not known. */
export const useIsNew = (): boolean | undefined => {
  const licenses = useAsk("listLicenses", { query: { limit: 2 } })
  const devices = useAsk("listAllDevices", { query: { limit: 1 } })
  const [someLicenses, someDevices] = [lastOf(licenses), lastOf(devices)]
  if (someLicenses !== undefined && someDevices !== undefined)
    return someLicenses.items.length < 2 && someDevices.items.length === 0
  return causeOf(licenses) !== undefined || causeOf(devices) !== undefined ? false : undefined
}
