/** The devices of all licenses. */
import { getRouteApi, Link } from "@tanstack/react-router"
import { AsyncResult } from "effect/reactivity"
import { useState } from "react"
import { type Device, DeviceBindingKind, DeviceStatus } from "../../../licensing/model/Device.ts"
import { Empty } from "../parts/Empty.tsx"
import { choicesOf } from "../parts/Fields.tsx"
import { sentenceOf } from "../parts/Format.ts"
import { deviceName, licenseName } from "../parts/LicenseName.ts"
import { type Column, Heading, Status, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { Filter, isPart, List, pageOf, TextFilter, useNarrow } from "../tables/List.tsx"
import { ProductFilter } from "../tables/ListFields.tsx"
import { Views } from "../tables/Views.tsx"
import { DeviceActions } from "./DeviceActions.tsx"
import { type DeviceSearch, filtersOf, Seen } from "./DeviceSearch.ts"

const route = getRouteApi("/devices")
const statuses = choicesOf(DeviceStatus.literals)
const kinds = choicesOf(DeviceBindingKind.literals)
const periods = choicesOf(Seen.literals)

const ownerOf = ({ expanded: { customer, license } = {} }: Device): string => {
  if (license === undefined) return "Open the license"
  return licenseName({ ...license, expanded: customer === undefined ? {} : { customer } })
}

const columns: ReadonlyArray<Column<Device>> = [
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
  {
    title: "Kind",
    goes: "first",
    show: ({ binding_kind, is_vm }) => (is_vm ? "Virtual machine" : sentenceOf(binding_kind))
  },
  { title: "Last seen", goes: "next", show: ({ last_seen_at }) => <Time at={last_seen_at} /> },
  { title: "Added", sort: "created_at", goes: "first", show: ({ created_at }) => <Time at={created_at} only="day" /> },
  {
    title: "License",
    goes: "last",
    show: (device) => (
      <Link
        to="/licenses/$id"
        params={{ id: device.license_id }}
        hash="devices"
        aria-label={`License of ${deviceName(device)}: ${ownerOf(device)}`}
      >
        {ownerOf(device)}
      </Link>
    )
  }
]

const actions: Column<Device> = {
  title: "Actions",
  quiet: true,
  number: true,
  show: (device) => <DeviceActions device={device} />
}

export const AllDevices = () => {
  const search: DeviceSearch = route.useSearch()
  const may = useMay()
  const narrow = useNarrow()
  // A fingerprint identifies somebody's machine: it stays out of the address.
  const [fingerprint, setFingerprint] = useState<string>()
  const all = { ...filtersOf(search), ...pageOf({ cursor: search.cursor }), expand: ["license", "customer"] as const }
  const query = { ...all, ...(fingerprint === undefined ? {} : { fingerprint }) }
  const page = useAsk("listAllDevices", { query })
  const isMore = AsyncResult.isSuccess(page) && page.value.next !== undefined
  return (
    <>
      <Heading title="Devices" />
      <search className="row filters" aria-label="Filters">
        <TextFilter label="Host name" value={search.hostname} onChange={(hostname) => narrow({ hostname })} />
        <TextFilter
          label="Fingerprint"
          value={fingerprint}
          onChange={(given) => {
            setFingerprint(given)
            narrow({})
          }}
        />
        {may("product:read") && <ProductFilter value={search.product_id} />}
        <Filter label="Status" value={search.status} choices={statuses} onChange={(status) => narrow({ status })} />
        <Filter
          label="Kind"
          value={search.binding_kind}
          choices={kinds}
          onChange={(binding_kind) => narrow({ binding_kind })}
        />
        <Filter label="Seen" value={search.seen} choices={periods} onChange={(seen) => narrow({ seen })} />
        <Views list="Devices" search={search} />
      </search>
      <List
        caption="Devices"
        noun="device"
        // Devices that are seen meanwhile leave their page.
        empty={
          isMore ? (
            "No device on this page matches; the next page may have some."
          ) : isPart({ ...search, fingerprint }) ? (
            "No device matches."
          ) : (
            <Empty
              icon="device"
              title="No devices yet"
              hint="A device is here once an application has activated a license on it."
            />
          )
        }
        columns={may("device:write") ? [...columns, actions] : columns}
        page={page}
        search={search}
      />
    </>
  )
}
