/** The settings of the console and of its sign-in. */
import { flag, optional, pageTitle, scopeNames, setting, signInParameters, text } from "./Setting.ts"

export const consoleSettings = {
  /** Whether the console is served at /console. */
  console: setting<boolean>("LICENSING_CONSOLE", "true or false", true, flag),
  /** The name in the console's frame and in the titles of its pages; unset: "Licensing". */
  consoleTitle: pageTitle("LICENSING_CONSOLE_TITLE"),
  /** The console's client id at the OIDC issuer; unset: users of the console sign in with API tokens only. */
  consoleClientId: optional("LICENSING_CONSOLE_OIDC_CLIENT_ID", "a text", text),
  /** The scopes that the console requests from the issuer. */
  consoleScopes: setting<ReadonlyArray<string>>(
    "LICENSING_CONSOLE_OIDC_SCOPES",
    "names of scopes separated by spaces, openid among them",
    ["openid"],
    scopeNames
  ),
  /** Further parameters of the authorization request. */
  consoleParameters: setting<ReadonlyArray<readonly [name: string, value: string]>>(
    "LICENSING_CONSOLE_OIDC_PARAMETERS",
    "parameters of a query, as resource=https://licenses.example.com&prompt=select_account, none that the console sets itself",
    [],
    signInParameters
  )
}
