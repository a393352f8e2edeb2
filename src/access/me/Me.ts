/** The description of a management credential. The console offers only what the credential's scopes allow. */
import { Schema } from "effect"
import { Timestamp } from "../../contract/api/Timestamp.ts"
import { ManagementScope } from "../Scope.ts"

export const Me = Schema.Struct({
  kind: Schema.Literals(["api_key", "oidc_subject"]).annotate({ description: "The kind of the token." }),
  id: Schema.String.annotate({ description: "The id of the API key, or the subject of the OIDC token." }),
  name: Schema.String.annotate({ description: "The name of the API key, or of the subject as its issuer gives it." }),
  scopes: Schema.Array(ManagementScope),
  product_ids: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({ description: "The products that the token is for; absent: all." })
  ),
  expires_at: Schema.optionalKey(Timestamp)
}).annotate({ identifier: "Me", description: "The token of the request and what it may do." })
