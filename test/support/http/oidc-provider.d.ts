/** Types for the part of oidc-provider that tests use; the package has none. */
declare module "oidc-provider" {
  import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"

  export interface Grant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }

  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): RequestListener
    /** Lets a sign-in go on, with an account or an error. */
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
    readonly Grant: new (of: {
      readonly accountId: string
      readonly clientId: string
    }) => Grant
  }
  export default Provider
}
