/** The search over all records: what a back office types into its one search field. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Data } from "../../contract/api/Envelope.ts"
import { Decoding } from "../../contract/api/Requests.ts"
import { SearchResults, SearchText } from "./SearchResults.ts"

export class SearchApi extends HttpApiGroup.make("search")
  .add(
    HttpApiEndpoint.get("search", "/search", { query: { q: SearchText }, success: Data(SearchResults) }).annotateMerge(
      operation({
        id: "search",
        summary: "Search licenses, customers, devices, orders and subscriptions",
        description:
          "Returns at most 20 records in all, of each kind the closest matches first. If several kinds have many, they share the places. A license key finds its license only.",
        scopes: ["license:read"],
        reach: "rows"
      })
    )
  )
  .middleware(Decoding)
  .middleware(ManagementAuthorization)
  .annotate(OpenApi.Title, "licenses") {}
