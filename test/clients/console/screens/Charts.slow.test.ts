/** The charts of the overview: what was not counted, and what is more than a list counts. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { atConsole, consoleLayer, type Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

const chart = (person: Person, name: string) => person.page.getByRole("figure", { name: new RegExp(name) })

interface Bucket {
  readonly bucket_start: string
}
interface Report {
  readonly data: { readonly buckets: ReadonlyArray<Bucket>; readonly counted_from?: string }
  readonly meta: object
}
interface Counted {
  readonly licenses_active: number
  readonly licenses_expiring: number
  readonly seats_peak: number
}

/** Replaces the figures that are counted once a minute; undefined where nothing was counted. */
const shows = (person: Person, change: (data: Report["data"]) => object) =>
  person.page.route("**/reports/overview?*", async (route) => {
    const response = await route.fetch()
    const { data, meta } = (await response.json()) as Report
    await route.fulfill({ response, json: { data: change(data), meta } })
  })

const recounted = (buckets: ReadonlyArray<Bucket>, counted: (bucket: Bucket, index: number) => Counted | undefined) =>
  buckets.map((bucket, index) => {
    const {
      licenses_active: _,
      licenses_expiring: __,
      seats_peak: ___,
      ...others
    } = bucket as Bucket & Partial<Counted>
    return { ...others, ...counted(bucket, index) }
  })

layer(consoleLayer, { timeout: minutes })("The console's overview", (it) => {
  it.effect(
    "says since when active licenses are counted, to a vendor with older ones",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* issue()
        yield* issue()
        yield* atConsole(skip, async (person) => {
          await person.isLoaded()
          let from: string | undefined
          await shows(person, ({ counted_from: _, ...data }) => {
            const since = from
            from ??= data.buckets.at(-1)!.bucket_start
            return {
              ...data,
              ...(since !== undefined && { counted_from: since }),
              buckets: recounted(data.buckets, ({ bucket_start }) =>
                since === undefined || bucket_start < since
                  ? undefined
                  : { licenses_active: 41, licenses_expiring: 2, seats_peak: 0 }
              )
            }
          })
          await person.page.reload()
          await chart(person, "Active licenses").getByText("not counted yet", { exact: true }).waitFor()
          await chart(person, "Floating seats").getByText("Not counted yet in this period.").waitFor()
          await person.page.reload()
          await chart(person, "Active licenses").getByText("41 active, 2 of them expire in 30 days").waitFor()
          await person.sees(
            /Active licenses and seats are counted since .*\. Their charts have a gap where they were not counted\./
          )
        })
      }),
    minutes
  )

  it.effect(
    "shows the same number of active licenses in tile and chart, beyond the largest total, and a gap where none was counted",
    ({ skip }) =>
      withPerson(skip, async (person) => {
        await person.page.route(/\/licenses\?.*status=active/, async (route) => {
          const response = await route.fetch()
          const page = (await response.json()) as { readonly page_info: object }
          const page_info = { ...page.page_info, total: 10_000, total_is_capped: true }
          await route.fulfill({ response, json: { ...page, page_info } })
        })
        await shows(person, (data) => ({
          ...data,
          buckets: recounted(data.buckets, (_, day) => {
            const week = Math.floor(day / 7)
            const isCounted = week !== 4 && week !== 5
            return isCounted
              ? { licenses_active: 18_181 + 100 * week, licenses_expiring: 2, seats_peak: week }
              : undefined
          })
        }))
        await person.opens("/", "Overview")
        await chart(person, "Active licenses").getByText("19,381 active, 2 of them expire in 30 days").waitFor()
        const tile = person.page.getByRole("link", { name: /^Active ?19,381$/ })
        await tile.waitFor()
        await person.page.getByRole("link", { name: /^Expire this month ?10,000\+$/ }).waitFor()
        const line = chart(person, "Active licenses").locator(".drawing .series-0 path:not(.area)")
        for (const path of [tile.locator(".spark-line"), line])
          assert.lengthOf(((await path.getAttribute("d")) ?? "").match(/M/g) ?? [], 2)
        // A week without seats has a bar on the axis.
        assert.strictEqual(await chart(person, "Floating seats").locator(".drawing rect.series-0").count(), 11)
      }),
    minutes
  )
})
