/**
 * Asks the service. Requests and responses have the types of `PortalApi`, but nothing of it is in the page: the framework's client
 * would be larger than all the rest.
 */
import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { PortalApi } from "../../licensing/portal/PortalApi.ts"

type Groups = typeof PortalApi extends HttpApi.HttpApi<infer _, infer Groups> ? Groups : never
type Endpoint = HttpApiGroup.Endpoints<Groups>

/** The operations by method and path below /portal/api. */
type Operations = {
  [E in Endpoint as E extends {
    readonly method: infer Method extends string
    readonly path: `/portal/api${infer Path}`
  }
    ? `${Method} ${Path}`
    : never]: E
}

type Operation = keyof Operations & string
/** What is sent as JSON. */
type Encoded<S> = S extends { readonly schema: { readonly Encoded: infer A } } ? A : never
type Body<K extends Operation> = Encoded<HttpApiEndpoint.Payload<Operations[K]>>

interface Sent<K extends Operation> {
  readonly params?: { readonly [name: string]: string }
  readonly query?: { readonly [name: string]: string }
  readonly body?: Body<K>
}

export type Answer<K extends Operation> = Encoded<HttpApiEndpoint.Success<Operations[K]>>

/** Why the service did not do it. `UNREACHABLE`: there was no response. */
export interface Refused {
  readonly code: Code | "UNREACHABLE"
  readonly retryAfterSeconds?: number
}

export type Result<A> = { readonly answer: A } | { readonly refused: Refused }

/** The page's address, below a path that a balancer may add. */
export const address = document.querySelector<HTMLMetaElement>('meta[name="portal"]')?.content ?? "/portal"

export const ask = async <K extends Operation>(operation: K, sent: Sent<K> = {}): Promise<Result<Answer<K>>> => {
  const [method, path] = operation.split(" ") as [string, string]
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(sent.params?.[name] ?? ""))
  const query = sent.query === undefined ? "" : `?${new URLSearchParams(sent.query)}`
  try {
    const response = await fetch(`${address}/api${filled}${query}`, {
      method,
      ...(method === "POST" && {
        body: JSON.stringify(sent.body ?? {}),
        headers: { "content-type": "application/json" }
      })
    })
    const text = await response.text()
    const json = text === "" ? undefined : JSON.parse(text)
    if (response.ok) return { answer: json as Answer<K> }
    const retryAfter = Number(response.headers.get("retry-after"))
    return { refused: { code: json.error.code, ...(retryAfter > 0 && { retryAfterSeconds: retryAfter }) } }
  } catch {
    return { refused: { code: "UNREACHABLE" } }
  }
}
