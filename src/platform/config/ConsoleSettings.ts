/** The settings of the console, and how people sign in to it. */
import { flag, scopeNames, setting, signInParameters, text } from "./Setting.ts"

export const consoleSettings = {
  /** Whether the console is served at /console. */
  console: setting<boolean>("LICENSING_CONSOLE", "true or false", true, flag),
  /** The id by which the OIDC issuer knows the console; unset: the console's users sign in with API tokens only. */
  consoleClientId: setting<string | undefined>("LICENSING_CONSOLE_OIDC_CLIENT_ID", "a text", undefined, text),
  /** The scopes that the console asks the issuer for. */
  consoleScopes: setting<ReadonlyArray<string>>(
    "LICENSING_CONSOLE_OIDC_SCOPES",
    "names of scopes separated by spaces, openid among them",
    ["openid"],
    scopeNames
  ),
  /** Further parameters of the request that begins a sign-in. */
  consoleParameters: setting<ReadonlyArray<readonly [name: string, value: string]>>(
    "LICENSING_CONSOLE_OIDC_PARAMETERS",
    "parameters of a query, as resource=https://licenses.example.com&prompt=select_account, none that the console sets itself",
    [],
    signInParameters
  )
}
