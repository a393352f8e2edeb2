/** Changes that a person begins at the console and that the service refuses, because the person's token is revoked meanwhile. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Request } from "playwright-core"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import type { Person } from "./Browser.ts"

let tokens = 0

/** A token that may do everything, and what revokes it. */
export const adminKey = Effect.fnUntraced(function* () {
  const { client } = yield* TestServer
  const { api_key, token } = yield* client["api-keys"].create({
    payload: { name: `Session ${++tokens}`, scopes: ["admin"] }
  })
  return { token, revoke: client["api-keys"].delete({ params: { id: api_key.id } }) }
})

export const signsIn = async (person: Person, token: string) => {
  await person.fill("API token", token)
  await person.press("Enter")
}

let stories = 0

/** Records that a change is about. */
export const prepareRefused = Effect.fnUntraced(function* () {
  const { client } = yield* TestServer
  const name = `Refused ${++stories}`
  const license = yield* issue({ max_transfers: 3 }, { customer_name: name })
  yield* license.runtime.activate({ payload: { fingerprint: name, hostname: `laptop-${stories}` } })
  yield* client.licenses.create({
    payload: {
      product_id: license.product_id,
      policy_id: (yield* client.licenses.get({ params: { id: license.id } })).policy_id,
      expires_at: license.expires_at,
      customer_name: `${name} second`
    }
  })
  const code = `refused-${stories}`
  const customer = yield* client.customers.create({ payload: { name, code } })
  const product = yield* client.products.create({ payload: { name, code } })
  yield* client.policies.create({
    params: { id: product.id },
    payload: { name, code: "team", license_type: "subscription", duration_days: 30 }
  })
  yield* client.webhooks.create({ payload: { name, url: "https://hooks.example.com/refused" } })
  return { customer, laptop: `laptop-${stories}`, license, name }
})

type Prepared = Effect.Success<ReturnType<typeof prepareRefused>>

export interface RefusedChange {
  readonly what: string
  readonly path: (of: Prepared) => string
  readonly heading: (of: Prepared) => string
  /** All that the person does; the last step sends the change. */
  readonly act: (person: Person, of: Prepared) => Promise<void>
}

const ofLicense = {
  path: ({ license }: Prepared) => `/licenses/${license.id}`,
  heading: ({ name }: Prepared) => name
}

/** An action behind a menu, whose dialog asks for nothing. */
const picks = async (person: Person, menu: string, action: string, send = action) => {
  await person.click(menu)
  await person.click(action)
  await person.click(send)
}

const list = (path: string, heading: string) => ({ path: () => path, heading: () => heading })

const ofRecords: ReadonlyArray<RefusedChange> = [
  {
    what: "creating a customer",
    ...list("/customers", "Customers"),
    act: async (person) => {
      await person.click("New customer")
      await person.fill("Name", "Never")
      await person.fill("Code", "never")
      await person.press("Enter")
    }
  },
  {
    what: "editing a customer",
    path: ({ customer }) => `/customers/${customer.id}`,
    heading: ({ name }) => name,
    act: async (person) => {
      await person.click("Edit")
      await person.fill("Name", "Never")
      await person.press("Enter")
    }
  },
  {
    what: "creating an API key",
    ...list("/api-keys", "API keys"),
    act: async (person) => {
      await person.click("New API key")
      await person.fill("Name", "Never")
      await person.press("Enter")
    }
  },
  {
    what: "a new secret of a webhook",
    ...list("/webhooks", "Webhooks"),
    act: async (person, { name }) => {
      await person.pick(`Actions for ${name}`, `New secret for ${name}`)
      await person.click("Replace secret")
    }
  },
  {
    what: "deleting a webhook",
    ...list("/webhooks", "Webhooks"),
    act: async (person, { name }) => {
      await person.pick(`Actions for ${name}`, `Delete ${name}`)
      await person.click("Delete")
    }
  },
  {
    what: "issuing a batch for a list of customers",
    ...list("/licenses/batch", "Issue a batch"),
    act: async (person, { name }) => {
      await person.choose("Product", name)
      await person.choose("Policy", name)
      await person.fill("Customers", "Ada, ada@example.com\nGrace, grace@example.com")
      await person.click("Issue the batch")
    }
  },
  {
    what: "checking a change of many licenses",
    path: ({ license }) => `/licenses?product_id=${license.product_id}`,
    heading: () => "Licenses",
    act: async (person) => {
      await person.page.getByLabel("Choose all on this page").check()
      await person.click("Suspend")
      await person.click("Check")
    }
  }
]

/** Ten kinds and more. */
export const refusedChanges: ReadonlyArray<RefusedChange> = [
  ...ofRecords,
  { what: "suspending a license", ...ofLicense, act: (person) => picks(person, "More", "Suspend") },
  { what: "revoking a license", ...ofLicense, act: (person) => picks(person, "More", "Revoke") },
  { what: "a new key of a license", ...ofLicense, act: (person) => picks(person, "More", "New key", "Replace key") },
  {
    what: "transferring a license",
    ...ofLicense,
    act: async (person) => {
      await person.click("More")
      await person.click("Transfer")
      await person.fill("New owner’s name", "Never")
      await person.click("Transfer")
    }
  },
  {
    what: "extending a license",
    ...ofLicense,
    act: async (person) => {
      await person.click("Extend")
      await person.click("Extend")
    }
  },
  {
    what: "resetting a device",
    ...ofLicense,
    act: (person, { laptop }) => picks(person, `Actions for ${laptop}`, `Reset ${laptop}`, "Reset")
  },
  {
    what: "undoing a suspension",
    ...ofLicense,
    act: async (person) => {
      await picks(person, "More", "Suspend")
      await person.isDone()
      await person.click("Undo")
    }
  }
]

/** A preview changes nothing. */
const isChange = (request: Request) =>
  !["GET", "HEAD", "OPTIONS"].includes(request.method()) && !request.url().endsWith("/preview")

/** The requests that change something with a token, from now on. */
export const changesWith = (person: Person, token: string) => {
  const sent: Array<string> = []
  const note = (request: Request) => {
    if (isChange(request) && request.headers().authorization === `Bearer ${token}`)
      sent.push(`${request.method()} ${new URL(request.url()).pathname}`)
  }
  person.page.context().on("request", note)
  return sent
}

/** Revokes the person's token while a change is under way, which the service then refuses; of several the given one. */
export const refuseChange = async (person: Person, revoke: Effect.Effect<unknown, unknown>, nth = 1) => {
  let changes = 0
  let revoked: Promise<unknown> | undefined
  const statuses: Array<number> = []
  await person.page.route("**/api/v1/**", async (route) => {
    if (!isChange(route.request()) || ++changes < nth) return await route.fallback()
    revoked ??= Effect.runPromise(revoke)
    await revoked
    const response = await route.fetch()
    statuses.push(response.status())
    await route.fulfill({ response }).catch(() => undefined)
  })
  return async () => {
    await person.seesHeading("Licensing console")
    await person.page.unrouteAll({ behavior: "ignoreErrors" })
    assert.strictEqual(statuses[0], 401)
  }
}
