/** What the vendor of the example sells, and to whom. */
import { Effect } from "effect"
import type { PolicyCreate } from "../../../../src/vendor/policies/Policy.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

interface Offer extends Pick<typeof PolicyCreate.Type, "license_type" | "max_floating_users" | "grace_period_days"> {
  readonly name: string
  readonly devices: number
  /** Absent: it never expires. */
  readonly days?: number
  /** How often it is sold, compared with the others. */
  readonly weight: number
}

const catalog: ReadonlyArray<{
  readonly name: string
  readonly features: ReadonlyArray<string>
  readonly versions: ReadonlyArray<string>
  readonly offers: ReadonlyArray<Offer>
}> = [
  {
    name: "Northlight Editor",
    features: ["Collaboration", "PDF export", "Renders"],
    versions: ["4.0.0", "4.1.0", "4.2.0", "5.0.0"],
    offers: [
      { name: "Team", license_type: "subscription", devices: 5, days: 365, max_floating_users: 5, weight: 4 },
      { name: "Professional", license_type: "subscription", devices: 3, days: 90, grace_period_days: 14, weight: 5 },
      { name: "Trial", license_type: "trial", devices: 1, days: 30, weight: 4 }
    ]
  },
  {
    name: "Northlight Render",
    features: ["Frames", "GPU nodes"],
    versions: ["2.3.0", "2.4.0"],
    offers: [
      { name: "Credits", license_type: "consumption", devices: 2, days: 365, weight: 2 },
      { name: "Studio", license_type: "time_limited", devices: 10, days: 180, grace_period_days: 7, weight: 2 }
    ]
  },
  {
    name: "Northlight Server",
    features: ["Single sign-on", "Audit log"],
    versions: ["1.0.0", "1.1.0"],
    offers: [
      { name: "Site", license_type: "perpetual", devices: 4, weight: 2 },
      { name: "Cluster", license_type: "subscription", devices: 20, days: 365, max_floating_users: 50, weight: 1 }
    ]
  }
]

export const codeOf = (name: string) => name.toLowerCase().replaceAll(/\W+/g, "-")

export interface Offered extends Offer {
  readonly product: string
  readonly policy: string
  readonly features: ReadonlyArray<{ readonly id: string; readonly code: string }>
}

/** Enters the catalog; each offer as often as it is sold compared with the others. */
export const makeCatalog = Effect.gen(function* () {
  const { client } = yield* TestServer
  const offered: Array<Offered> = []
  for (const { features, name, offers, versions } of catalog) {
    const product = yield* client.products.create({ payload: { name, code: codeOf(name) } })
    const params = { id: product.id }
    for (const version of versions) yield* client.versions.create({ params, payload: { version } })
    const made = yield* Effect.forEach(features, (feature) =>
      client.features.create({ params, payload: { name: feature, code: codeOf(feature) } })
    )
    for (const offer of offers) {
      const { days: _, devices, name, weight, ...rules } = offer
      const policy = yield* client.policies.create({
        params,
        payload: { name, code: codeOf(name), max_activations: devices, ...rules }
      })
      yield* client.policies.setFeature({ params: { id: policy.id, feature_id: made[0]!.id }, payload: {} })
      const full = { ...offer, product: product.id, policy: policy.id, features: made }
      offered.push(...Array.from({ length: weight }, () => full))
    }
  }
  return offered
})

const people = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Katherine Johnson", "Edsger Dijkstra", "Barbara Liskov"]
const firsts = ["Amber", "Blue", "Cedar", "Delta", "Ember", "Fjord", "Granite", "Harbor", "Indigo", "Juniper", "Lumen"]
const seconds = ["Works", "Studios", "Analytics", "Robotics", "Films", "Instruments", "Labs"]

const companies = firsts.flatMap((first) => seconds.map((second) => `${first} ${second}`))

/** Names of customers: people first, then companies. */
export const customerNames: ReadonlyArray<string> = [...people, ...companies]

export const machines = ["workstation", "laptop", "render-node", "build-agent", "studio-mac", "desk"]
export const systems = ["Windows 11", "macOS 15", "Ubuntu 24.04", "Debian 13"]
