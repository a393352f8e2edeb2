/** What belongs to an order or a subscription: its licenses, and how its status changes together with them. */
import { Link } from "@tanstack/react-router"
import { Effect, Exit } from "effect"
import { useRef } from "react"
import type { Refusal } from "../../../contract/api/Failure.ts"
import { Client } from "../../client/Client.ts"
import { LicensePages } from "../licenses/LicensePages.tsx"
import { Action } from "../parts/Dialog.tsx"
import type { Field } from "../parts/Fields.tsx"
import { usePages } from "../parts/Pagination.tsx"
import { Section } from "../parts/Show.tsx"
import {
  type Attempt,
  attemptAfter,
  changeWithLicenses,
  type Origin,
  type Outcome,
  outcomeField
} from "../refunds/LinkedLicenses.ts"
import { LicenseCount, tellUnchanged } from "../refunds/Refund.tsx"
import { undoOfStatus } from "../refunds/UndoStatus.ts"
import { changeBy, useAskPart, useMay } from "../service/Hooks.ts"

/** The licenses, and the way to issue one for the record. */
export const LinkedLicenses = (props: {
  readonly of: Origin
  readonly product: string
  readonly customer?: string
}) => {
  const { customer, of, product } = props
  const may = useMay()
  const { query, ...pages } = usePages()
  const licenses = useAskPart("listLicenses", { query: { ...of, ...query, expand: ["product", "policy", "customer"] } })
  return (
    <Section
      id="licenses"
      title="Licenses"
      actions={
        may("license:write") &&
        may("product:read") && (
          <Link
            to="/licenses/new"
            search={{ ...of, product_id: product, ...(customer === undefined ? {} : { customer_id: customer }) }}
            className="button"
          >
            Issue a license
          </Link>
        )
      }
    >
      <LicensePages of={licenses} pages={pages} empty="No license is linked to it." />
    </Section>
  )
}

interface Change<S> {
  readonly status?: S
  readonly licenses?: Outcome
}

/** A record as the form shows it: its licenses stay as they are unless the reader chooses otherwise. */
const keeping = <R extends object>(record: R) => ({ ...record, licenses: "keep", read: record })

/** Changes the status of a record, and with it the licenses if the reader chooses so. */
export const ChangeStatus = <S extends string, R extends { readonly status: S }, E>(props: {
  readonly noun: string
  readonly of: Origin
  readonly field: Field<S>
  readonly edited: { readonly record: R; readonly reread: () => Promise<Exit.Exit<R, unknown>> }
  readonly update: (status: S) => Effect.Effect<R, E, Client>
  /** Gives the record the status that it had before. */
  readonly restore: (before: R) => Effect.Effect<R, E, Client>
  /** It is the screen's primary button. */
  readonly primary?: true
}) => {
  const { edited, noun, of, restore, update } = props
  const may = useMay()
  const mayChange = may("license:read") && may("license:write")
  const attempt = useRef<Attempt<R>>(undefined)
  return (
    <Action
      label="Change status"
      {...(props.primary && { primary: true })}
      effect={
        <>The status is a record: by itself it changes no license. {may("license:read") && <LicenseCount of={of} />}</>
      }
      fields={{ status: props.field, ...(mayChange ? { licenses: outcomeField } : {}) }}
      edited={{ record: keeping(edited.record), reread: () => edited.reread().then(Exit.map(keeping)) }}
      run={({ licenses = "keep", status }: Change<S>, read: object = {}) => {
        // The form gives the record as it was read last.
        const current = "read" in read ? (read.read as R) : edited.record
        attempt.current = attemptAfter(attempt.current, current, status ?? current.status, licenses)
        const updated = status === undefined ? Effect.succeed(current) : Client.ifUnchanged(current)(update(status))
        return changeBy(changeWithLicenses<R, E | Refusal<"CONFLICT">, Client>(attempt.current, of, updated))
      }}
      undo={(changed) => undoOfStatus({ noun, reread: edited.reread, restore }, changed)}
      done={({ unchanged }) => tellUnchanged(`The ${noun} is changed.`, unchanged)}
    />
  )
}
