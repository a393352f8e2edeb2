/** The devices that use a license. */
import { Meter } from "../console/look/Meter.tsx"
import { useFormats, useTexts } from "./Language.tsx"
import { Card } from "./Parts.tsx"
import type { LicenseDetails } from "./Session.tsx"

interface Props {
  readonly license: LicenseDetails
  readonly onChanged: () => void
}

export const Devices = ({ license: { active_device_count: used, devices, limits } }: Props) => {
  const texts = useTexts()
  const { day } = useFormats()
  const limit = limits.max_activations
  return (
    <Card heading={texts.devices}>
      <p>{limit === 0 ? texts.devicesUnlimited(used) : texts.devicesUsed(used, limit)}</p>
      {limit > 0 && <Meter used={used} of={limit} />}
      {devices.length === 0 && <p className="quiet">{texts.noDevices}</p>}
      <ul className="rows">
        {devices.map((device) => (
          <li key={device.id}>
            <div className="what">
              <strong>{device.name ?? texts.unnamedDevice}</strong>
              <small>
                {[device.os, texts.lastSeen(day(device.last_seen_at))].filter((part) => part !== undefined).join(" · ")}
              </small>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  )
}
