/** Settings that are valid alone but not in combination. The line of each contradiction names the setting to change. */
import { linesOf } from "./Setting.ts"

/** The settings that depend on others. Settings that are invalid themselves are absent. */
interface Values {
  readonly baseUrl: unknown
  readonly cluster: boolean
  readonly clusterAddress: unknown
  readonly clusterListen: unknown
  readonly consoleClientId: unknown
  readonly databaseUrl: unknown
  readonly mailFrom: unknown
  readonly masterKey: unknown
  readonly oidcAudience: unknown
  readonly oidcIssuer: unknown
  readonly portal: boolean
  readonly smtpUrl: unknown
}

/** Errors of combinations of settings that are each valid. */
export const contradictions = (values: Values): ReadonlyArray<string> => {
  const { cluster, clusterAddress, clusterListen, consoleClientId, databaseUrl, oidcAudience, oidcIssuer } = values
  const { mailFrom, smtpUrl } = values
  return [
    ...missingKey(values),
    ...linesOf([
      [
        values.portal && values.smtpUrl !== undefined && values.baseUrl === undefined,
        "LICENSING_BASE_URL must be set together with LICENSING_PORTAL and LICENSING_SMTP_URL: links in mails lead there."
      ],
      [
        oidcIssuer !== undefined && oidcAudience === undefined,
        "LICENSING_OIDC_AUDIENCE must be set together with LICENSING_OIDC_ISSUER: the audience that tokens are made for."
      ],
      [
        oidcIssuer === undefined && oidcAudience !== undefined,
        "LICENSING_OIDC_ISSUER must be set together with LICENSING_OIDC_AUDIENCE: the address of the issuer."
      ],
      [
        consoleClientId !== undefined && oidcIssuer === undefined,
        "LICENSING_OIDC_ISSUER must be set together with LICENSING_CONSOLE_OIDC_CLIENT_ID: where the console signs in."
      ],
      [
        cluster && databaseUrl === undefined,
        "LICENSING_DATABASE_URL must be set together with LICENSING_CLUSTER: the database that all nodes share."
      ],
      [
        cluster && clusterListen === undefined,
        "LICENSING_CLUSTER_LISTEN must be set together with LICENSING_CLUSTER: where this node listens for other nodes."
      ],
      [
        cluster && clusterAddress === undefined,
        "LICENSING_CLUSTER_ADDRESS must be set together with LICENSING_CLUSTER: what other nodes dial."
      ],
      [
        smtpUrl !== undefined && mailFrom === undefined,
        "LICENSING_MAIL_FROM must be set together with LICENSING_SMTP_URL: the sender of mails."
      ],
      [
        smtpUrl === undefined && mailFrom !== undefined,
        "LICENSING_SMTP_URL must be set together with LICENSING_MAIL_FROM: the server that takes mails."
      ]
    ])
  ]
}

// A key generated in a container's data folder would be lost with the container, but the external database would remain.
export const missingKey = (values: Values): ReadonlyArray<string> =>
  linesOf([
    [
      "masterKey" in values && values.masterKey === undefined && values.databaseUrl !== undefined,
      "LICENSING_MASTER_KEY must be set together with LICENSING_DATABASE_URL: base64 of exactly 32 bytes, as `openssl rand -base64 32` makes it."
    ]
  ])
