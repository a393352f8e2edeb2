/** The keys of a batch. They are shown only here: the reader is asked before leaving without a copy. */
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { csvLine } from "../../../contract/api/Csv.ts"
import type { Success } from "../../client/Client.ts"
import { licenseCount, licenseName } from "../batch/LicenseName.ts"
import { save } from "../batch/ReadAll.ts"
import { takeFocus } from "../look/Focus.ts"
import { useUnkept } from "../once/Unkept.ts"
import { Heading, Table } from "../parts/Show.tsx"

type Licenses = Success<"createLicenseBatch">["licenses"]

const fileOf = (licenses: Licenses): ReadonlyArray<string> => [
  csvLine(["id", "license_key", "customer_name", "customer_email"]),
  ...licenses.map(({ license: { customer_email, customer_name, id }, license_key }) =>
    csvLine([id, license_key, customer_name, customer_email])
  )
]

export const BatchKeys = ({ of: licenses }: { readonly of: Licenses }) => {
  const [isKept, setKept] = useState(false)
  const [isCopied, setCopied] = useState(false)
  useUnkept("the keys", !isKept)
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
    </>
  )
}
