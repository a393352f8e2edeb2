/** What an undo takes back: all that its change did, and nothing of somebody else's. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, type Person, withPerson } from "../browser/Browser.ts"
import { forgive, prepare } from "../browser/Meanwhile.ts"
import { type PreparedOrder, withOrder } from "../browser/Purchase.ts"

const minutes = 5 * 60_000

/** Another license of the order, and the statuses of all three records. */
const withAnother = async ({ client, license, order }: PreparedOrder) => {
  const { policy_id, product_id } = license
  const payload = { product_id, policy_id, order_id: order.id, customer_name: "Second" }
  const { license: other } = await Effect.runPromise(client.licenses.create({ payload }))
  const status = async (id: string) => (await Effect.runPromise(client.licenses.get({ params: { id } }))).status
  const statuses = async () => {
    const found = await Effect.runPromise(client.commerce.getOrder({ params: { id: order.id } }))
    return [found.status, await status(license.id), await status(other.id)]
  }
  const change = (verb: "suspend" | "reinstate", id: string) =>
    Effect.runPromise(client.licenses[verb]({ params: { id } }))
  return { change, other, statuses }
}

const notices = (person: Person) => person.page.getByRole("region", { name: "Notices" })

const refund = async (person: Person, { number }: PreparedOrder) => {
  await person.click(`Refund order ${number}`)
  await person.click("Refund")
}

const undoes = async (person: Person) => {
  await person.click("Undo")
  await notices(person).getByText("Undone.", { exact: true }).waitFor()
}

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  const test = (name: string, ...story: Parameters<typeof withOrder>) => it.effect(name, withOrder(...story), minutes)

  test("a refund that was sent again for a license is taken back as a whole, also at a second try", async (person, prepared) => {
    const { number, order } = prepared
    const { other, statuses } = await withAnother(prepared)
    const suspension = `**/licenses/${other.id}/suspend`
    const reinstatement = `**/licenses/${other.id}/reinstate`
    await person.opens(`/orders/${order.id}`, `Order ${number}`)
    await person.page.route(suspension, (route) => route.abort())
    await refund(person, prepared)
    await person.sees("These licenses could not be changed:")
    await person.click("Close")
    await person.isDone()
    assert.deepStrictEqual(await statuses(), ["refunded", "suspended", "active"])
    await person.page.unroute(suspension)
    await refund(person, prepared)
    await person.isDone()
    await notices(person).getByText("The order is refunded, and 2 licenses are suspended.").waitFor()
    await person.page.route(reinstatement, (route) => route.abort())
    await person.click("Undo")
    await notices(person).getByText("Not undone. The service cannot be reached").waitFor()
    await person.page.unroute(reinstatement)
    await undoes(person)
    assert.deepStrictEqual(await statuses(), ["paid", "active", "active"])
    forgive(person)
  })

  test("a refund whose responses were lost is taken back as a whole", async (person, prepared) => {
    const { number, order } = prepared
    const { other, statuses } = await withAnother(prepared)
    await person.opens(`/orders/${order.id}`, `Order ${number}`)
    const lose = async (path: string, method: string) =>
      await person.page.route(path, async (route) => {
        if (route.request().method() !== method) return await route.fallback()
        await route.fetch()
        await route.abort()
      })
    await lose(`**/orders/${order.id}`, "PATCH")
    await refund(person, prepared)
    await person.page.locator("dialog[open]").getByText("The service cannot be reached").waitFor()
    await person.page.unrouteAll()
    await lose(`**/licenses/${other.id}/suspend`, "POST")
    await person.click("Refund")
    await person.sees("These licenses could not be changed:")
    await person.page.unrouteAll()
    await person.click("Close")
    await person.isDone()
    assert.deepStrictEqual(await statuses(), ["refunded", "suspended", "suspended"])
    await refund(person, prepared)
    await person.isDone()
    await notices(person).getByText("The order is refunded, and 2 licenses are suspended.").waitFor()
    await undoes(person)
    assert.deepStrictEqual(await statuses(), ["paid", "active", "active"])
    forgive(person)
  })

  test("licenses that somebody else suspended, before an undo or before the change, stay suspended", async (person, prepared) => {
    const { license, number, order } = prepared
    const { change, other, statuses } = await withAnother(prepared)
    await person.opens(`/orders/${order.id}`, `Order ${number}`)
    const all = (url: URL) => url.pathname.endsWith("/licenses") && url.searchParams.get("limit") === "200"
    await person.page.route(all, async (route) => {
      const response = await route.fetch()
      await change("suspend", other.id)
      await route.fulfill({ response })
    })
    await refund(person, prepared)
    await person.isDone()
    await notices(person).getByText("The order is refunded, and 1 license is suspended.").waitFor()
    await undoes(person)
    assert.deepStrictEqual(await statuses(), ["paid", "active", "suspended"])
    await change("reinstate", other.id)
    await person.page.unrouteAll()
    await refund(person, prepared)
    await person.isDone()
    await change("reinstate", license.id)
    await change("suspend", license.id)
    await person.click("Undo")
    await notices(person).getByText("The order has its earlier status, but 1 of its licenses could not").waitFor()
    assert.strictEqual(await notices(person).getByRole("button", { name: "Undo" }).count(), 0)
    assert.deepStrictEqual(await statuses(), ["paid", "suspended", "active"])
  })

  test("licenses are reinstated without another status, and suspended again", async (person, prepared) => {
    const { license, number, order } = prepared
    const { change, statuses } = await withAnother(prepared)
    await change("suspend", license.id)
    await person.opens(`/orders/${order.id}`, `Order ${number}`)
    await person.click("Change status")
    await person.choose("Its licenses", "Reinstate")
    await person.click("Change status")
    await person.isDone()
    await notices(person).getByText("1 license is reinstated.", { exact: true }).waitFor()
    assert.deepStrictEqual(await statuses(), ["paid", "active", "active"])
    await undoes(person)
    assert.deepStrictEqual(await statuses(), ["paid", "suspended", "active"])
  })

  test("a subscription that is canceled is active again, without the day of its end", async (person, {
    client,
    product
  }) => {
    const external = { external_system: "stripe", external_id: "on" }
    const period = { current_period_start: 0, current_period_end: 1 }
    const payload = { ...external, ...period, status: "active" } as const
    const { id } = await Effect.runPromise(client.commerce.createSubscription({ params: { id: product.id }, payload }))
    await person.opens(`/subscriptions/${id}`, "Subscription on")
    await person.click("Change status")
    await person.choose("Status", "Canceled")
    await person.click("Change status")
    await person.isDone()
    await undoes(person)
    const after = await Effect.runPromise(client.commerce.getSubscription({ params: { id } }))
    assert.deepStrictEqual([after.status, after.canceled_at], ["active", undefined])
  })

  it.effect(
    "an undo takes nothing back that somebody else has done since, though it led to the same state",
    ({ skip }) =>
      Effect.gen(function* () {
        const { advance } = yield* TestServer
        const { all, client, licenses, name } = yield* prepare(1)
        const params = { id: licenses[0]!.id }
        const { license_key } = yield* client.licenses.rotateKey({ params, payload: {} })
        const runtime = yield* (yield* TestServer).connect({ licenseKey: license_key })
        yield* runtime.runtime.activate({ payload: { fingerprint: name, hostname: "laptop" } })
        const [device] = (yield* client.devices.list({ params, query: {} })).items
        const ofDevice = { params: { ...params, device_id: device!.id } }
        const { webhook } = yield* client.webhooks.create({ payload: { name, url: "https://hooks.example.com/undo" } })
        const turn = (is_active: boolean) =>
          client.webhooks.update({ params: { id: webhook.id }, payload: { is_active } })
        const later = (...done: ReadonlyArray<Effect.Effect<unknown, unknown>>) =>
          Effect.runPromise(Effect.forEach(done, (one) => Effect.andThen(advance(1), one)))
        yield* withPerson(skip, async (person) => {
          const isRefused = async () => {
            await person.isDone()
            await person.click("Undo")
            await person.sees(/Not undone\. Somebody has changed it again since/)
          }
          await person.opens(`/licenses/${params.id}`, `${name} customer 1`)
          await person.pick("Actions for laptop", "Block laptop")
          await person.click("Block")
          await person.isDone()
          await later(client.devices.unblacklist(ofDevice), client.devices.blacklist(ofDevice))
          await isRefused()
          await person.pick("More", "Suspend")
          await person.click("Suspend")
          await person.isDone()
          await later(client.licenses.reinstate({ params }), client.licenses.suspend({ params }))
          await isRefused()
          await person.opens("/webhooks", "Webhooks")
          await person.pick(`Actions for ${name}`, `Switch off ${name}`)
          await person.click("Switch off")
          await person.isDone()
          await later(turn(true), turn(false))
          await isRefused()
        })
        assert.strictEqual((yield* all).items[0]!.status, "suspended")
        assert.strictEqual((yield* client.devices.get(ofDevice)).status, "blacklisted")
        assert.isFalse((yield* client.webhooks.get({ params: { id: webhook.id } })).is_active)
      }),
    minutes
  )

  it.effect(
    "an undo that does not apply any more shows what somebody else has done, also on a phone",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, licenses, name } = yield* prepare(1)
        const params = { id: licenses[0]!.id }
        yield* withPerson(
          skip,
          async (person) => {
            await person.opens(`/licenses/${params.id}`, `${name} customer 1`)
            await person.pick("More", "Suspend")
            await person.click("Suspend")
            await person.isDone()
            await Effect.runPromise(client.licenses.revoke({ params }))
            await person.click("Undo")
            await notices(person).getByText("Not undone. Somebody has changed it again since").waitFor()
            await person.page.locator(".about").getByText("Revoked").waitFor()
            assert.isAbove((await notices(person).boundingBox())!.width, 300)
          },
          { width: 390 }
        )
      }),
    minutes
  )
})
