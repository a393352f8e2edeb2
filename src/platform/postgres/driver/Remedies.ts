/** What an operator can do about a database that cannot be used, by the code of the server, of the system or of TLS. */
import { Predicate } from "effect"
import type { SqlError } from "effect/sql"
import { reasonOf } from "./Hosts.ts"

const address = "LICENSING_DATABASE_URL"
const authority =
  "Name the file of its certificate authority: sslrootcert=/path/to/ca.pem in the database address, or NODE_EXTRA_CA_CERTS"

const remedies: Readonly<Record<string, string>> = {
  // SQLSTATE
  "08P01": `If a pooler such as PgBouncer answers there, point ${address} at the server itself`,
  "28000": "Allow this role and this machine in pg_hba.conf, with TLS if it asks for it",
  "28P01": `Correct the role or the password in ${address}`,
  "3D000": "Create the database: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0",
  "53100": "Free some space on the server's disk",
  "53300": "End other connections, or raise max_connections; one node needs 25, with LICENSING_CLUSTER 28",
  "57P03": "Wait until the server has started or recovered",
  // The system's
  ECONNREFUSED: `Start the server, or correct the host and the port in ${address}`,
  ECONNRESET: "Look into the server's log, and see that no firewall or proxy is in between",
  EHOSTUNREACH: "Look at routes and firewalls between here and the server",
  ENETUNREACH: "Look at routes and firewalls between here and the server",
  ENOENT: `Start the server, or correct the folder of its socket in ${address}`,
  ENOTFOUND: `Correct the host in ${address}, or this machine's DNS`,
  EAI_AGAIN: "Repair this machine's DNS",
  ETIMEDOUT: "Look at firewalls between here and the server, and at its load",
  // TLS
  DEPTH_ZERO_SELF_SIGNED_CERT: authority,
  SELF_SIGNED_CERT_IN_CHAIN: authority,
  UNABLE_TO_GET_ISSUER_CERT: authority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: authority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: authority,
  CERT_HAS_EXPIRED: "Renew the server's certificate",
  ERR_TLS_CERT_ALTNAME_INVALID: `Use the host name of the server's certificate in ${address}`
}

/** By words, where the driver gives no code. */
const remedyByWords: ReadonlyArray<readonly [RegExp, string]> = [
  [/does not support TLS/, `Switch TLS on in the server, or take sslmode out of ${address} if the network is your own`],
  [/takes no writes/, `Promote it, point ${address} at the primary, or set default_transaction_read_only to off`],
  [/is not PostgreSQL/, `Correct the host and the port in ${address}`]
]

/** The remedy, without a full stop; undefined if none is known. `setting` names the server. */
export const remedyOf = (error: SqlError.SqlError, setting = address): string | undefined => {
  const { cause } = error.reason
  const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : ""
  const reason = reasonOf(error)
  // A replica has the databases of its primary.
  if (code === "3D000" && setting !== address) return `Correct the name of the database in ${setting}`
  return (remedies[code] ?? remedyByWords.find(([words]) => words.test(reason))?.[1])?.replaceAll(address, setting)
}

/** The reason, followed by the remedy. */
export const withRemedy = (error: SqlError.SqlError, setting?: string): string => {
  const remedy = remedyOf(error, setting)
  return remedy === undefined ? reasonOf(error) : `${reasonOf(error).replace(/\.$/, "")}. ${remedy}.`
}
