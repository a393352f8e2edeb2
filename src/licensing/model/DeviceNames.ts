/** The names that a machine sends with its requests. */
import type { DeviceRecord } from "./LicenseRecords.ts"

type Names = Pick<DeviceRecord, "hostname" | "os" | "ip_address">

/** The names in the request, otherwise those of earlier requests. */
export const namesOf = (existing: DeviceRecord | undefined, { hostname, ip_address, os }: Names): Names => ({
  hostname: hostname ?? existing?.hostname,
  os: os ?? existing?.os,
  ip_address: ip_address ?? existing?.ip_address
})

export const isRenamed = (device: DeviceRecord, { hostname, ip_address, os }: Names): boolean =>
  (hostname !== undefined && hostname !== device.hostname) ||
  (os !== undefined && os !== device.os) ||
  (ip_address !== undefined && ip_address !== device.ip_address)
