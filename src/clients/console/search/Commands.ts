/** What can be begun from the search box: the places of the navigation, and the most frequent actions. */
import type { ManagementScope } from "../../../access/Scope.ts"
import type { IconName } from "../look/Icon.tsx"
import { groups } from "./Places.ts"

export interface Command {
  readonly name: string
  readonly to: string
  readonly icon: IconName
}

interface Offered extends Command {
  /** All of these are needed. */
  readonly scopes: ReadonlyArray<ManagementScope>
}

const actions: ReadonlyArray<Offered> = [
  { name: "Issue a license", to: "/licenses/new", icon: "plus", scopes: ["license:write", "product:read"] },
  { name: "Issue a batch", to: "/licenses/batch", icon: "plus", scopes: ["license:write", "product:read"] },
  { name: "Go to bulk jobs", to: "/bulk-jobs", icon: "repeat", scopes: ["license:read"] }
]

export const commandsFor = (may: (scope: ManagementScope) => boolean): ReadonlyArray<Command> => [
  ...actions.filter(({ scopes }) => scopes.every(may)),
  { name: "Go to overview", to: "/", icon: "overview" },
  ...groups
    .flatMap(({ items }) => items)
    .filter(({ scopes }) => scopes.some(may))
    .map(({ icon, name, to }) => ({
      name: `Go to ${name.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())}`,
      to,
      icon
    }))
]
