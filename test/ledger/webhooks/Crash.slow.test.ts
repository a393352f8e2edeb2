/**
 * At-least-once delivery under crashes: processes are killed while they deliver, and pending deliveries still arrive,
 * with the same ids.
 */
import { writeFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, layer } from "@effect/vitest"
import { Effect, FileSystem, Layer, Queue } from "effect"
import { verifyWebhook } from "../../../src/ledger/webhooks/VerifyWebhook.ts"
import { Database } from "../../support/database/Database.ts"
import { certificate, privateKey } from "../../support/http/Http.ts"
import { makeReceiver, type Received } from "../../support/http/Webhooks.ts"
import { startService } from "../../support/processes/Processes.ts"

const idOf = ({ headers }: Received) => String(headers["x-service-delivery-id"])
const sequenceOf = ({ headers }: Received) => Number(headers["x-service-event-sequence"])

/** By then the leases of the killed process's deliveries have ended. */
const afterLease = { LICENSING_CLOCK_OFFSET_SECONDS: "60" }

layer(Layer.merge(Database.layerUrl, NodeFileSystem.layer), { excludeTestServices: true, timeout: 60_000 })(
  "A process",
  (it) => {
    it.effect("that is killed while it delivers leaves all pending deliveries to the next one", () =>
      Effect.gen(function* () {
        const receiver = yield* makeReceiver
        const count = 60
        // When the process dies, some deliveries are answered, some are not yet, and most were never sent.
        receiver.answer((received) => (sequenceOf(received) % 3 === 0 ? { status: 200 } : "hang"))
        const first = yield* startService()
        const created = yield* first.manage("POST", "/webhooks", {
          name: "r",
          url: receiver.url,
          event_types: ["product.created"]
        })
        const { secret } = (created.json as { data: { secret: string } }).data
        const products = Array.from({ length: count }, (_, index) => ({ name: "p", code: `p${index}` }))
        yield* Effect.forEach(products, (product) => first.manage("POST", "/products", product), { concurrency: 4 })
        yield* Effect.replicateEffect(receiver.next, 8)
        yield* first.kill
        const before = receiver.received.length
        assert.isBelow(new Set(receiver.received.map(idOf)).size, count)

        receiver.answer(() => ({ status: 200 }))
        const second = yield* startService(afterLease)
        yield* Effect.repeat(receiver.next, {
          until: () => new Set(receiver.received.map(idOf)).size === count
        })
        const events = yield* second.manage("GET", "/events?event_type=product.created&limit=200")
        const sequences = (events.json as { data: ReadonlyArray<{ sequence: number }> }).data.map(
          ({ sequence }) => sequence
        )
        assert.sameMembers([...new Set(receiver.received.map(sequenceOf))], sequences)
        // Deliveries that the killed process sent without receiving a response are repeated: the same id, the same
        // bytes, a new signature.
        const unanswered = receiver.received.slice(0, before).filter((one) => sequenceOf(one) % 3 !== 0)
        assert.isNotEmpty(unanswered)
        for (const one of unanswered) {
          const again = receiver.received.slice(before).filter((other) => idOf(other) === idOf(one))
          assert.lengthOf(again, 1)
          assert.isTrue(again[0]!.body.equals(one.body))
          const nowSeconds = Number(again[0]!.headers["webhook-timestamp"])
          assert.isTrue(verifyWebhook({ ...again[0]!, secret, nowSeconds }).valid)
        }
        assert.notInclude(first.written.out + second.written.out, secret.slice(6))
      })
    )

    it.effect("that is asked to stop releases its unfinished deliveries, and others take them immediately", () =>
      Effect.gen(function* () {
        const receiver = yield* makeReceiver
        receiver.answer(() => "hang")
        const first = yield* startService()
        yield* first.manage("POST", "/webhooks", { name: "s", url: receiver.url, event_types: ["customer.created"] })
        yield* first.manage("POST", "/customers", { name: "c", code: "stopped" })
        const unansweredRequest = yield* receiver.next
        yield* first.stop
        receiver.answer(() => ({ status: 200 }))
        yield* startService()
        assert.strictEqual(idOf(yield* receiver.next), idOf(unansweredRequest))
      })
    )

    it.effect("delivers over TLS to a receiver with a trusted certificate for its name", () =>
      Effect.gen(function* () {
        const directory = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
        writeFileSync(`${directory}/ca.pem`, certificate)
        const arrived = yield* Queue.unbounded<string>()
        const server = createServer({ key: privateKey, cert: certificate }, (request, response) => {
          request.resume().on("end", () => {
            Queue.offerUnsafe(arrived, `${request.headers.host} ${String(request.headers["x-service-event-type"])}`)
            response.end()
          })
        })
        yield* Effect.acquireRelease(
          Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
          () => Effect.sync(() => server.close().closeAllConnections())
        )
        const { port } = server.address() as AddressInfo
        const program = yield* startService({ NODE_EXTRA_CA_CERTS: `${directory}/ca.pem` })
        const url = `https://localhost:${port}/`
        yield* program.manage("POST", "/webhooks", { name: "t", url, event_types: ["webhook.created"] })
        assert.strictEqual(yield* Queue.take(arrived), `localhost:${port} webhook.created`)
      })
    )
  }
)
