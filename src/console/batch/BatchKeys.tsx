/** The keys of a batch. They are shown only here: the reader is asked before leaving without a copy. */
import { Link, useBlocker } from "@tanstack/react-router"
import { useEffect, useId, useRef, useState } from "react"
import type { Success } from "../../client/Client.ts"
import { csvLine } from "../bulk/Csv.ts"
import { licenseCount, licenseName } from "../bulk/LicenseName.ts"
import { save } from "../bulk/Reading.ts"
import { takeFocus } from "../parts/Focus.ts"
import { Heading, Table } from "../parts/Show.tsx"

type Licenses = Success<"createLicenseBatch">["licenses"]

const header = ["id", "license_key", "customer_name", "customer_email"]

const fileOf = (licenses: Licenses): ReadonlyArray<string> => [
  `${header.join(",")}\r\n`,
  ...licenses.map(({ license: { customer_email, customer_name, id }, license_key }) =>
    csvLine([id, license_key, customer_name, customer_email])
  )
]

export const BatchKeys = ({ of: licenses }: { readonly of: Licenses }) => {
  const [isKept, setKept] = useState(false)
  const [isCopied, setCopied] = useState(false)
  const saveAll = () => {
    save("license-keys.csv", fileOf(licenses))
    setKept(true)
  }
  const copyAll = () => {
    const keys = licenses.map(({ license_key }) => license_key).join("\n")
    void navigator.clipboard.writeText(keys).then(() => {
      setCopied(true)
      setKept(true)
    })
  }
  return (
    <>
      <Heading title={`${licenseCount(licenses.length)} issued`}>
        <button type="button" onClick={copyAll}>
          {isCopied ? "Copied" : "Copy all keys"}
        </button>
        <button type="button" className="primary" onClick={saveAll}>
          Save as CSV
        </button>
        {isKept && (
          <Link to="/licenses" className="button">
            Done
          </Link>
        )}
      </Heading>
      <p role="status" tabIndex={-1} ref={takeFocus}>
        The keys are shown only here: save them now.
      </p>
      <Table
        caption="Keys"
        rows={licenses}
        keyOf={({ license }) => license.id}
        empty="None."
        columns={[
          { title: "License", show: ({ license }) => licenseName(license) },
          { title: "Key", show: ({ license_key }) => <code>{license_key}</code> }
        ]}
      />
      <AskBeforeLeaving isNeeded={!isKept} />
    </>
  )
}

const AskBeforeLeaving = ({ isNeeded }: { readonly isNeeded: boolean }) => {
  const blocker = useBlocker({ shouldBlockFn: () => isNeeded, enableBeforeUnload: isNeeded, withResolver: true })
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const isAsking = blocker.status === "blocked"
  useEffect(() => {
    if (isAsking) dialog.current?.showModal()
  }, [isAsking])
  if (!isAsking) return null
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={blocker.reset}>
      <h2 id={id}>Leave without the keys?</h2>
      <p>They have not been saved or copied, and cannot be shown again.</p>
      <div className="row end">
        <button type="button" className="danger" onClick={blocker.proceed}>
          Leave
        </button>
        <button type="button" className="primary" onClick={blocker.reset}>
          Stay
        </button>
      </div>
    </dialog>
  )
}
