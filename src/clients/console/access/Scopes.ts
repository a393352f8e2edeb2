/** What each scope lets a key do. */
import { ManagementScope } from "../../../access/Scope.ts"

interface Meaning {
  /** For lists. */
  readonly words: string
  /** Shown where scopes are selected. */
  readonly sentence: string
}

const meanings: Readonly<Record<ManagementScope, Meaning>> = {
  admin: { words: "everything", sentence: "Do everything, also create and revoke API keys." },
  "product:read": { words: "read products", sentence: "Read products with their policies, features and versions." },
  "product:write": {
    words: "change products",
    sentence: "Change products with their policies, features and versions."
  },
  "license:read": { words: "read licenses", sentence: "Find and read licenses, customers, orders and subscriptions." },
  "license:write": { words: "change licenses", sentence: "Issue, change and revoke licenses, and change customers." },
  "device:write": { words: "change devices", sentence: "Reset and block the devices of licenses." },
  "event:read": { words: "read events", sentence: "Read the events: who changed what, and when." },
  "ops:read": { words: "see operations", sentence: "See how the service itself works: its load, errors and workers." },
  "report:read": { words: "read reports", sentence: "Read reports and activities: usage, refusals, seats." },
  "report:export": { words: "export reports", sentence: "Export reports as files, and download them." },
  "webhook:write": { words: "manage webhooks", sentence: "Read and change webhooks, and see their new secrets." }
}

export const scopeChoices = ManagementScope.literals.map((id) => ({ id, name: meanings[id].sentence }))

export const wordsOfScopes = (scopes: ReadonlyArray<ManagementScope>): string =>
  scopes.map((scope) => meanings[scope].words).join(", ")
