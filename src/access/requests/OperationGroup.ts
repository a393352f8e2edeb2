/**
 * The handlers of a group of operations. They receive the body that `Decoding` has decoded: the framework would parse and decode it
 * again, and needs several times as long for a list of a thousand objects.
 */
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { payloadOf } from "./RequestBody.ts"

/** `HttpApiBuilder.group`, whose handlers take the decoded body. */
export const operationGroup: typeof HttpApiBuilder.group = (api, identifier, build) =>
  HttpApiBuilder.group(api, identifier, (handlers) => build(withPayloads(handlers)))

interface Input {
  readonly request: HttpServerRequest.HttpServerRequest
}

interface Registry {
  handleRaw(identifier: string, handler: (input: Input) => unknown): unknown
}

const withPayloads = <H extends object>(handlers: H): H => {
  const handleAll = (all: { readonly [identifier: string]: (input: Input) => unknown }) => {
    for (const [identifier, handler] of Object.entries(all))
      (handlers as unknown as Registry).handleRaw(identifier, (input) =>
        handler({ ...input, payload: payloadOf(input.request) } as Input)
      )
    return handlers
  }
  return Object.create(handlers, { handleAll: { value: handleAll } }) as H
}
