/** Settings that are each valid but not together. One line for each contradiction, which names the setting to change. */

/** The settings that depend on others. One that is invalid itself is missing here. */
interface Values {
  readonly cluster: boolean
  readonly clusterAddress: unknown
  readonly clusterListen: unknown
  readonly consoleClientId: unknown
  readonly databaseUrl: unknown
  readonly masterKey: unknown
  readonly oidcAudience: unknown
  readonly oidcIssuer: unknown
}

/** Errors of combinations of settings that are each valid. */
export const contradictions = (values: Values): ReadonlyArray<string> => [
  ...missingKey(values),
  ...(values.oidcIssuer !== undefined && values.oidcAudience === undefined
    ? [
        "LICENSING_OIDC_AUDIENCE must be set together with LICENSING_OIDC_ISSUER: the audience that tokens are made for."
      ]
    : []),
  ...(values.oidcIssuer === undefined && values.oidcAudience !== undefined
    ? ["LICENSING_OIDC_ISSUER must be set together with LICENSING_OIDC_AUDIENCE: the address of the issuer."]
    : []),
  ...(values.consoleClientId !== undefined && values.oidcIssuer === undefined
    ? ["LICENSING_OIDC_ISSUER must be set together with LICENSING_CONSOLE_OIDC_CLIENT_ID: where the console signs in."]
    : []),
  ...(values.cluster ? missingForCluster(values) : [])
]

const missingForCluster = ({ clusterAddress, clusterListen, databaseUrl }: Values): ReadonlyArray<string> => [
  ...(databaseUrl === undefined
    ? ["LICENSING_DATABASE_URL must be set together with LICENSING_CLUSTER: the database that all nodes share."]
    : []),
  ...(clusterListen === undefined
    ? ["LICENSING_CLUSTER_LISTEN must be set together with LICENSING_CLUSTER: where this node listens for other nodes."]
    : []),
  ...(clusterAddress === undefined
    ? ["LICENSING_CLUSTER_ADDRESS must be set together with LICENSING_CLUSTER: what other nodes dial."]
    : [])
]

// A key generated in a container's data folder would be lost with the container, while the external database remains.
export const missingKey = (values: Values): ReadonlyArray<string> =>
  "masterKey" in values && values.masterKey === undefined && values.databaseUrl !== undefined
    ? [
        "LICENSING_MASTER_KEY must be set together with LICENSING_DATABASE_URL: base64 of exactly 32 bytes, as `openssl rand -base64 32` makes it."
      ]
    : []
