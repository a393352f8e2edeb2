/** What is read of a request before its body, on whichever way it is answered: the platform's request is one, and so is plain data. */

export interface RequestHead {
  readonly method: string
  /** The request target, as it came. */
  readonly url: string
  /** By their names in lower case. */
  readonly headers: { readonly [name: string]: string | undefined }
  /** The platform's own form of the request. */
  readonly source: object
}
