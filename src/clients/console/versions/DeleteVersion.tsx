/** The deletion of a version, in the list and on the version's own screen. */
import type { ProductVersion } from "../../../vendor/versions/ProductVersion.ts"
import { Action } from "../parts/Dialog.tsx"
import { change, run } from "../service/Hooks.ts"

export const DeleteVersion = (props: { readonly version: ProductVersion; readonly deleted?: () => void }) => {
  const { deleted, version } = props
  const request = { params: { id: version.product_id, version_id: version.id } }
  return (
    <Action
      label="Delete"
      name={`Delete ${version.version}`}
      title={`Delete version ${version.version}`}
      effect={`Applications of the version ${version.version} are refused at their next validation, unless it was the last version of the product: then every version is allowed.`}
      danger
      // The version's own screen is left, so nothing on it is asked for again.
      run={() =>
        deleted === undefined ? change("deleteProductVersion", request) : run("deleteProductVersion", request)
      }
      then={() => deleted?.()}
    />
  )
}
