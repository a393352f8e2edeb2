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
