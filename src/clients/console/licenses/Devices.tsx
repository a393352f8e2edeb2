/** The devices of a license: the first ones, until one asks for all or a link leads to them. */
import { useRouterState } from "@tanstack/react-router"
import { useState } from "react"
import type { Device } from "../../../licensing/model/Device.ts"
import type { License } from "../../../licensing/model/License.ts"
import { DeviceActions, ResetDevice } from "../devices/DeviceActions.tsx"
import { deviceName } from "../parts/LicenseName.ts"
import { Pagination, usePages } from "../parts/Pagination.tsx"
import { Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { lastOf, useAsk } from "../service/Hooks.ts"

interface Props {
  readonly license: License
  readonly mayChange: boolean
}

/** So many rows have the class `few`. */
const fewMax = 4

export const Devices = ({ license: { id }, mayChange }: Props) => {
  const { earlier, query, ...pages } = usePages()
  const devices = useAsk("listDevices", { params: { id }, query })
  const isLinked = useRouterState({ select: ({ location }) => location.hash === "devices" })
  const [chosen, setChosen] = useState<boolean>()
  const { items = [], next } = lastOf(devices) ?? {}
  const isFew = !earlier && items.length > fewMax && !(chosen ?? isLinked)
  return (
    <Section
      id="devices"
      title="Devices"
      actions={
        !earlier &&
        items.length > fewMax && (
          <button type="button" className="quiet" onClick={() => setChosen(isFew)}>
            {!isFew ? "Show fewer" : next === undefined ? `Show all ${items.length}` : "Show all"}
          </button>
        )
      }
    >
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
                { title: "Status", show: ({ status }) => <Status of={status} /> },
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

const Actions = ({ device }: { readonly device: Device }) => {
  const isActive = device.status === "active"
  return (
    <div className="row end">
      {isActive && <ResetDevice device={device} />}
      <DeviceActions device={device} hasReset={!isActive} />
    </div>
  )
}
