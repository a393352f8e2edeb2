/** Mails under crashes: processes are killed before and after they send, and each mail arrives, repeated only with its Message-ID. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../support/database/Database.ts"
import { makeMailServer } from "../../support/http/MailServer.ts"
import { startService } from "../../support/processes/Processes.ts"

/** By then the leases of the killed process's mails have ended. */
const afterLease = { LICENSING_CLOCK_OFFSET_SECONDS: "600" }

interface Made {
  readonly data: { readonly id: string; readonly licenses: ReadonlyArray<{ readonly license_key: string }> }
}

layer(Database.layerUrl, { excludeTestServices: true, timeout: 120_000 })("A process", (it) => {
  it.effect("that is killed while it sends leaves all mails to the next one", () =>
    Effect.gen(function* () {
      const count = 40
      const server = yield* makeMailServer()
      const mail = {
        LICENSING_SMTP_URL: `smtp://127.0.0.1:${server.port}`,
        LICENSING_MAIL_FROM: "Example <licenses@example.com>"
      }
      // When the process dies, some mails are sent and recorded, some are sent without an answer, and most wait.
      server.reply((stage, address) => (stage === "data" && /[05]@/.test(address) ? "hang" : undefined))
      const first = yield* startService(mail)
      const product = (yield* first.manage("POST", "/products", { name: "P", code: "p" })).json as Made
      const policy = (yield* first.manage("POST", `/products/${product.data.id}/policies`, {
        name: "P",
        code: "p",
        license_type: "perpetual"
      })).json as Made
      const ids = { product_id: product.data.id, policy_id: policy.data.id }
      const licenses = Array.from({ length: count }, (_, n) => ({
        ...ids,
        customer_email: `buyer-${n}@example.com`,
        send_key: true
      }))
      const created = (yield* first.manage("POST", "/licenses/batch", { licenses })).json as Made
      const before = yield* Effect.replicateEffect(server.next, 8)
      yield* first.kill
      assert.isBelow(server.accepted.length, count)

      server.reply(() => undefined)
      const second = yield* startService({ ...mail, ...afterLease })
      yield* Effect.repeat(server.next, { until: () => new Set(server.accepted.map(({ to }) => to)).size === count })
      const idsOf = Map.groupBy([...before, ...server.accepted], ({ to }) => to)
      for (const [index, { license_key }] of created.data.licenses.entries()) {
        const mails = idsOf.get(`buyer-${index}@example.com`) ?? []
        assert.isNotEmpty(mails)
        assert.strictEqual(new Set(mails.map(({ id }) => id)).size, 1, "a repeated mail has its Message-ID")
        for (const { text } of mails) assert.include(text, license_key)
        assert.notInclude(first.written.out + second.written.out, license_key)
      }
      assert.notInclude(first.written.out + second.written.out, "@example.com")
    })
  )

  it.effect("that is killed before it sends leaves its mails to the next one", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const off = { LICENSING_SMTP_URL: "smtp://127.0.0.1:9", LICENSING_MAIL_FROM: "licenses@example.com" }
      const first = yield* startService(off)
      const product = (yield* first.manage("POST", "/products", { name: "Q", code: "q" })).json as Made
      const policy = (yield* first.manage("POST", `/products/${product.data.id}/policies`, {
        name: "Q",
        code: "q",
        license_type: "perpetual"
      })).json as Made
      yield* first.manage("POST", "/licenses", {
        product_id: product.data.id,
        policy_id: policy.data.id,
        customer_email: "late@example.com",
        send_key: true
      })
      yield* first.kill
      yield* startService({ ...off, ...afterLease, LICENSING_SMTP_URL: `smtp://127.0.0.1:${server.port}` })
      assert.strictEqual((yield* server.next).to, "late@example.com")
    })
  )
})
