/** The devices of a license. */
import type { Device } from "../../../licensing/model/Device.ts"
import type { License } from "../../../licensing/model/License.ts"
import { DeviceActions, ResetDevice } from "../devices/DeviceActions.tsx"
import { deviceName } from "../parts/LicenseName.ts"
import { Pagination, usePages } from "../parts/Pagination.tsx"
import { Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"

interface Props {
  readonly license: License
  readonly mayChange: boolean
}

export const Devices = ({ license: { id }, mayChange }: Props) => {
  const { earlier, query, ...pages } = usePages()
  const devices = useAsk("listDevices", { params: { id }, query })
  return (
    <Section id="devices" title="Devices">
      <Loaded of={devices}>
        {(page) => (
          <>
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
            <Pagination page={page} earlier={earlier} {...pages} />
          </>
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
