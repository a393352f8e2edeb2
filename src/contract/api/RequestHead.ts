/**
 * The part of a request that is read before its body. The framework's request and the fast path's plain object both
 * have this shape.
 */

export interface RequestHead {
  readonly method: string
  /** The request target, exactly as received. */
  readonly url: string
  /** The names are in lower case. */
  readonly headers: { readonly [name: string]: string | undefined }
  /** The platform's own form of the request. */
  readonly source: object
}

/** The path of a request target, without its query. */
export const pathOf = (target: string): string => {
  const query = target.indexOf("?")
  return query < 0 ? target : target.slice(0, query)
}

/** A well-formed X-Request-Id of the caller, which the response repeats. */
export const inboundRequestId = ({ "x-request-id": inbound }: RequestHead["headers"]): string | undefined =>
  inbound !== undefined && requestIdShape.test(inbound) ? inbound : undefined

/** The address that the caller has used, if the Host header is one: it may contain anything. */
export const originOf = ({ host = "" }: RequestHead["headers"]): string | undefined =>
  authorityShape.test(host) ? `http://${host}` : undefined

const authorityShape = /^[A-Za-z0-9.:[\]-]{1,255}$/
const requestIdShape = /^[A-Za-z0-9_-]{8,64}$/
