/** Devices with their licenses and those licenses' customers, read with one statement for each kind of record. */
import { Context, Effect, Layer } from "effect"
import type { Page } from "../../contract/api/Paging.ts"
import { Customers } from "../../vendor/customers/Customers.ts"
import { byId } from "../management/ExpandedLicenses.ts"
import { LicenseList } from "../management/LicenseList.ts"
import type { Device, DeviceExpandable } from "../model/Device.ts"
import { AllDevices, type AllDevicesFilter } from "./AllDevices.ts"

interface Expansion {
  readonly expand?: ReadonlyArray<DeviceExpandable>
}

export class ExpandedDevices extends Context.Service<
  ExpandedDevices,
  { list(filter: AllDevicesFilter & Expansion): Effect.Effect<Page<Device>> }
>()("licensing/licensing/devices/ExpandedDevices") {
  static readonly layer = Layer.effect(
    ExpandedDevices,
    Effect.gen(function* () {
      const devices = yield* AllDevices
      const licenses = yield* LicenseList
      const customers = yield* Customers

      const list = Effect.fn("ExpandedDevices.list")(function* ({ expand, ...filter }: AllDevicesFilter & Expansion) {
        const page = yield* devices.list(filter)
        if (expand === undefined) return page
        const found = yield* licenses.many([...new Set(page.items.map(({ license_id }) => license_id))])
        const ids = expand.includes("customer") ? found.flatMap(({ customer_id = [] }) => customer_id) : []
        const [licenseOf, customerOf] = [byId(found), byId(yield* customers.many([...new Set(ids)]))]
        const items = page.items.map((device): Device => {
          const license = licenseOf.get(device.license_id)
          const customer = customerOf.get(license?.customer_id ?? "")
          return {
            ...device,
            expanded: {
              ...(license !== undefined && expand.includes("license") && { license }),
              ...(customer !== undefined && { customer })
            }
          }
        })
        return { ...page, items }
      })

      return ExpandedDevices.of({ list })
    })
  )
}
