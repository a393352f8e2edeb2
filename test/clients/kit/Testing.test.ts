/** The service in memory: the kit believes it, its payloads have the contract's shape, and a test plays every outcome with it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type KitOptions, LicenseKit, memoryStore } from "../../../src/clients/kit/LicenseKit.ts"
import type { KitRequest } from "../../../src/clients/kit/sending/Platform.ts"
import { type FakeLicenseOptions, FakeService, TestClock } from "../../../src/clients/kit/testing/Testing.ts"
import { type Code, statuses } from "../../../src/contract/api/ErrorCode.ts"
import { RefusalFacts } from "../../../src/contract/api/RefusalFacts.ts"
import {
  DeactivationPayload,
  EntitlementPayload,
  FloatingCheckoutPayload,
  FloatingLeasePayload,
  OfflineEntitlementPayload,
  OfflineEnvelopePayload
} from "../../../src/licensing/model/Payloads.ts"
import { said } from "./Machines.ts"

const start = Date.parse("2026-01-01T00:00:00Z")
const day = 86_400_000
const done = <A>(promise: Promise<A>) => Effect.promise(() => promise)

const payloads = {
  deactivation: DeactivationPayload,
  entitlement: EntitlementPayload,
  floating_checkout: FloatingCheckoutPayload,
  floating_lease: FloatingLeasePayload,
  offline: OfflineEntitlementPayload
}

/** Fails unless a response is as the contract declares it. */
const checkResponse = (status: number, text: string): void => {
  const { data, error } = JSON.parse(text)
  const options = { onExcessProperty: "error" } as const
  if (error !== undefined) {
    const { code, detail: _, message: __, ...facts } = error
    assert.strictEqual(statuses[code as Code], status, code)
    Schema.decodeUnknownSync(RefusalFacts, options)(facts)
  } else if ("ciphertext" in data) Schema.decodeUnknownSync(OfflineEnvelopePayload, options)(data)
  else Schema.decodeUnknownSync(Schema.Union(Object.values(payloads)), options)(data)
}

/** An application with a kit at a service in memory, whose responses are compared with the contract. */
const application = Effect.fnUntraced(function* (license: FakeLicenseOptions = {}, more: Partial<KitOptions> = {}) {
  const clock = new TestClock(start)
  const service = yield* done(FakeService.start({ clock, productCode: "editor-pro" }))
  const { platform, ...options } = service.kitOptions
  const fetch = async (url: string, request: KitRequest) => {
    const response = await platform.fetch(url, request)
    const chunk = await response.body?.getReader().read()
    const text = new TextDecoder().decode(chunk?.value)
    if (service.network === "online") checkResponse(response.status, text)
    const body = { getReader: () => new Response(text).body!.getReader() }
    return { ...response, body }
  }
  const store = memoryStore()
  const machine = (fingerprint: string, kept = store) =>
    done(
      LicenseKit.open({ ...options, platform: { ...platform, fetch }, binding: { fingerprint }, store: kept, ...more })
    )
  const kit = yield* machine("machine")
  return { clock, service, kit, machine, license: service.issue(license) }
})

const expectVerdict = (kit: LicenseKit, wanted: string) => assert.strictEqual(said(kit.verdict), wanted)

describe("The service in memory", () => {
  it.effect("lets a year pass: renewals, grace, expiry", () =>
    Effect.gen(function* () {
      const { clock, kit, license, service } = yield* application({
        expires_at: start + 30 * day,
        grace_period_days: 7
      })
      yield* done(kit.activate(license.key))
      kit.start()
      clock.stepMillis = 3_600_000
      for (let month = 1; month <= 12; month++) {
        yield* done(clock.pass({ days: 29 }, kit))
        expectVerdict(kit, "run LICENSED")
        license.renew(clock.now + 30 * day)
      }
      assert.isAbove(service.asked.length, 340)
      yield* done(clock.pass({ days: 32 }, kit))
      expectVerdict(kit, "warn GRACE_PERIOD")
      yield* done(clock.pass({ days: 6 }, kit))
      expectVerdict(kit, "ask LICENSE_EXPIRED")
      kit.stop()
    })
  )

  it.effect("ends a license, and brings it back", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* application({ max_activations: 1 })
      yield* done(kit.activate(license.key))
      const other = yield* machine("other", memoryStore())
      assert.deepInclude((yield* done(other.activate(license.key))).refusal, { max: 1, used: 1 })
      license.suspend()
      yield* done(kit.validate())
      expectVerdict(kit, "stop LICENSE_SUSPENDED")
      license.reinstate()
      yield* done(kit.validate())
      expectVerdict(kit, "run LICENSED")
      license.reset()
      yield* done(kit.validate())
      expectVerdict(kit, "run LICENSED")
      license.revoke()
      yield* done(kit.validate())
      expectVerdict(kit, "stop LICENSE_REVOKED")
      expectVerdict(yield* machine("machine"), "stop LICENSE_REVOKED")
      assert.strictEqual((yield* done(other.activate("LK-wrong"))).reason, "LICENSE_KEY_INVALID")
    })
  )

  it.effect("counts use, takes it back, and gives the activation back", () =>
    Effect.gen(function* () {
      const { kit, license } = yield* application({ features: [{ code: "export", quota: 3 }, { code: "print" }] })
      yield* done(kit.activate(license.key))
      const use = { feature_code: "export", event_id: "e1", amount: 2 }
      assert.isTrue((yield* done(kit.consume(use))).granted)
      assert.isTrue((yield* done(kit.consume(use))).granted)
      const refused = yield* done(kit.consume({ ...use, event_id: "e2" }))
      assert.deepInclude(refused.refusal, { code: "USAGE_LIMIT_EXCEEDED", quota: 3, consumed: 2, remaining: 1 })
      assert.strictEqual((yield* done(kit.consume({ ...use, amount: 1 }))).reason, "EVENT_ID_CONFLICT")
      assert.isTrue((yield* done(kit.reverse(use))).granted)
      assert.deepInclude(kit.feature("export"), { consumed: 0, remaining: 3 })
      assert.strictEqual(
        (yield* done(kit.consume({ feature_code: "none", event_id: "e" }))).reason,
        "FEATURE_NOT_ENTITLED"
      )
      assert.isTrue((yield* done(kit.deactivate())).granted)
      expectVerdict(kit, "ask NOT_ACTIVATED")
    })
  )

  it.effect("takes a seat away, and lends one", () =>
    Effect.gen(function* () {
      const { clock, kit, license } = yield* application({
        ...{ max_floating_users: 1, borrow_days_max: 10, offline_grace_days: 14 }
      })
      yield* done(kit.checkout(license.key))
      assert.strictEqual((yield* done(kit.issueOffline())).reason, "DEVICE_NOT_ACTIVE")
      kit.start()
      yield* done(clock.pass({ hours: 5 }, kit))
      expectVerdict(kit, "run LICENSED")
      license.loseSeats()
      yield* done(clock.pass({ minutes: 11 }, kit))
      expectVerdict(kit, "ask FLOATING_LIMIT_REACHED")
      license.freeSeats()
      yield* done(clock.pass({ hours: 1 }, kit))
      expectVerdict(kit, "run LICENSED")
      const late = yield* done(kit.checkout({ until: new Date(clock.now + 11 * day) }))
      assert.strictEqual(late.reason, "BORROW_TOO_LONG")
      const { data } = yield* done(kit.checkout({ until: new Date(clock.now + 9 * day) }))
      assert.strictEqual(data?.borrowed_until, data?.lease_expires_at)
      assert.isTrue((yield* done(kit.checkin())).granted)
      kit.stop()
    })
  )

  it.effect("is not reached in every way that a network has", () =>
    Effect.gen(function* () {
      const { kit, license, service } = yield* application({}, { timeoutMillis: 15_000 })
      yield* done(kit.activate(license.key))
      const problems: Array<string> = []
      const networks = [
        "offline",
        "page",
        "forged",
        { status: 503, retryAfterSeconds: 60 },
        { slowMillis: 20_000 }
      ] as const
      for (const network of networks) {
        service.network = network
        const { brokenRule, granted, problem, reason } = yield* done(kit.validate())
        problems.push([granted, reason, problem?.kind, problem?.status, brokenRule].join(" "))
      }
      assert.deepStrictEqual(problems, [
        "false NOT_REACHED refused  ",
        "false NOT_REACHED response 200 signature",
        "false NOT_REACHED response 200 signature",
        "false NOT_REACHED response 503 signature",
        "false NOT_REACHED timeout  "
      ])
      service.network = { slowMillis: 5_000 }
      assert.isTrue((yield* done(kit.validate())).granted)
    })
  )

  it.effect("outlives a journey by the tolerance, and by an offline envelope", () =>
    Effect.gen(function* () {
      const { clock, kit, license, machine, service } = yield* application({ offline_grace_days: 14 })
      yield* done(kit.activate(license.key))
      service.network = "offline"
      kit.start()
      yield* done(clock.pass({ days: 3 }, kit))
      expectVerdict(kit, "warn NOT_REACHED")
      // At first after ten seconds, and at last each hour, as without a test.
      assert.isBelow(service.asked.length, 100)
      yield* done(clock.pass({ days: 2 }, kit))
      expectVerdict(kit, "stop NOT_REACHED")
      service.network = "online"
      assert.isTrue((yield* done(kit.issueOffline())).granted)
      service.network = "offline"
      kit.stop()
      clock.sleep({ days: 13 })
      const again = yield* machine("machine")
      expectVerdict(again, "run OFFLINE")
      expectVerdict(yield* machine("another"), "stop NOT_REACHED")
    })
  )

  it.effect("has the right time when the machine has not", () =>
    Effect.gen(function* () {
      const { clock, kit, license } = yield* application()
      yield* done(kit.activate(license.key))
      clock.machineOffsetMillis = -day
      expectVerdict(kit, "ask CLOCK_WRONG")
      clock.machineOffsetMillis = 3_600_000
      yield* done(kit.validate())
      expectVerdict(kit, "warn CLOCK_WRONG")
      clock.machineOffsetMillis = 0
      yield* done(kit.validate())
      expectVerdict(kit, "run LICENSED")
      assert.throws(() => new TestClock("yesterday"), /instant/)
    })
  )
})
