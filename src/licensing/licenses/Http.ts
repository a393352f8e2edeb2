import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { asStored } from "../../contract/api/StoredResponse.ts"
import { Previews } from "../bulk/Previews.ts"
import { ExpandedLicenses } from "../management/ExpandedLicenses.ts"
import { Issuing } from "../management/Issuing.ts"
import { Leases } from "../management/Leases.ts"
import { Licenses } from "../management/Licenses.ts"
import { LicenseUpdate } from "../model/License.ts"
import { Diagnoses } from "./Diagnoses.ts"

export const LicensesHttp = operationGroup(
  Api,
  "licenses",
  Effect.fn(function* (handlers) {
    const licenses = yield* Licenses
    const expanded = yield* ExpandedLicenses
    const diagnoses = yield* Diagnoses
    const previews = yield* Previews
    const issuing = yield* Issuing
    const leases = yield* Leases
    return handlers.handleAll({
      list: ({ query }) => expanded.list(query),
      create: ({ payload }) => asStored(issuing.create(payload)),
      createBatch: ({ payload }) => asStored(issuing.createBatch(payload.licenses)),
      get: ({ params }) => withTag(LicenseUpdate, licenses.get(params.id)),
      update: ({ params, payload }) => withTag(LicenseUpdate, licenses.update(params.id, payload)),
      suspend: ({ params }) => licenses.suspend(params.id),
      reinstate: ({ params }) => licenses.reinstate(params.id),
      revoke: ({ params }) => licenses.revoke(params.id),
      renew: ({ params, payload }) => licenses.renew(params.id, payload),
      renewMaintenance: ({ params, payload }) => licenses.renewMaintenance(params.id, payload),
      transfer: ({ params, payload }) => licenses.transfer(params.id, payload),
      changePolicy: ({ params, payload }) => licenses.changePolicy(params.id, payload),
      rotateKey: ({ params, payload }) => licenses.rotateKey(params.id, payload),
      resetUsage: ({ params, payload }) => licenses.resetUsage(params.id, payload),
      diagnose: ({ params, payload }) => diagnoses.diagnose(params.id, payload),
      preview: ({ params, payload }) => previews.preview(params.id, payload),
      listLeases: ({ params, query }) => leases.list(params.id, query),
      listFeatures: ({ params, query }) => licenses.features(params.id, query),
      assignFeature: ({ params, payload }) => licenses.assign(params.id, payload),
      removeFeature: ({ params }) => licenses.remove(params.id, params.feature_id)
    })
  })
)
