/** Who holds the floating seats of a license now. */
import type { License } from "../../../licensing/model/License.ts"
import { Meter } from "../look/Meter.tsx"
import { countOf } from "../parts/Format.ts"
import { Pagination, usePages } from "../parts/Pagination.tsx"
import { Loaded, Section, Table, Time } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"

export const Seats = ({ license: { id, limits } }: { readonly license: License }) => {
  const { earlier, query, ...pages } = usePages()
  const leases = useAsk("listLicenseLeases", { params: { id }, query })
  return (
    <Section id="seats" title={`Floating seats in use, of ${countOf(limits.max_floating_users ?? 0)}`}>
      <Loaded of={leases}>
        {(page) => (
          <>
            {!earlier && page.next === undefined && (
              <Meter used={page.items.length} of={limits.max_floating_users ?? 0} />
            )}
            <Table
              caption="Floating seats in use"
              rows={page.items}
              keyOf={({ id }) => id}
              icon="people"
              empty="No seats are in use."
              columns={[
                { title: "Device", show: (lease) => <Holder license={id} device={lease.device_id} /> },
                { title: "Since", goes: "last", show: ({ checked_out_at }) => <Time at={checked_out_at} /> },
                { title: "Last heartbeat", goes: "first", show: ({ heartbeat_at }) => <Time at={heartbeat_at} /> },
                { title: "Free at the latest", show: ({ expires_at }) => <Time at={expires_at} /> },
                {
                  title: "Borrowed until",
                  show: ({ borrowed_until }) => borrowed_until !== undefined && <Time at={borrowed_until} />
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

const Holder = ({ device, license }: { readonly device: string; readonly license: string }) => {
  const found = useAsk("getDevice", { params: { id: license, device_id: device } })
  return (
    <Loaded of={found}>{({ fingerprint, hostname, pod_name }) => hostname ?? fingerprint ?? pod_name ?? device}</Loaded>
  )
}
