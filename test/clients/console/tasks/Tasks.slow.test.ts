/** The daily tasks of people who support customers, each in as many interactions as the list in docs/CONSOLE.md allows. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, type Person } from "../browser/Browser.ts"

const minutes = 5 * 60_000

let customers = 0

/** A license of a new customer with floating seats, a metered feature, and an active device. */
const prepare = Effect.gen(function* () {
  const { client } = yield* TestServer
  const name = `Ada ${++customers}`
  const customer_email = `ada-${customers}@example.com`
  const license = yield* issue({ max_floating_users: 2 }, { customer_email, customer_name: name })
  const params = { id: license.product_id }
  yield* client.policies.create({
    params,
    payload: { name: "Enterprise", code: "enterprise", license_type: "subscription", max_floating_users: 9 }
  })
  const feature = yield* client.features.create({ params, payload: { name: "Renders", code: "renders" } })
  yield* client.licenses.assignFeature({
    params: { id: license.id },
    payload: { feature_id: feature.id, max_consumptions: 10 }
  })
  yield* license.runtime.activate({ payload: { fingerprint: `machine-${customers}`, hostname: `laptop-${customers}` } })
  const now = client.licenses.get({ params: { id: license.id } })
  return {
    license,
    name,
    customer_email,
    laptop: `laptop-${customers}`,
    machine: `machine-${customers}`,
    now
  }
})

type Prepared = Effect.Success<typeof prepare>

/** What the dialog says before the change is confirmed. */
const willChange = (person: Person, what: string) =>
  person.page.getByRole("status", { name: "What changes" }).filter({ hasText: what }).waitFor()

type Body = (person: Person, prepared: Prepared) => Promise<void>
type Task = (name: string, interactionsMax: number, body: Body, check?: (prepared: Prepared) => Check) => void
type Check = Effect.Effect<void, unknown, TestServer>

const searchTasks = (task: Task) => {
  task(
    "a license is found by e-mail and the last four characters of its key",
    2,
    async (person, { customer_email, license, name }) => {
      await person.search(`${customer_email} ${license.license_key.slice(-4).toLowerCase()}`)
      await person.seesHeading(name)
      assert.include(person.page.url(), license.id)
    }
  )

  task("a license is found by the last four characters of its key", 2, async (person, { license, name }) => {
    await person.search(license.license_key.slice(-4))
    await person.seesHeading(name)
    assert.include(person.page.url(), license.id)
  })

  task(
    "results appear as one types, and the keyboard opens one",
    4,
    async (person, { customer_email, license, name }) => {
      await person.press("Control+K")
      await person.page.keyboard.type(customer_email)
      await person.page.getByRole("option", { name }).first().waitFor()
      await person.press("ArrowDown")
      await person.press("Enter")
      await person.seesHeading(name)
      assert.include(person.page.url(), license.id)
      assert.notInclude(person.page.url(), customer_email)
      await person.press("Control+K")
      await person.page.getByRole("group", { name: "Recent" }).getByRole("option", { name }).waitFor()
    }
  )

  task("a place is opened by a command", 4, async (person) => {
    await person.press("/")
    await person.page.keyboard.type("webh")
    await person.press("ArrowDown")
    await person.press("Enter")
    await person.seesHeading("Webhooks")
  })
}

const overviewTasks = (task: Task) => {
  task(
    "credits are added to a quota near its end, from the overview on",
    4,
    async (person, { license, machine, name }) => {
      const usage = { feature_code: "renders", amount: 9, event_id: "one" }
      await Effect.runPromise(license.runtime.consume({ payload: { fingerprint: machine, ...usage } }))
      await person.page.reload()
      await person.click(`1 of 10 Renders left: ${name}`, "link")
      await person.seesHeading(name)
      await person.click("Add credits to Renders")
      await person.fill("Credits to add", "90")
      await person.press("Enter")
      await person.isDone()
      await person.sees("of 100 · 91 left")
    }
  )
}

const changeTasks = (onPage: Task) => {
  onPage(
    "a license is suspended",
    3,
    async (person) => {
      await person.pick("More", "Suspend")
      await willChange(person, "StatusActive → Suspended")
      assert.deepStrictEqual(await person.violations(), [])
      await person.click("Suspend")
      await person.isDone()
      await person.sees(/^Suspended$/)
    },
    ({ now }) => Effect.map(now, ({ status }) => assert.strictEqual(status, "suspended"))
  )

  onPage(
    "seats are added",
    3,
    async (person) => {
      await person.click("Change limits")
      await person.fill("Floating seats", "5")
      await willChange(person, "Floating seats2 → 5")
      await person.press("Enter")
      await person.isDone()
    },
    ({ now }) => Effect.map(now, ({ limits }) => assert.strictEqual(limits.max_floating_users, 5))
  )

  onPage(
    "the tier is changed",
    3,
    async (person) => {
      await person.click("Change policy")
      await person.choose("New policy", "Enterprise")
      await willChange(person, "Floating seats2 → 9")
      await person.click("Change policy")
      await person.isDone()
    },
    ({ now }) => Effect.map(now, ({ limits }) => assert.strictEqual(limits.max_floating_users, 9))
  )

  onPage(
    "a key is reissued and shown once",
    3,
    async (person, { license, name }) => {
      await person.click("New key")
      await person.click("Replace key")
      const key = await person.page.locator(".secret").textContent()
      assert.match(key ?? "", /^LK-/)
      assert.notStrictEqual(key, license.license_key)
      await person.page.context().grantPermissions(["clipboard-read", "clipboard-write"])
      await person.click("Copy")
      await person.sees("Copied")
      assert.strictEqual(await person.page.evaluate("navigator.clipboard.readText()"), key)
      // The task is done; from now on the key is nowhere.
      await person.page.reload()
      await person.seesHeading(name)
      await person.isLoaded()
      assert.notInclude(await person.page.content(), key ?? "")
    },
    ({ license, now }) =>
      Effect.map(now, ({ license_key_last4 }) =>
        assert.notStrictEqual(license_key_last4, license.license_key.slice(-4))
      )
  )

  onPage("who holds the seats is seen", 0, async (person) => {
    await person.sees("of 2 in use")
    await person.sees("No seats are in use.")
  })

  onPage("credits are added to a quota", 3, async (person) => {
    await person.click("Add credits to Renders")
    await person.fill("Credits to add", "90")
    await person.press("Enter")
    await person.isDone()
    await person.sees("of 100 · 100 left")
  })
}

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  const task: Task = (name, interactionsMax, body, check = () => Effect.void) =>
    it.effect(
      name,
      ({ skip }) =>
        Effect.gen(function* () {
          const prepared = yield* prepare
          yield* atConsole(skip, async (person) => {
            await body(person, prepared)
            assert.isAtMost(person.interactions, interactionsMax)
          })
          yield* check(prepared)
        }),
      minutes
    )

  /** The interactions count from the license's page on. */
  const onPage: Task = (name, interactionsMax, body, check) =>
    task(
      name,
      interactionsMax,
      async (person, prepared) => {
        await person.opens(`/licenses/${prepared.license.id}`, prepared.name)
        await body(person, prepared)
      },
      check
    )

  task("a license is found by its customer's e-mail", 2, async (person, { customer_email, name }) => {
    await person.search(customer_email)
    await person.seesHeading(name)
    await person.sees(customer_email)
  })

  task("a license is found by its key, which stays out of the address", 2, async (person, { license, name }) => {
    await person.search(license.license_key)
    await person.seesHeading(name)
    assert.notInclude(person.page.url(), license.license_key)
  })

  searchTasks(task)
  overviewTasks(task)

  onPage(
    "a device is reset",
    2,
    async (person, { laptop }) => {
      await person.click(`Reset ${laptop}`)
      await willChange(person, "Devices in use1 → 0")
      await person.click("Reset")
      await person.isDone()
    },
    ({ now }) => Effect.map(now, ({ active_device_count }) => assert.strictEqual(active_device_count, 0))
  )

  onPage("a machine that does not work is diagnosed", 2, async (person) => {
    await person.fill("Machine’s fingerprint", "another machine")
    await person.click("Check")
    await person.sees(/activate/i)
  })

  onPage(
    "the last refusal is diagnosed by one interaction, and ended by two",
    1 + 2,
    async (person, { license }) => {
      await Effect.runPromise(Effect.flip(license.runtime.activate({ payload: { fingerprint: "another" } })))
      await person.page.reload()
      await person.sees("All device slots are taken")
      await person.click("Check")
      await person.sees("The application gets:")
      await person.click("Allow one more device")
      await person.click("Allow one more device")
      await person.isDone()
      await person.sees("1 from the policy; +1 → 2")
    },
    ({ now }) => Effect.map(now, ({ limits }) => assert.strictEqual(limits.max_activations, 2))
  )

  onPage(
    "a license is extended by a year of the calendar",
    3,
    async (person) => {
      await person.click("Extend")
      await person.check(/^1 year/)
      await person.click("Extend")
      await person.isDone()
    },
    ({ license, now }) =>
      Effect.map(now, ({ expires_at }) => {
        const [before, after] = [license.expires_at, expires_at!].map((instant) => new Date(instant))
        assert.strictEqual(after!.getUTCFullYear(), before!.getUTCFullYear() + 1)
        assert.strictEqual(after!.getUTCMonth(), before!.getUTCMonth())
      })
  )

  changeTasks(onPage)

  task("the licenses that expire in 30 days are exported as CSV", 4, async (person, { customer_email }) => {
    await person.click("Licenses", "link")
    await person.choose("Expires", "Next 30 days")
    await person.sees(customer_email)
    const download = person.page.waitForEvent("download")
    await person.pick("More", "Export as CSV")
    const stream = await (await download).createReadStream()
    const text = Buffer.concat(await stream.toArray()).toString()
    assert.include(text, `,${customer_email},`)
    assert.isTrue(text.startsWith("id,status,product_id"))
  })
})
