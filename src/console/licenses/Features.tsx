/** The features of a license and their quotas. */
import { Exit } from "effect"
import type { License, LicenseFeature } from "../../licenses/model/License.ts"
import { Action } from "../parts/Dialog.tsx"
import { type ChangeFieldsOf, day, type FieldsOf, flag, number } from "../parts/Fields.tsx"
import { countOf } from "../parts/Format.ts"
import { listed } from "../parts/Listed.tsx"
import { type Column, Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"

interface Props {
  readonly license: License
  readonly mayChange: boolean
}

export const Features = ({ license, mayChange }: Props) => {
  const may = useMay()
  const features = useAsk("listLicenseFeatures", { params: { id: license.id }, query: { limit: 200 } })
  return (
    <Section
      id="features"
      title="Features and quotas"
      actions={mayChange && may("product:read") && <Assign license={license} />}
    >
      <Loaded of={features}>
        {({ items }) => (
          <Table
            caption="Features and quotas"
            rows={items}
            keyOf={({ feature_id }) => feature_id}
            empty="No feature is assigned."
            columns={[
              ...columns,
              {
                title: "Actions",
                quiet: true,
                number: true,
                show: (feature) => mayChange && <FeatureActions license={license} feature={feature} />
              }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

const columns: ReadonlyArray<Column<LicenseFeature>> = [
  {
    title: "Feature",
    show: ({ feature_name, from_policy }) => (
      <>
        {feature_name}
        {from_policy && <small>from the policy</small>}
      </>
    )
  },
  { title: "State", show: ({ enabled }) => <Status of={enabled ? "active" : "off"} /> },
  { title: "Used", number: true, show: ({ total_consumptions }) => countOf(total_consumptions) },
  {
    title: "Of",
    number: true,
    show: ({ max_consumptions }) => (max_consumptions === undefined ? "no limit" : countOf(max_consumptions))
  },
  { title: "Left", number: true, show: ({ remaining }) => (remaining === undefined ? "–" : countOf(remaining)) },
  { title: "Expires", show: ({ expires_at }) => <Time at={expires_at} only="day" none="never" /> }
]

type Assignment = Payload<"assignLicenseFeature">
type Usage = Payload<"resetLicenseUsage">

const Assign = ({ license: { id, product_id } }: { readonly license: License }) => {
  const features = useAsk("listFeatures", { params: { id: product_id }, query: { limit: 200, sort: "code" } })
  const fields: FieldsOf<Assignment> = {
    feature_id: listed("Feature", features, {
      required: true,
      empty: "The product has no feature yet: create one first."
    }),
    max_consumptions: number("Quota", { hint: "Empty is no limit." }),
    expires_at: day("Expires at the end of")
  }
  return (
    <Action
      label="Assign a feature"
      effect="Applications get the feature at their next validation."
      fields={fields}
      run={(payload: Assignment) => change("assignLicenseFeature", { params: { id }, payload })}
    />
  )
}

/** The assignment as it is now; no operation gives one alone. */
const rereadOf = ({ id }: License, { feature_id }: LicenseFeature) =>
  run("listLicenseFeatures", { params: { id }, query: { limit: 200 } }).then(
    Exit.map(({ items }) => items.find((each) => each.feature_id === feature_id) ?? {})
  )

const assignment: ChangeFieldsOf<Assignment> = {
  enabled: flag("The feature is on"),
  max_consumptions: number("Quota", { hint: "Empty is no limit." }),
  expires_at: day("Expires at the end of")
}
const credits: ChangeFieldsOf<Usage> = { add_credits: number("Credits to add", { required: true }) }

const FeatureActions = ({ feature, license }: { readonly feature: LicenseFeature; readonly license: License }) => {
  const { feature_id, feature_name } = feature
  const params = { id: license.id }
  const reset = (payload: Usage) => change("resetLicenseUsage", { params, payload: { ...payload, feature_id } })
  return (
    <div className="row end">
      {feature.max_consumptions !== undefined && (
        <Action
          label="Add credits"
          name={`Add credits to ${feature_name}`}
          effect={`The quota of ${feature_name} grows by this much at once.`}
          fields={credits}
          run={reset}
        />
      )}
      <Action
        label="Reset usage"
        name={`Reset usage of ${feature_name}`}
        effect={`The usage of ${feature_name} counts from 0 again. Reports keep what was used.`}
        run={() => reset({ reset_consumed: true })}
      />
      <Action
        label="Edit"
        name={`Edit ${feature_name}`}
        title={`Edit ${feature_name}`}
        effect="Applications see the change at their next validation."
        fields={assignment}
        edited={{ record: feature, reread: () => rereadOf(license, feature) }}
        run={(payload: Assignment) => change("assignLicenseFeature", { params, payload: { ...payload, feature_id } })}
      />
      <Action
        label="Remove"
        name={`Remove ${feature_name}`}
        effect={`Applications lose ${feature_name} at their next validation. Its quota and usage are forgotten.`}
        danger
        run={() => change("removeLicenseFeature", { params: { ...params, feature_id } })}
      />
    </div>
  )
}
