/** The erasure of a customer's personal data, and its state while the service works on it. */
import { Exit } from "effect"
import { useEffect, useRef } from "react"
import { refuse } from "../../../contract/api/Failure.ts"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import { DependsOnCustomer } from "../consequences/Dependents.tsx"
import { Action } from "../parts/Dialog.tsx"
import { type FieldsOf, text } from "../parts/Fields.tsx"
import { customerName } from "../parts/LicenseName.ts"
import { Time } from "../parts/Show.tsx"
import { askAgain, change, refresh } from "../service/Hooks.ts"
import { usePolling } from "../service/Polling.ts"

/** A name is needed: only an erasure leaves none. */
export const isErasing = ({ erased_at, name }: Customer) => name === "" && erased_at === undefined

interface Typed {
  readonly typed: string
}

export const Erase = ({ customer }: { readonly customer: Customer }) => {
  // Nobody sees, copies or types how much white space a name has.
  const wanted = (customer.name || customer.code).trim().replaceAll(/\s+/g, " ")
  const fields: FieldsOf<Typed> = { typed: text(`Type “${wanted}” to confirm`, { required: true }) }
  const mistyped = refuse("VALIDATION_ERROR", `This is not “${wanted}”.`, "typed")
  return (
    <Action<Typed, unknown>
      label="Erase"
      title={`Erase the data of ${customerName(customer)}`}
      effect={
        "The name, the e-mail, the metadata and the custom fields of the customer, and the names and e-mails on its licenses, " +
        "are removed for good: from records, events, stored responses and exports. Its licenses stay valid; revoked ones are " +
        "unlinked. This cannot be undone."
      }
      fields={fields}
      danger
      facts={<DependsOnCustomer id={customer.id} isErasure />}
      run={({ typed }): Promise<Exit.Exit<unknown, unknown>> =>
        typed.replaceAll(/\s+/g, " ") === wanted
          ? change("eraseCustomer", { params: { id: customer.id } })
          : Promise.resolve(Exit.fail(mistyped))
      }
    />
  )
}

/** What a reader needs to know of a customer whose data is erased, or is being erased. */
export const ErasureState = ({ customer }: { readonly customer: Customer }) => {
  const isRunning = isErasing(customer)
  const wasRunning = useRef(isRunning)
  usePolling("2 seconds", isRunning, () => askAgain("getCustomer", { params: { id: customer.id } }))
  useEffect(() => {
    // Licenses and lists lose the data, too.
    if (wasRunning.current && !isRunning) void refresh()
    wasRunning.current = isRunning
  }, [isRunning])
  if (isRunning) return <Erasing />
  if (customer.erased_at === undefined) return null
  return (
    <p>
      The data of this customer was erased: <Time at={customer.erased_at} />.
    </p>
  )
}

const Erasing = () => (
  <p role="status" className="warned">
    The data of this customer is being erased. Until that is finished, it cannot be changed or get licenses. You can
    leave this page.
  </p>
)
