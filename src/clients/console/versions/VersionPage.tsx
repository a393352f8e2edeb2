/** One version of a product. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { ProductVersion } from "../../../vendor/versions/ProductVersion.ts"
import { Metadata } from "../parts/Metadata.tsx"
import { RecordName } from "../parts/Names.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Heading, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { DeleteVersion } from "./DeleteVersion.tsx"

const route = getRouteApi("/products/$id/versions/$version")

export const VersionPage = () => {
  const { id, version } = route.useParams()
  const found = useAsk("getProductVersion", { params: { id, version_id: version } })
  return (
    <OneRecord of={found} noun="version">
      {(version) => <Screen key={version.id} version={version} />}
    </OneRecord>
  )
}

const Screen = ({ version }: { readonly version: ProductVersion }) => {
  const may = useMay()
  const navigate = useNavigate()
  const { created_at, metadata, product_id: id, released_at } = version
  const toList = () => void navigate({ to: "/products/$id/versions", params: { id }, replace: true })
  return (
    <>
      <Heading title={`Version ${version.version}`}>
        {may("product:write") && <DeleteVersion version={version} deleted={toList} />}
      </Heading>
      <Facts
        of={[
          ["Product", <RecordName field="product_id" key="product" id={id} />],
          ["Released", <Time key="released" at={released_at} />],
          ["Recorded", <Time key="created" at={created_at} />],
          [
            "Others",
            <Link key="versions" to="/products/$id/versions" params={{ id }}>
              All versions
            </Link>
          ]
        ]}
      />
      <p>
        Licenses may use this version if their updates, or else their term, last until its release. To correct a
        version, delete it and record it again.
      </p>
      <Metadata of={metadata} />
    </>
  )
}
