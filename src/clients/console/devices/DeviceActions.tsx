/** What can be done with a device. */
import type { Device } from "../../../licensing/model/Device.ts"
import { Consequences } from "../consequences/Consequences.tsx"
import { Action } from "../parts/Dialog.tsx"
import { type FieldsOf, flag } from "../parts/Fields.tsx"
import { deviceName } from "../parts/LicenseName.ts"
import { Menu } from "../parts/Menu.tsx"
import { undoOfState, unlessDone } from "../parts/Undo.ts"
import { change } from "../service/Hooks.ts"
import { type Payload, send } from "../service/Service.ts"

interface Props {
  readonly device: Device
}

type Reset = Payload<"resetDevice">

const reset: FieldsOf<Reset> = {
  release_borrowed: flag("Also free a borrowed seat", { hint: "Its device may go on using it without a connection." })
}

/** The most frequent action, beside the menu of the others. */
export const ResetDevice = ({ device }: Props) => {
  const name = deviceName(device)
  return (
    <Action
      label="Reset"
      name={`Reset ${name}`}
      effect={`The slot and the seat of ${name} become free. It stops working at its next validation and may be activated again.`}
      fields={reset}
      preview={(chosen: Reset) => (
        <Consequences
          id={device.license_id}
          change={{ action: "reset_device", parameters: { ...chosen, device_id: device.id } }}
        />
      )}
      run={(payload: Reset) =>
        change("resetDevice", { params: { id: device.license_id, device_id: device.id }, payload })
      }
    />
  )
}

const isBlocked = ({ status }: Device) => status === "blacklisted"
const isAs =
  (after: Device) =>
  ({ updated_at }: Device) =>
    updated_at === after.updated_at

export const DeviceActions = ({ device, hasReset = true }: Props & { readonly hasReset?: boolean }) => {
  const params = { id: device.license_id, device_id: device.id }
  const name = deviceName(device)
  const read = send("getDevice", { params })
  if (isBlocked(device))
    return (
      <Menu label={`Actions for ${name}`} quiet>
        <Action
          label="Unblock"
          name={`Unblock ${name}`}
          effect={`${name} may be activated again. It takes a slot only then.`}
          run={() =>
            unlessDone({ noun: "device", read, isDone: (found) => !isBlocked(found) }, "unblacklistDevice", { params })
          }
          undo={(after) => ({
            said: `${name} is unblocked.`,
            run: undoOfState({
              read,
              isBack: isBlocked,
              isOwn: isAs(after),
              back: () => send("blacklistDevice", { params })
            })
          })}
        />
      </Menu>
    )
  return (
    <Menu label={`Actions for ${name}`} quiet>
      {hasReset && <ResetDevice device={device} />}
      <Action
        label="Block"
        name={`Block ${name}`}
        effect={`${name} can use this license no more, until it is unblocked. Its slot and its seat become free.`}
        danger
        preview={() => (
          <Consequences
            id={device.license_id}
            change={{ action: "blacklist_device", parameters: { device_id: device.id } }}
          />
        )}
        run={() => unlessDone({ noun: "device", read, isDone: isBlocked }, "blacklistDevice", { params })}
        undo={(after) => ({
          said: `${name} is blocked. If you undo it, it can be activated again.`,
          run: undoOfState({
            read,
            isBack: (found) => !isBlocked(found),
            isOwn: isAs(after),
            back: () => send("unblacklistDevice", { params })
          })
        })}
      />
    </Menu>
  )
}
