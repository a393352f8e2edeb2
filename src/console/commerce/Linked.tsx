/** What belongs to an order or a subscription: its licenses, and how its status changes together with them. */
import { Link } from "@tanstack/react-router"
import { Effect, Exit } from "effect"
import type { Refusal } from "../../api/Failure.ts"
import { Client } from "../../client/Client.ts"
import { LicensePages } from "../licenses/LicensePages.tsx"
import { usePages } from "../licenses/More.tsx"
import { Action } from "../parts/Dialog.tsx"
import type { Field } from "../parts/Fields.tsx"
import type { Edited } from "../parts/Form.tsx"
import { Section } from "../parts/Show.tsx"
import { changeWithLicenses, type Origin, type Outcome, outcomeField } from "../refunds/LinkedLicenses.ts"
import { LicenseCount, tellUnchanged } from "../refunds/Refund.tsx"
import { changeBy, useAsk, useMay } from "../service/Hooks.ts"

/** The licenses, and the way to issue one for the record. */
export const LinkedLicenses = (props: {
  readonly of: Origin
  readonly product: string
  readonly customer?: string
}) => {
  const { customer, of, product } = props
  const may = useMay()
  const { query, ...pages } = usePages()
  const licenses = useAsk("listLicenses", { query: { ...of, ...query, expand: ["product", "policy", "customer"] } })
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
const keeping = (record: object) => ({ ...record, licenses: "keep", read: record })

/** Changes the status of a record, and with it the licenses if the reader chooses so. */
export const ChangeStatus = <S extends string, A, E>(props: {
  readonly noun: string
  readonly of: Origin
  readonly field: Field<S>
  readonly edited: Edited
  readonly update: (status: S) => Effect.Effect<A, E, Client>
}) => {
  const may = useMay()
  const mayChange = may("license:read") && may("license:write")
  return (
    <Action
      label="Change status"
      effect={
        <>
          The status is a record: by itself it changes no license.{" "}
          {may("license:read") && <LicenseCount of={props.of} />}
        </>
      }
      fields={{ status: props.field, ...(mayChange ? { licenses: outcomeField } : {}) }}
      edited={{
        record: keeping(props.edited.record),
        reread: () => props.edited.reread().then(Exit.map(keeping))
      }}
      run={({ licenses = "keep", status }: Change<S>, read: object = {}) => {
        // The form gives the record as it was read last.
        const unchanged = Client.ifUnchanged("read" in read ? (read.read as object) : props.edited.record)
        const update = status === undefined ? Effect.void : unchanged(props.update(status))
        return changeBy(changeWithLicenses<unknown, E | Refusal<"CONFLICT">, Client>(update, props.of, licenses))
      }}
      done={(unchanged) => tellUnchanged(`The ${props.noun} is changed.`, unchanged)}
    />
  )
}
