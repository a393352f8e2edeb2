/** The devices that use a license. */
import { useState } from "react"
import { Meter } from "../console/look/Meter.tsx"
import { ask } from "./Ask.ts"
import { useFormats, useTexts } from "./Language.tsx"
import { Card, Confirmation, Done, Newest } from "./Parts.tsx"
import { type LicenseDetails, useAction, useSession } from "./Session.tsx"

interface Props {
  readonly license: LicenseDetails
  readonly onChanged: () => void
}

type Device = LicenseDetails["devices"][number]

export const Devices = ({ license, onChanged }: Props) => {
  const { devices, id, limits, status, taken_container_slots: containers, taken_slots: used } = license
  const texts = useTexts()
  const { day } = useFormats()
  const { leave } = useSession()
  const [chosen, setChosen] = useState<Device>()
  const [said, setSaid] = useState("")
  const { isBusy, refused, run } = useAction(() => leave("ended"))
  const limit = limits.max_activations
  const mayDeactivate = limits.self_deactivations_per_month > 0 && status !== "revoked"
  const nameOf = ({ name }: Device) => name ?? texts.unnamedDevice
  const deactivate = (device: Device) =>
    void run(async () => {
      const params = { license_id: id, device_id: device.id }
      const result = await ask("POST /licenses/:license_id/devices/:device_id/deactivate", { params })
      // Another tab, or the machine itself, was faster.
      const isDone = "answer" in result || result.refused.code === "DEVICE_STATE_CONFLICT"
      return isDone ? { answer: true } : result
    }).then((isDone) => {
      if (isDone === undefined) return
      setChosen(undefined)
      setSaid(texts.deactivated(nameOf(device)))
      onChanged()
    })
  return (
    <Card heading={texts.devices}>
      <p>{limit === 0 ? texts.devicesUnlimited(used) : texts.devicesUsed(used, limit)}</p>
      {limit > 0 && <Meter used={used} of={limit} />}
      {containers !== undefined && <p>{texts.containersUsed(containers, limits.max_container_instances ?? 0)}</p>}
      {devices.length === 0 && <p className="quiet">{texts.noDevices}</p>}
      <ul className="rows">
        {devices.map((device) => (
          <li key={device.id}>
            <div className="what">
              <strong>{nameOf(device)}</strong>
              <small>
                {[
                  device.os,
                  device.slot_held_until === undefined
                    ? texts.lastSeen(day(device.last_seen_at))
                    : texts.heldUntil(day(device.slot_held_until))
                ]
                  .filter((part) => part !== undefined)
                  .join(" · ")}
              </small>
            </div>
            {mayDeactivate && device.slot_held_until === undefined && (
              <button
                type="button"
                aria-label={texts.deactivateDevice(nameOf(device))}
                onClick={() => {
                  setSaid("")
                  setChosen(device)
                }}
              >
                {texts.deactivate}
              </button>
            )}
          </li>
        ))}
      </ul>
      <Newest of={license.device_count} shown={devices.length} />
      <Done>{said}</Done>
      {chosen !== undefined && (
        <Confirmation
          title={texts.deactivateTitle(nameOf(chosen))}
          text={texts.deactivateText}
          action={texts.deactivate}
          isBusy={isBusy}
          refused={refused}
          onConfirm={() => deactivate(chosen)}
          onClose={() => setChosen(undefined)}
        />
      )}
    </Card>
  )
}
