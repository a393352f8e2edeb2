/** The devices of a license. */
import type { Device } from "../../licenses/model/Device.ts"
import type { License } from "../../licenses/model/License.ts"
import { Action } from "../parts/Dialog.tsx"
import { Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { change, useAsk } from "../service/Hooks.ts"
import { More, usePages } from "./More.tsx"

interface Props {
  readonly license: License
  readonly mayChange: boolean
}

const nameOf = (device: Device) => device.hostname ?? device.fingerprint ?? device.pod_name ?? device.id

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
              empty="No device has activated this license."
              columns={[
                {
                  title: "Device",
                  show: (device) => (
                    <>
                      {nameOf(device)}
                      <small>{[device.os, device.ip_address].filter(Boolean).join(" · ")}</small>
                    </>
                  )
                },
                { title: "Status", show: ({ status }) => <Status of={status} /> },
                { title: "Last seen", show: ({ last_seen_at }) => <Time at={last_seen_at} /> },
                { title: "First seen", show: ({ first_seen_at }) => <Time at={first_seen_at} only="day" /> },
                {
                  title: "Actions",
                  quiet: true,
                  number: true,
                  show: (device) => mayChange && <DeviceActions device={device} />
                }
              ]}
            />
            <More page={page} earlier={earlier} {...pages} />
          </>
        )}
      </Loaded>
    </Section>
  )
}

const DeviceActions = ({ device }: { readonly device: Device }) => {
  const params = { id: device.license_id, device_id: device.id }
  const name = nameOf(device)
  if (device.status === "blacklisted")
    return (
      <Action
        label="Unblock"
        name={`Unblock ${name}`}
        effect={`${name} may be activated again. It takes a slot only then.`}
        run={() => change("unblacklistDevice", { params })}
      />
    )
  return (
    <div className="row end">
      <Action
        label="Reset"
        name={`Reset ${name}`}
        effect={`The slot and the seat of ${name} become free. It stops working at its next validation and may be activated again.`}
        run={() => change("resetDevice", { params })}
      />
      <Action
        label="Block"
        name={`Block ${name}`}
        effect={`${name} can use this license no more, until it is unblocked. Its slot and its seat become free.`}
        danger
        run={() => change("blacklistDevice", { params })}
      />
    </div>
  )
}
