/** The scopes of management credentials. `admin` satisfies every operation; a write scope does not imply its read scope. */
import { Schema } from "effect"

export const ManagementScope = Schema.Literals([
  "admin",
  "product:read",
  "product:write",
  "license:read",
  "license:write",
  "device:write",
  "event:read",
  "ops:read",
  "report:read",
  "report:export",
  "webhook:write"
]).annotate({ identifier: "ManagementScope" })
export type ManagementScope = typeof ManagementScope.Type
