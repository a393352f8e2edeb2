/** Licenses that are chosen one by one or by filters. */
import type { License } from "../../../licensing/model/License.ts"
import type { Request } from "../../client/Client.ts"

export type Filters = NonNullable<Request<"listLicenses">["query"]>

/** The licenses that are chosen, or the filters that choose them. */
export type Chosen = ReadonlyArray<License> | { readonly filters: Filters }
