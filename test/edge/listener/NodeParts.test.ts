/** The parts of Node's HTTP server that its documentation does not name. */
import { createServer } from "node:http"
import { assert, it } from "@effect/vitest"
import { missingParts } from "../../../src/edge/listener/NodeParts.ts"

it("Parts that are missing are named", () => {
  const closed = createServer()
  assert.deepStrictEqual(missingParts(closed), ["_handle.listen"])
  const bare = createServer()
  bare.removeAllListeners("connection")
  assert.deepStrictEqual(missingParts(closed, bare), [
    "parser.onIncoming",
    "parser.resume",
    "_paused",
    "_handle.listen"
  ])
})
