/** The keys of a batch. They are shown only here: the reader is asked before leaving without a copy. */
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { csvLine } from "../../../contract/api/Csv.ts"
import type { Success } from "../../client/Client.ts"
import { save } from "../batch/ReadAll.ts"
import { takeFocus } from "../look/Focus.ts"
import { copy, hasClipboard } from "../once/Clipboard.ts"
import { useUnkept } from "../once/Unkept.ts"
import { licenseCount, licenseName } from "../parts/LicenseName.ts"
import { Heading, Table } from "../parts/Show.tsx"

export interface IssuedBatch {
  readonly licenses: Success<"createLicenseBatch">["licenses"]
  /** Names, for people who get the file. */
  readonly product: string
  readonly policy: string
  readonly name?: string
}

const header = ["id", "license_key", "customer_name", "customer_email", "product", "policy", "expires_at"]

const fileOf = ({ licenses, name, policy, product }: IssuedBatch): ReadonlyArray<string> => [
  csvLine([...header, ...(name === undefined ? [] : ["batch"])]),
  ...licenses.map(({ license: { customer_email, customer_name, expires_at, id }, license_key }) => {
    const expiry = expires_at === undefined ? undefined : new Date(expires_at).toISOString()
    const cells = [id, license_key, customer_name, customer_email, product, policy, expiry]
    return csvLine([...cells, ...(name === undefined ? [] : [name])])
  })
]

/** A name of a batch in a file's name. */
const fileNameOf = (name: string | undefined): string =>
  name === undefined ? "license-keys.csv" : `license-keys-${name.replaceAll(/[^\p{L}\p{N}.-]+/gu, "-")}.csv`

export const BatchKeys = ({ of: issued }: { readonly of: IssuedBatch }) => {
  const { licenses, name } = issued
  const [isKept, setKept] = useState(false)
  const [isCopied, setCopied] = useState<boolean>()
  useUnkept("the keys", !isKept)
  const saveAll = () => {
    save(fileNameOf(name), fileOf(issued))
    setKept(true)
  }
  const copyAll = () => {
    const keys = licenses.map(({ license_key }) => license_key).join("\n")
    const copied = () => {
      setCopied(true)
      setKept(true)
    }
    copy(keys, copied, () => setCopied(false))
  }
  return (
    <>
      <Heading title={`${licenseCount(licenses.length)} issued`}>
        {hasClipboard() && (
          <button type="button" onClick={copyAll}>
            {isCopied ? "Copied" : "Copy all keys"}
          </button>
        )}
        <button type="button" className="primary" onClick={saveAll}>
          Save as CSV
        </button>
        {isKept && (
          <Link to="/licenses" search={name === undefined ? {} : { batch: name }} className="button">
            Done
          </Link>
        )}
      </Heading>
      <p role="status" tabIndex={-1} ref={takeFocus}>
        {isCopied === false ? "The browser refused to copy. " : ""}The keys are shown only here: save them now.
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
