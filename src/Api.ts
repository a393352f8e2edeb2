/**
 * The contract: the list of all groups of operations, in the order of the published tags. Each folder's `Api.ts` declares a
 * group.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { MeApi } from "./access/me/Api.ts"
import { Intake } from "./contract/api/Requests.ts"
import { version } from "./contract/Version.ts"
import { ProbesApi, SystemApi } from "./edge/system/Api.ts"
import { ActivitiesApi } from "./insight/activities/Api.ts"
import { OpsApi } from "./insight/ops/Api.ts"
import { ReportsApi } from "./insight/reports/Api.ts"
import { SearchApi } from "./insight/search/Api.ts"
import { EventsApi } from "./ledger/events/Api.ts"
import { WebhooksApi } from "./ledger/webhooks/Api.ts"
import { BulkJobsApi } from "./licensing/bulk/Api.ts"
import { DevicesApi } from "./licensing/devices/Api.ts"
import { LicensesApi } from "./licensing/licenses/Api.ts"
import { RuntimeApi } from "./licensing/runtime/Api.ts"
import { ApiKeysApi } from "./vendor/apiKeys/Api.ts"
import { CommerceApi } from "./vendor/commerce/Api.ts"
import { CustomersApi } from "./vendor/customers/Api.ts"
import { CustomFieldsApi } from "./vendor/customFields/Api.ts"
import { FeaturesApi } from "./vendor/features/Api.ts"
import { PoliciesApi } from "./vendor/policies/Api.ts"
import { ProductsApi } from "./vendor/products/Api.ts"
import { VersionsApi } from "./vendor/versions/Api.ts"

export class Api extends HttpApi.make("licensing")
  .add(RuntimeApi)
  .add(ProductsApi)
  .add(PoliciesApi)
  .add(FeaturesApi)
  .add(CustomersApi)
  .add(ApiKeysApi)
  .add(MeApi)
  .add(EventsApi)
  .add(OpsApi)
  .add(ActivitiesApi)
  .add(ReportsApi)
  .add(WebhooksApi)
  .add(LicensesApi)
  .add(BulkJobsApi)
  .add(SearchApi)
  .add(DevicesApi)
  .add(CommerceApi)
  .add(CustomFieldsApi)
  .add(VersionsApi)
  .add(SystemApi)
  .prefix("/api/v1")
  .middleware(Intake)
  .add(ProbesApi)
  .annotate(OpenApi.Title, "Licensing Service")
  .annotate(OpenApi.Version, version) {}
