/** Sampling is decided before the fast path, which both sampled and unsampled requests take. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { makeRequestSampling, samplerOf } from "../../../src/platform/telemetry/RequestSampling.ts"
import { RuntimePaths } from "../../support/http/FastPath.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { layerTelemetry, TelemetryReceiver } from "../../support/http/TelemetryReceiver.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const contextOf = (isSampled: boolean, id = traceId) => ({
  traceparent: `00-${id}-00f067aa0ba902b7-0${Number(isSampled)}`
})

const Subject = (variables: Readonly<Record<string, string>>) =>
  RuntimePaths.layerWith().pipe(Layer.provide(layerTelemetry(variables)), Layer.provideMerge(TelemetryReceiver.layer))

layer(Subject({ OTEL_TRACES_SAMPLER: "parentbased_always_off" }), { excludeTestServices: true })(
  "A plain request with telemetry",
  (it) => {
    it.effect("takes the fast path, sampled or not", () =>
      Effect.gen(function* () {
        const { asked, remember } = yield* RuntimePaths
        const { spans, until } = yield* TelemetryReceiver
        const license = yield* issue()
        yield* remember(license)
        const check = (headers: Readonly<Record<string, string>>) =>
          asked("fast", license.license_key, "check", { fingerprint: "nobody" }, headers)
        yield* check({})
        yield* check(contextOf(false))
        yield* check(contextOf(true))
        const request = yield* until(() => spans.find(({ kind }) => kind === "SERVER"))
        assert.deepInclude(request, { name: "POST /api/v1/license/check", traceId })
        assert.deepInclude(request.attributes, {
          "http.response.status_code": 404,
          "licensing.refusal": "DEVICE_NOT_FOUND"
        })
        yield* until(() => spans.find(({ name }) => name === "license check"))
        assert.strictEqual(spans.filter(({ kind }) => kind === "SERVER").length, 1)
      })
    )
  }
)

layer(Subject({ OTEL_TRACES_SAMPLER: "always_on" }), { excludeTestServices: true })("When all is sampled", (it) => {
  it.effect("probes and files of pages are not, whatever their callers want", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { spans, until } = yield* TelemetryReceiver
      for (const path of ["/health", "/healthz", "/readyz", "/metrics", "/readyz?verbose", "/docs/reference.css"]) {
        yield* send({ path, headers: contextOf(true), anonymous: true })
      }
      yield* send({ path: "/api/v1/system/public-keys", anonymous: true })
      yield* until(() => spans.find(({ name }) => name === "GET /api/v1/system/public-keys"))
      assert.deepStrictEqual(
        spans.filter(({ kind }) => kind === "SERVER").map(({ name }) => name),
        ["GET /api/v1/system/public-keys"]
      )
    })
  )

  it.effect("a request without a route has no path, and a request that is cut off ends as such", () =>
    Effect.gen(function* () {
      const { abandon, send } = yield* TestServer
      const { spans, until } = yield* TelemetryReceiver
      yield* send({ path: "/a-secret-path?token=secret", anonymous: true })
      const unknown = yield* until(() =>
        spans.find(({ attributes }) => attributes["http.response.status_code"] === 404)
      )
      assert.strictEqual(unknown.name, "GET")
      assert.notProperty(unknown.attributes, "url.path")
      const { license_key } = yield* issue()
      const head = `POST /api/v1/license/check HTTP/1.1\r\nHost: x\r\nAuthorization: License ${license_key}\r\n`
      yield* abandon(`${head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{`)
      yield* until(() => spans.find(({ attributes }) => attributes["error.type"] === "client_disconnected"))
    })
  )
})

describe("The sampler", () => {
  const sampledOf = (...[name, ratio]: Parameters<typeof samplerOf>) => {
    const sampling = makeRequestSampling(samplerOf(name, ratio), ["tracecontext"])
    return (headers: Readonly<Record<string, string>>) => sampling.ofRequest(headers, "POST") !== undefined
  }

  it("follows its name, its ratio and the caller", () => {
    const cases = [
      ["always_on", true, true, true],
      ["always_off", false, false, false],
      ["traceidratio", false, false, false],
      ["parentbased_always_on", true, true, false],
      ["parentbased_always_off", false, true, false],
      ["parentbased_traceidratio", false, true, false]
    ] as const
    for (const [name, alone, whenSampled, whenNot] of cases) {
      const isSampled = sampledOf(name, 0)
      const decisions = [isSampled({}), isSampled(contextOf(true)), isSampled(contextOf(false))]
      assert.deepStrictEqual(decisions, [alone, whenSampled, whenNot], name)
    }
  })

  it("samples the share of its ratio", () => {
    const isSampled = sampledOf("parentbased_traceidratio", 0.25)
    const sampled = Array.from({ length: 10_000 }, () => isSampled({})).filter((each) => each).length
    assert.isTrue(sampled > 2_200 && sampled < 2_800, String(sampled))
  })

  it("gives the SDK the trace id of its decision, once", () => {
    const { ids, ofRequest } = makeRequestSampling(samplerOf("traceidratio", 0.5), ["tracecontext"])
    const again = samplerOf("traceidratio", 0.5)
    let sampled = 0
    while (sampled < 100) {
      if (ofRequest({}, "POST") === undefined) continue
      sampled++
      const id = ids.generateTraceId()
      assert.strictEqual(again.shouldSample({} as never, id, "POST", 1, {}, []).decision, 2)
      assert.notStrictEqual(ids.generateTraceId(), id)
    }
    ofRequest(contextOf(true), "POST")
    assert.notStrictEqual(ids.generateTraceId(), traceId)
  })
})
