/** The nodes that use the database. */
import type { OpsNodes } from "../../../insight/ops/Ops.ts"
import { countOf } from "../parts/Format.ts"
import { type Column, Status, Table, Time } from "../parts/Show.tsx"

type Node = OpsNodes["nodes"][number]

const columns: ReadonlyArray<Column<Node>> = [
  { title: "Node", show: ({ address, id }) => address ?? id },
  {
    title: "Status",
    show: ({ status }) => (
      <>
        <Status of={status} />
        {status === "silent" && <small>It crashed, is frozen, or cannot reach the database: its log says which.</small>}
      </>
    )
  },
  { title: "Version", goes: "next", show: ({ version }) => version },
  { title: "Started", goes: "first", show: ({ started_at }) => <Time at={started_at} /> },
  { title: "Last sign of life", goes: "last", show: ({ last_heard_at }) => <Time at={last_heard_at} /> },
  {
    title: "Licenses",
    goes: "next",
    show: ({ owned_shards }) =>
      owned_shards === undefined ? "all that reach it" : `${countOf(owned_shards)} of 256 parts`
  }
]

export const Nodes = ({ nodes }: { readonly nodes: ReadonlyArray<Node> }) => (
  <Table
    caption="Nodes"
    columns={columns}
    rows={nodes}
    keyOf={({ id }) => id}
    empty="No node has given a sign of life yet."
  />
)
