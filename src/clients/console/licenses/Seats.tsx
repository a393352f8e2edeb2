/** Who holds the floating seats of a license now. */
import type { License } from "../../../licensing/model/License.ts"
import { Meter } from "../look/Meter.tsx"
import { useFew } from "../parts/Few.tsx"
import { countOf } from "../parts/Format.ts"
import { Pagination, usePages } from "../parts/Pagination.tsx"
import { Loaded, Section, Table, Time } from "../parts/Show.tsx"
import { causeOf, lastOf, useAsk, useAskPart } from "../service/Hooks.ts"

export const Seats = ({ license: { id, limits } }: { readonly license: License }) => {
  const { earlier, query, ...pages } = usePages()
  const seats = limits.max_floating_users ?? 0
  const leases = useAskPart("listLicenseLeases", { params: { id }, query })
  const { items = [], next } = lastOf(leases) ?? {}
  const { isFew, toggle } = useFew("seats", earlier ? 0 : items.length, 0, next !== undefined)
  return (
    <Section id="seats" title="Floating seats" actions={toggle}>
      <Loaded of={leases}>
        {(page) => (
          <div className={isFew ? "loaded few" : "loaded"}>
            {!earlier && (
              <div className="used-of">
                <p>
                  {page.next !== undefined && "More than "}
                  {countOf(page.items.length)} of {countOf(seats)} in use
                </p>
                <Meter used={page.items.length} of={seats} />
              </div>
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
                {
                  title: "Free at the latest",
                  show: ({ borrowed_until, expires_at }) => (
                    <>
                      <Time at={expires_at} {...(borrowed_until !== undefined && { only: "day" })} />
                      {borrowed_until !== undefined && <small>borrowed</small>}
                    </>
                  )
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

const Holder = ({ device, license }: { readonly device: string; readonly license: string }) => {
  const found = useAsk("getDevice", { params: { id: license, device_id: device } })
  const { fingerprint, hostname, pod_name } = lastOf(found) ?? {}
  return hostname ?? fingerprint ?? pod_name ?? (causeOf(found) === undefined ? "…" : device)
}
