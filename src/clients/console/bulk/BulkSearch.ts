/** The query parameters of the list of bulk jobs. */
import { Schema } from "effect"
import { bulkJobFilters } from "../../../licensing/bulk/BulkJob.ts"
import { CreatedSearch } from "../tables/CodeSearch.ts"

export const BulkSearch = Schema.Struct({ ...CreatedSearch.fields, ...bulkJobFilters })
export type BulkSearch = typeof BulkSearch.Type
