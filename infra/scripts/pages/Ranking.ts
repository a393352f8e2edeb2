/**
 * How the site's search orders what it finds: guides before reference, and pages about a topic first, whichever of its words the reader
 * uses. What must stay true: nothing of Node and no package, because the search runs in the reader's browser.
 */

interface Query {
  readonly combineWith: "OR"
  readonly queries: ReadonlyArray<string | (Query & { readonly boostTerm?: () => number })>
}

/** The part of MiniSearch that is used. */
export interface SearchIndex<Found> {
  search(query: Query, options: { readonly boostDocument: (id: string) => number }): ReadonlyArray<Found>
}

interface Topic {
  /** Words of readers for one thing, in lower case and without punctuation. */
  readonly words: ReadonlyArray<string>
  /** Where it is explained: beginnings of addresses below the site's. */
  readonly pages: ReadonlyArray<string>
}

const topic = (words: string, ...pages: ReadonlyArray<string>): Topic => ({ words: words.split(", "), pages })

const applications = "guides/applications"

const topics: ReadonlyArray<Topic> = [
  topic("electron", `${applications}/electron.html`),
  topic("tauri", `${applications}/tauri.html`),
  topic("cli, command line, ci machine, exit code", `${applications}/cli.html`),
  topic("saas, web application, web app, multi tenant, tenant", `${applications}/web-application.html`),
  topic("swift, ios, macos, iphone", `${applications}/swift.html`),
  topic("cors, web view, webview, origin", `${applications}/tauri.html`, "guides/kit.html", "api.html#browsers"),
  topic("air gap, air gapped, airgap, offline, no network, no internet, without internet", "guides/kit.html#offline"),
  topic("floating, concurrent, seat, seats, network license, lease, checkout", "guides/floating-seats.html"),
  topic("borrow, borrowing, borrowed, travel", "guides/floating-seats.html", "guides/kit.html#borrowed-seats"),
  topic("node locked, nodelocked, machine id, hardware id, hwid, fingerprint", "guides/kit.html#machine-id"),
  topic("device, devices, machine, computer, activation limit, lost laptop", "guides/kit.html"),
  topic("grace, grace period, overdue", "guides/kit.html#what-to-do", "guides/testing.html"),
  topic("quota, quotas, credits, credit, metered, metering, usage, consumption, overage, top up", "guides/quotas.html"),
  topic("trial, evaluation, demo", "guides/scenarios.html#node-locked-with-a-trial"),
  topic("subscription, subscriptions, recurring, stripe, payment", "guides/stripe.html", "guides/scenarios.html"),
  topic("renew, renewal, renewals, extend", "guides/stripe.html", "guides/scenarios.html#subscription"),
  topic("perpetual, maintenance, updates included", "guides/scenarios.html#perpetual-with-maintenance"),
  topic("key lost, lost key, lost license key, forgot key, new key", "guides/customer-page.html"),
  topic("webhook, webhooks, webhook signature, verify webhook, hmac", "webhooks.html"),
  topic("verify, verification, signature, ed25519, public key", "verifying-responses.html"),
  topic("python, pip", "clients/python.html"),
  topic("go, golang", "clients/go.html"),
  topic("java, jvm, kotlin, maven", "clients/java.html"),
  topic("c, c++, cpp", "clients/cpp.html"),
  topic("c#, csharp, net, dotnet, net framework, mono, wpf, winforms, unity", "clients/csharp.html"),
  topic("rust, client library, library, sdk, another language", "clients/"),
  topic("container, containers, pod", "guides/scenarios.html#containers"),
  topic("docker, kubernetes, helm, compose, systemd", "deployment.html"),
  topic("backup, back up, restore, upgrade, update the service, pg dump, migrate", "guides/upgrade.html"),
  topic("test, testing, mock, fake", "guides/testing.html"),
  topic("import, migration, csv, spreadsheet", "guides/import-csv.html"),
  topic("keygen", "guides/from-keygen.html"),
  topic("cryptlex, licensespring", "guides/from-other-services.html"),
  topic("sso, oidc, single sign on, entra, auth0", "guides/console-sign-in.html"),
  topic("gdpr, personal data, privacy, erase, erasure, delete customer", "guides/personal-data.html"),
  topic("mail, email, smtp, reminder", "guides/mail.html"),
  topic("portal, self service, customer portal, customer page", "guides/customer-page.html")
]

/** Sections by the beginnings of their addresses. Others, such as the API's rules, have 1. */
const sections: ReadonlyArray<readonly [beginning: string, weight: number]> = [
  ["guides/", 2],
  ["clients/", 2],
  ["verifying", 1.5],
  ["webhooks.html", 1.5],
  ["start.html", 1.5],
  ["reference/schemas.html", 0.3],
  ["reference/", 0.5],
  ["changelog.html", 0.2]
]

const topicWeight = 4
const nameWeight = 20
/** A page that has the reader's own word comes before one that has another word for it. */
const synonymWeight = 0.3

/** Searches for the text, and for other words of its topics. */
export const ranked = <Found>(index: SearchIndex<Found>, text: string, base: string): ReadonlyArray<Found> => {
  const named = topicsOf(text)
  const synonyms = [...new Set(named.flatMap(({ words }) => words))]
  const query: Query =
    synonyms.length === 0
      ? { combineWith: "OR", queries: [text] }
      : { combineWith: "OR", queries: [text, { combineWith: "OR", queries: synonyms, boostTerm: () => synonymWeight }] }
  return index.search(query, { boostDocument: (id) => weightOf(id.slice(base.length), text, named) })
}

const plain = (text: string): string =>
  ` ${text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}+#]+/gu, " ")
    .trim()} `

const topicsOf = (text: string): ReadonlyArray<Topic> => {
  const asked = plain(text)
  return topics.filter(({ words }) => words.some((word) => asked.includes(` ${word} `)))
}

/** Where names are looked up: codes such as LICENSE_EXPIRED, operations such as createLicense. */
const lookedUp: ReadonlyArray<readonly [name: RegExp, beginning: string]> = [
  [/^[A-Z]+(_[A-Z]+)+$/, "errors.html"],
  [/^[a-z]+([A-Z][a-z]+)+$/, "reference/"]
]

const weightOf = (address: string, text: string, named: ReadonlyArray<Topic>): number => {
  const place = lookedUp.find(([name]) => name.test(text.trim()))?.[1]
  if (place !== undefined) return address.startsWith(place) ? nameWeight : 1
  const weight = sections.find(([beginning]) => address.startsWith(beginning))?.[1] ?? 1
  return named.some(({ pages }) => pages.some((page) => address.startsWith(page))) ? weight * topicWeight : weight
}
