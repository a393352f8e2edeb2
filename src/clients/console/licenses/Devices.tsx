/** The devices of a license: the first ones, until one asks for all or a link leads to them. */
import type { Device } from "../../../licensing/model/Device.ts"
import type { License } from "../../../licensing/model/License.ts"
import { DeviceActions, ResetDevice } from "../devices/DeviceActions.tsx"
import { useFew } from "../parts/Few.tsx"
import { dayOf } from "../parts/Format.ts"
import { deviceName } from "../parts/LicenseName.ts"
import { firstPage, Pagination, usePages } from "../parts/Pagination.tsx"
import { Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { lastOf, useAsk, useAskEach, useAskPart } from "../service/Hooks.ts"
import { now } from "../service/Service.ts"

interface Props {
  readonly license: License
  readonly mayChange: boolean
}

/** So many rows have the class `few`. */
const fewMax = 3

export const Devices = ({ license, mayChange }: Props) => {
  const { id } = license
  const { earlier, query, ...pages } = usePages()
  const devices = useAskPart("listDevices", { params: { id }, query })
  const { items = [], next } = lastOf(devices) ?? {}
  const { isFew, toggle } = useFew("devices", earlier ? 0 : items.length, fewMax, next !== undefined)
  const placeOf = usePlaces(license, earlier || next !== undefined ? undefined : items)
  return (
    <Section id="devices" title="Devices" actions={toggle}>
      <Loaded of={devices}>
        {(page) => (
          <div className={isFew ? "loaded few" : "loaded"}>
            <Table
              caption="Devices"
              rows={page.items}
              keyOf={({ id }) => id}
              icon="device"
              empty="No device has activated this license."
              columns={[
                {
                  title: "Device",
                  show: (device) => (
                    <>
                      {deviceName(device)}
                      <small>{[device.os, device.ip_address].filter(Boolean).join(" · ")}</small>
                    </>
                  )
                },
                {
                  title: "Status",
                  show: (device) => (
                    <>
                      <Status of={device.status} />
                      <small>{[placeOf(device), heldOf(device)].filter(Boolean).join(", ")}</small>
                    </>
                  )
                },
                { title: "Last seen", goes: "last", show: ({ last_seen_at }) => <Time at={last_seen_at} /> },
                {
                  title: "First seen",
                  goes: "first",
                  show: ({ first_seen_at }) => <Time at={first_seen_at} only="day" />
                },
                {
                  title: "Actions",
                  quiet: true,
                  number: true,
                  show: (device) => mayChange && <Actions device={device} />
                }
              ]}
            />
            {!isFew && <Pagination page={page} earlier={earlier} {...pages} />}
          </div>
        )}
      </Loaded>
    </Section>
  )
}

const isHeld = ({ slot_held_until = 0 }: Device) => slot_held_until > now()

/** The slot of a device that may work offline stays taken until its license file ends. */
const heldOf = (device: Device) => isHeld(device) && `slot held until ${dayOf(device.slot_held_until!)}`

const devicesMax = 200

/** How many slots are held, which a license does not tell. Undefined if it has too many devices to count them. */
export const useHeldSlots = ({ id }: License): number | undefined => {
  const params = { id }
  const first = lastOf(useAsk("listDevices", { params, query: firstPage }))
  const [all] = useAskEach("listDevices", first?.next ? [{ params, query: { limit: devicesMax } }] : [])
  const page = first?.next ? all && lastOf(all) : first
  return page === undefined || page.next ? undefined : page.items.filter(isHeld).length
}

const leasesMax = 200

/**
 * What an active device takes: a slot of those for devices, a floating seat, or both. The API does not tell slots by device, but counts them: whether
 * holders of seats have slots, too, is known if all devices were read, and all or none of the holders have one.
 */
const usePlaces = ({ active_device_count, id, limits }: License, all: ReadonlyArray<Device> | undefined) => {
  const hasSeats = (limits.max_floating_users ?? 0) > 0
  const [asked] = useAskEach("listLicenseLeases", hasSeats ? [{ params: { id }, query: { limit: leasesMax } }] : [])
  const leases = asked && lastOf(asked)
  const holders = new Set(leases?.items.map(({ device_id }) => device_id))
  const active = all?.filter(({ status }) => status === "active").length
  const haveBoth = active !== undefined && active === active_device_count
  return ({ id, status }: Device): string => {
    if (leases === undefined || status !== "active") return ""
    if (holders.has(id)) return haveBoth ? "slot and seat" : "seat"
    return leases.next === undefined ? "slot" : ""
  }
}

const Actions = ({ device }: { readonly device: Device }) => {
  const isActive = device.status === "active"
  return (
    <div className="row end">
      {isActive && <ResetDevice device={device} />}
      <DeviceActions device={device} hasReset={!isActive} />
    </div>
  )
}
