/**
 * The contract: the list of all groups of operations, in the order of the published tags. Each folder's `Api.ts` declares a
 * group.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { ActivitiesApi } from "./activities/Api.ts"
import { Intake } from "./api/Requests.ts"
import { ApiKeysApi } from "./auth/apiKeys/Api.ts"
import { MeApi } from "./auth/me/Api.ts"
import { CustomFieldsApi } from "./catalog/customFields/Api.ts"
import { FeaturesApi } from "./catalog/features/Api.ts"
import { PoliciesApi } from "./catalog/policies/Api.ts"
import { ProductsApi } from "./catalog/products/Api.ts"
import { VersionsApi } from "./catalog/versions/Api.ts"
import { CommerceApi } from "./commerce/Api.ts"
import { CustomersApi } from "./customers/Api.ts"
import { DevicesApi } from "./devices/Api.ts"
import { EventsApi } from "./events/Api.ts"
import { LicensesApi } from "./licenses/Api.ts"
import { OpsApi } from "./ops/Api.ts"
import { ReportsApi } from "./reports/Api.ts"
import { RuntimeApi } from "./runtime/Api.ts"
import { SearchApi } from "./search/Api.ts"
import { ProbesApi, SystemApi } from "./system/Api.ts"
import { version } from "./Version.ts"
import { WebhooksApi } from "./webhooks/Api.ts"

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
  .add(SearchApi)
  .add(DevicesApi)
  .add(CommerceApi)
  .add(CustomFieldsApi)
  .add(VersionsApi)
  .add(SystemApi)
  .prefix("/api/v1")
  .middleware(Intake)
  .add(ProbesApi)
  .annotate(HttpApi.PayloadParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(OpenApi.Title, "Licensing Service")
  .annotate(OpenApi.Version, version) {}
