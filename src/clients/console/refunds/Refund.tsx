/** The refund of an order, and in the same step what happens to its licenses. */
import { Link } from "@tanstack/react-router"
import { Effect } from "effect"
import { type ReactNode, useEffect, useRef, useState } from "react"
import { refuse } from "../../../contract/api/Failure.ts"
import type { Order } from "../../../vendor/commerce/Order.ts"
import { Client } from "../../client/Client.ts"
import { Action } from "../parts/Dialog.tsx"
import { countOf, wordsOf } from "../parts/Format.ts"
import { changeBy, lastOf, run, useAsk, useMay } from "../service/Hooks.ts"
import { send } from "../service/Service.ts"
import {
  type Attempt,
  attemptAfter,
  changeWithLicenses,
  endingField,
  type Origin,
  type Outcome,
  type Unchanged
} from "./LinkedLicenses.ts"
import { undoOfStatus } from "./UndoStatus.ts"

interface Choice {
  readonly licenses: Outcome
}

interface Props {
  readonly order: Order
  /** It is the screen's primary button. */
  readonly primary?: true
}

export const Refund = ({ order, primary }: Props) => {
  const may = useMay()
  /** The status on the screen. If another person has changed it since, the refund is not sent. */
  const known = useRef(order.status)
  useEffect(() => {
    known.current = order.status
  }, [order.status])
  const attempt = useRef<Attempt<Order>>(undefined)
  const [unchanged, setUnchanged] = useState<ReadonlyArray<Unchanged>>([])
  const { external_id, external_system, id } = order
  // Licenses that could not be changed are listed and can be retried.
  if ((order.status === "refunded" && unchanged.length === 0) || !may("product:write")) return null
  const refund = Effect.fnUntraced(function* (licenses: Outcome) {
    const current = yield* send("getOrder", { params: { id } })
    const { status } = current
    const seen = known.current
    known.current = status
    if (status !== seen && status !== "refunded")
      return yield* refuse(
        "CONFLICT",
        `Somebody else changed this order meanwhile: it is now ${wordsOf(status)}. Send again to refund it all the same.`
      )
    attempt.current = attemptAfter(attempt.current, current, "refunded", licenses)
    const update = send("updateOrder", { params: { id }, payload: { status: "refunded" } })
    return yield* changeWithLicenses(attempt.current, { order_id: id }, Client.ifUnchanged(current)(update))
  })
  const mayChange = may("license:read") && may("license:write")
  return (
    <Action
      label="Refund"
      name={`Refund order ${external_id}`}
      effect={
        <>
          The order is recorded as refunded. No money moves here: return it in {external_system}.{" "}
          {may("license:read") && <LicenseCount of={{ order_id: id }} />}
        </>
      }
      danger
      {...(primary && { primary })}
      fields={mayChange ? { licenses: endingField } : {}}
      initial={{ licenses: "suspend" }}
      run={({ licenses = "keep" }: Choice) => changeBy(refund(licenses))}
      undo={(changed) =>
        undoOfStatus(
          {
            noun: "order",
            reread: () => run("getOrder", { params: { id } }),
            restore: ({ status }) => send("updateOrder", { params: { id }, payload: { status } })
          },
          changed
        )
      }
      done={({ unchanged }) => {
        setUnchanged(unchanged)
        return tellUnchanged("The order is refunded.", unchanged)
      }}
    />
  )
}

/** The refund of the order that a license belongs to. */
export const RefundOf = ({ order }: { readonly order: string }) => {
  const may = useMay()
  return may("product:read") ? <FoundRefund order={order} /> : null
}

const FoundRefund = ({ order: id }: { readonly order: string }) => {
  const order = lastOf(useAsk("getOrder", { params: { id } }))
  return order === undefined ? null : <Refund order={order} />
}

/** How many licenses an action reaches. */
export const LicenseCount = ({ of }: { readonly of: Origin }): ReactNode => {
  const page = lastOf(useAsk("listLicenses", { query: { ...of, limit: 1, include_total: "true" } }))
  if (page === undefined) return ""
  const { total = 0 } = page
  return total === 0
    ? "No license is linked to it."
    : `${countOf(total)} license${total === 1 ? " is" : "s are"} linked to it.`
}

/** What is shown after a change: nothing if all went well. */
export const tellUnchanged = (done: string, unchanged: ReadonlyArray<Unchanged>): ReactNode =>
  unchanged.length === 0 ? undefined : (
    <div role="alert" className="failed">
      <p>{done} These licenses could not be changed:</p>
      <ul>
        {unchanged.map(({ license: { id, license_key_last4 }, message }) => (
          <li key={id}>
            <Link to="/licenses/$id" params={{ id }}>
              …{license_key_last4}
            </Link>{" "}
            {message}
          </li>
        ))}
      </ul>
    </div>
  )
