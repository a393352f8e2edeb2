/** One product, with its policies and features. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { Feature } from "../../../vendor/features/Feature.ts"
import { policyDefaults } from "../../../vendor/policies/Policy.ts"
import type { Product } from "../../../vendor/products/Product.ts"
import { DependsOnFeature, DependsOnProduct } from "../consequences/Dependents.tsx"
import { CustomFields } from "../customFields/CustomFields.tsx"
import { Action } from "../parts/Dialog.tsx"
import { type FieldsOf, text } from "../parts/Fields.tsx"
import { countOf, limitOf, sentenceOf } from "../parts/Format.ts"
import { Menu } from "../parts/Menu.tsx"
import { Metadata, metadata } from "../parts/Metadata.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Heading, Loaded, Section, Table, Time } from "../parts/Show.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { policyFields } from "./PolicyFields.ts"
import { productFields } from "./Products.tsx"

const route = getRouteApi("/products/$id")

export const ProductPage = () => {
  const { id } = route.useParams()
  const product = useAsk("getProduct", { params: { id } })
  return (
    <OneRecord of={product} noun="product">
      {(product) => <Screen key={product.id} product={product} />}
    </OneRecord>
  )
}

interface Props {
  readonly product: Product
}

const Screen = ({ product }: Props) => {
  const may = useMay()
  return (
    <>
      <Heading
        title={product.name}
        about={<code>{product.code}</code>}
        {...(may("product:write") && { more: <Delete product={product} /> })}
      >
        {may("product:write") && <Edit product={product} />}
      </Heading>
      <div className="split">
        <div>
          <Policies product={product} />
          <Features product={product} />
          <CustomFields product={product} />
        </div>
        <div>
          <Section id="about" title="About">
            <Facts
              of={[
                ["Code", <code key="code">{product.code}</code>],
                ["Created", <Time key="created" at={product.created_at} />],
                ["Lists", <Lists key="lists" product={product} />]
              ]}
            />
          </Section>
          <Metadata of={product.metadata} />
        </div>
      </div>
    </>
  )
}

const Lists = ({ product: { id } }: Props) => (
  <span className="row">
    <Link to="/licenses" search={{ product_id: id }}>
      Licenses
    </Link>
    <Link to="/orders" search={{ product_id: id }}>
      Orders
    </Link>
    <Link to="/subscriptions" search={{ product_id: id }}>
      Subscriptions
    </Link>
    <Link to="/products/$id/versions" params={{ id }}>
      Versions
    </Link>
  </span>
)

type ProductUpdate = Payload<"updateProduct">

const Edit = ({ product }: Props) => {
  const params = { id: product.id }
  return (
    <Action
      label="Edit"
      send="Save"
      title={`Edit ${product.name}`}
      effect="Applications that name the product by its code need the new one."
      fields={productFields}
      edited={{ record: product, reread: () => run("getProduct", { params }) }}
      run={(payload: ProductUpdate, read) => change("updateProduct", { params, payload }, read)}
    />
  )
}

const Delete = ({ product }: Props) => {
  const params = { id: product.id }
  const navigate = useNavigate()
  return (
    <Action
      label="Delete"
      title={`Delete the product ${product.name}`}
      effect="The product is deleted, with its metadata."
      danger
      facts={<DependsOnProduct id={product.id} />}
      run={() => run("deleteProduct", { params })}
      then={() => void navigate({ to: "/products", replace: true })}
    />
  )
}

type PolicyPayload = Payload<"createPolicy">

const Policies = ({ product: { id } }: Props) => {
  const may = useMay()
  const policies = useAsk("listPolicies", { params: { id }, query: { limit: 200, sort: "code" } })
  return (
    <Section
      id="policies"
      title="Policies"
      actions={
        may("product:write") && (
          <Action
            label="New policy"
            send="Create policy"
            effect="Licenses can then be issued under it."
            fields={policyFields}
            initial={policyDefaults}
            run={(payload: PolicyPayload) => change("createPolicy", { params: { id }, payload })}
          />
        )
      }
    >
      <Loaded of={policies}>
        {({ items }) => (
          <Table
            caption="Policies"
            rows={items}
            keyOf={({ id }) => id}
            empty="There is no policy yet. A license needs one."
            columns={[
              {
                title: "Name",
                show: (policy) => (
                  <Link to="/policies/$id" params={{ id: policy.id }}>
                    {policy.name}
                  </Link>
                )
              },
              { title: "Code", goes: "next", show: ({ code }) => <code>{code}</code> },
              { title: "Type", goes: "last", show: ({ license_type }) => sentenceOf(license_type) },
              { title: "Devices", number: true, show: ({ max_activations }) => limitOf(max_activations) },
              {
                title: "Floating seats",
                number: true,
                goes: "next",
                show: ({ max_floating_users }) => (max_floating_users ? countOf(max_floating_users) : "off")
              }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

type FeaturePayload = Payload<"createFeature">
type FeatureUpdate = Payload<"updateFeature">

const featureFields: FieldsOf<FeaturePayload> = {
  name: text("Name", { required: true }),
  code: text("Code", { required: true, hint: "What applications ask for." }),
  metadata: metadata()
}

const Features = ({ product: { id } }: Props) => {
  const may = useMay()
  const features = useAsk("listFeatures", { params: { id }, query: { limit: 200, sort: "code" } })
  return (
    <Section
      id="features"
      title="Features"
      actions={
        may("product:write") && (
          <Action
            label="New feature"
            send="Create feature"
            effect="Policies and licenses can then include it."
            fields={featureFields}
            run={(payload: FeaturePayload) => change("createFeature", { params: { id }, payload })}
          />
        )
      }
    >
      <Loaded of={features}>
        {({ items }) => (
          <Table
            caption="Features"
            rows={items}
            keyOf={({ id }) => id}
            empty="There is no feature yet."
            columns={[
              { title: "Name", show: ({ name }) => name },
              { title: "Code", goes: "last", show: ({ code }) => <code>{code}</code> },
              {
                title: "Actions",
                quiet: true,
                number: true,
                show: (feature) => may("product:write") && <FeatureActions feature={feature} />
              }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

const FeatureActions = ({ feature }: { readonly feature: Feature }) => {
  const params = { id: feature.id }
  const may = useMay()
  return (
    <Menu label={`Actions for ${feature.name}`} quiet>
      {may("license:read") && (
        <Link to="/licenses" search={{ feature_id: feature.id }}>
          Licenses with it
        </Link>
      )}
      <Action
        label="Edit"
        send="Save"
        name={`Edit ${feature.name}`}
        effect="Applications ask for a feature by its code: a new code needs new applications."
        fields={featureFields}
        edited={{ record: feature, reread: () => run("getFeature", { params }) }}
        run={(payload: FeatureUpdate, read) => change("updateFeature", { params, payload }, read)}
      />
      <Action
        label="Delete"
        name={`Delete ${feature.name}`}
        effect={`${feature.name} is deleted.`}
        danger
        facts={<DependsOnFeature id={feature.id} product={feature.product_id} />}
        run={() => change("deleteFeature", { params })}
      />
    </Menu>
  )
}
