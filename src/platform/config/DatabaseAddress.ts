// The address of a database in libpq's format: a URL with one or several hosts, separated by commas. `target_session_attrs`
// selects the kind of server among them, `sslrootcert` names the file of the authorities.

/** A server's address. `name` is for messages: it contains no credentials. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly name: string
  /** Whether the connection is encrypted. If so, the server's certificate is always verified. */
  readonly tls: boolean
}

export interface Host extends Target {
  /** The database's URL with this host alone. */
  readonly url: string
}

/** The values of libpq. `prefer-standby` is not supported. */
const wantedServers = ["any", "read-write", "read-only", "primary", "standby"] as const
export type WantedServer = (typeof wantedServers)[number]

export interface Address {
  /** In the order in which they are tried. */
  readonly hosts: readonly [Host, ...ReadonlyArray<Host>]
  readonly wanted: WantedServer
  /** The file with the certificate authorities to trust, in PEM, if the URL names one and asks for TLS. */
  readonly authorities: string | undefined
  readonly name: string
}

const shape = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/

/** The parts of an address; undefined if the text is not a valid one. */
export const addressOf = (text: string): Address | undefined => {
  const [, credentials = "", hosts = "", rest = ""] = shape.exec(text) ?? []
  const names = hosts.split(",")
  const urls = names.map((name) => URL.parse(`${credentials}${name}${rest}`))
  const isWhole = urls.every((url) => url !== null) && (names.length === 1 || names.every((name) => name !== ""))
  const [first] = urls
  if (first == null || !isWhole) return undefined
  const [wanted = "any", ...others] = first.searchParams.getAll("target_session_attrs")
  if (!isWanted(wanted) || others.length > 0) return undefined
  const [one, ...more] = urls.map((url) => ({ ...targetOf(url as URL), url: (url as URL).href }))
  const before = more.length === 0 ? "" : `${[one, ...more].slice(0, -1).map((host) => `${host?.host}:${host?.port}`)},`
  const authorities = (one?.tls && first.searchParams.get("sslrootcert")) || undefined
  return { hosts: [one as Host, ...more], wanted, authorities, name: `${before}${[one, ...more].at(-1)?.name}` }
}

const isWanted = (word: string): word is WantedServer => (wantedServers as ReadonlyArray<string>).includes(word)

export const targetOf = (url: URL): Target => {
  const host = url.searchParams.get("host") ?? (decodeURIComponent(url.hostname).replace(/^\[|\]$/g, "") || "localhost")
  const port = Number(url.searchParams.get("port") ?? (url.port || "5432"))
  const database = url.searchParams.get("dbname") ?? decodeURIComponent(url.pathname.slice(1))
  const tls = (url.searchParams.get("sslmode") ?? "disable") !== "disable"
  return { host, port, name: `${host}:${port}/${database}`, tls }
}
