/** The features of a license and their quotas. */
import { Exit } from "effect"
import { refuse } from "../../../contract/api/Failure.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { LicenseFeature } from "../../../licensing/model/LicenseFeature.ts"
import { Action } from "../parts/Dialog.tsx"
import { Empty } from "../parts/Empty.tsx"
import { useFew } from "../parts/Few.tsx"
import { type ChangeFieldsOf, type FieldsOf, flag, lastDay, number } from "../parts/Fields.tsx"
import { countOf } from "../parts/Format.ts"
import { Menu } from "../parts/Menu.tsx"
import { Loaded, Section } from "../parts/Show.tsx"
import { change, lastOf, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { listField } from "../tables/ListFields.tsx"
import { allowance } from "./AllowanceFields.ts"
import { Quota, quotaOf } from "./Quota.tsx"

interface Props {
  readonly license: License
  readonly mayChange: boolean
}

/** So many of the list have the class `few`. */
const fewMax = 3

export const Features = ({ license, mayChange }: Props) => {
  const may = useMay()
  const features = useAsk("listLicenseFeatures", { params: { id: license.id }, query: { limit: 200 } })
  const { isFew, toggle } = useFew("features", lastOf(features)?.items.length ?? 0, fewMax)
  return (
    <Section
      id="features"
      title="Features and quotas"
      actions={
        <>
          {toggle}
          {mayChange && may("product:read") && <Assign license={license} />}
        </>
      }
    >
      <Loaded of={features}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="gauge" title="No feature comes from the policy or is assigned here." />
          ) : (
            <ul className={isFew ? "quotas few" : "quotas"}>
              {nearestFirst(items).map((feature) => (
                <Quota
                  key={feature.feature_id}
                  feature={feature}
                  actions={mayChange && <FeatureActions license={license} feature={feature} />}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  )
}

/** Those of which the least is left stand first, those without a quota last. */
const nearestFirst = (features: ReadonlyArray<LicenseFeature>) =>
  [...features].sort((one, other) => leftOf(one) - leftOf(other))

/** A share of the quota; 2 for what has none. */
const leftOf = (feature: LicenseFeature) => {
  const quota = quotaOf(feature)
  return quota === undefined || quota === 0 ? 2 : (feature.remaining ?? 0) / quota
}

type Assignment = Payload<"assignLicenseFeature">
type Usage = Payload<"resetLicenseUsage">

const withLicense = flag("Ends with the license, and follows its renewals")

const Assign = ({ license: { id, product_id } }: { readonly license: License }) => {
  const features = useAsk("listFeatures", { params: { id: product_id }, query: { limit: 200, sort: "code" } })
  const fields: FieldsOf<Assignment> = {
    feature_id: listField("Feature", features, {
      required: true,
      empty: "The product has no feature yet: create one first."
    }),
    ...allowance,
    expires_at: lastDay("Expires at the end of"),
    expires_with_license: withLicense
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

/** The assignment as it is now; no operation gives one alone. One that was removed is not assigned again. */
const rereadOf = ({ id }: License, { feature_id }: LicenseFeature): Promise<Exit.Exit<LicenseFeature, unknown>> =>
  run("listLicenseFeatures", { params: { id }, query: { limit: 200 } }).then((exit) => {
    if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
    const current = exit.value.items.find((each) => each.feature_id === feature_id)
    return current === undefined ? Exit.fail(removed) : Exit.succeed(current)
  })

const removed = refuse("NOT_FOUND", "Somebody has removed the feature from the license: assign it again.")

const assignment: ChangeFieldsOf<Assignment> = {
  enabled: flag("The feature is on"),
  ...allowance,
  expires_at: lastDay("Expires at the end of"),
  expires_with_license: withLicense
}
const credits: ChangeFieldsOf<Usage> = { add_credits: number("Credits to add", { required: true }) }

const forgottenOf = ({ max_consumptions, total_consumptions }: LicenseFeature) =>
  max_consumptions === undefined
    ? "It has no quota."
    : `Its quota of ${countOf(max_consumptions)} is forgotten, and the ${countOf(total_consumptions)} used of it.`

const FeatureActions = ({ feature, license }: { readonly feature: LicenseFeature; readonly license: License }) => {
  const { feature_id, feature_name } = feature
  const params = { id: license.id }
  const reset = (payload: Usage) => change("resetLicenseUsage", { params, payload: { ...payload, feature_id } })
  return (
    <div className="row">
      {feature.max_consumptions !== undefined && (
        <Action
          label="Add credits"
          name={`Add credits to ${feature_name}`}
          effect={
            feature.reset_period === undefined
              ? `The quota of ${feature_name} grows by this much at once.`
              : `${feature_name} gets extra credits. They are used after the quota of a period, and stay when it ends.`
          }
          fields={credits}
          run={reset}
        />
      )}
      <Menu label={`Actions for ${feature_name}`} quiet>
        <Action
          label="Reset usage"
          name={`Reset usage of ${feature_name}`}
          effect={`The usage of ${feature_name} counts from 0 again. Reports keep what was used.`}
          run={() => reset({ reset_consumed: true })}
        />
        <Action
          label="Edit"
          send="Save"
          name={`Edit ${feature_name}`}
          effect="Applications see the change at their next validation."
          fields={assignment}
          edited={{ record: feature, reread: () => rereadOf(license, feature) }}
          run={(payload: Assignment) => change("assignLicenseFeature", { params, payload: { ...payload, feature_id } })}
        />
        <Action
          label="Remove"
          name={`Remove ${feature_name}`}
          effect={`Applications lose ${feature_name} at their next validation. ${forgottenOf(feature)}`}
          danger
          run={() => change("removeLicenseFeature", { params: { ...params, feature_id } })}
        />
      </Menu>
    </div>
  )
}
