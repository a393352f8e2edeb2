import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { Settings, unknownSettings } from "../../../src/platform/config/Config.ts"

const within = (environment: Record<string, string>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord(environment))

const linesOf = (...names: ReadonlyArray<string>) =>
  Effect.provideService(
    unknownSettings,
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromEnvRecord(Object.fromEntries(names.map((name) => [name, "secret"])))
  )

describe("a variable that is not a setting", () => {
  const similar = {
    LICENSING_DATABSE_URL: "LICENSING_DATABASE_URL",
    LICENSING_PROT: "LICENSING_PORT",
    LICENSING_TRUSTED_PROXY: "LICENSING_TRUSTED_PROXIES",
    LICENSING_LOGLEVEL: "LICENSING_LOG_LEVEL",
    LICENSING_MASTERKEY: "LICENSING_MASTER_KEY",
    LICENSING_RATE_RUNTIME_1: "LICENSING_RATE_RUNTIME",
    LICENSING_SWEEP_SECONDS_: "LICENSING_SWEEP_SECONDS"
  }
  for (const [name, nearest] of Object.entries(similar)) {
    it.effect(`is named with the nearest setting: ${name}`, () =>
      Effect.map(linesOf(name), (lines) =>
        assert.deepStrictEqual(lines, [`${name} is not a setting and is ignored: did you mean ${nearest}?`])
      )
    )
  }

  it.effect("is named alone if no setting is similar", () =>
    Effect.map(linesOf("LICENSING_COFFEE", "LICENSING_X"), (lines) =>
      assert.deepStrictEqual(lines.toSorted(), [
        "LICENSING_COFFEE is not a setting and is ignored: docs/SETTINGS.md lists all settings.",
        "LICENSING_X is not a setting and is ignored: docs/SETTINGS.md lists all settings."
      ])
    )
  )

  it.effect("is not one of another program, a setting, or an empty one", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* linesOf("OTEL_EXPORTER_OTLP_ENDPOINT", "LICENSE_PORT", "LICENSING", "LICENSING_PORT", "PORT"),
        []
      )
      assert.deepStrictEqual(yield* unknownSettings.pipe(within({ LICENSING_PROT: "" })), [])
    })
  )

  it.effect("is named where a start is refused, because it may be the missing one", () =>
    Effect.gen(function* () {
      const environment = { LICENSING_DATABASE_URL: "postgres://db/x", LICENSING_MASTERKEY: "secret" }
      const { lines } = yield* Effect.flip(Settings.pipe(Effect.provide(Settings.layer), within(environment)))
      assert.match(lines[0]!, /^LICENSING_MASTER_KEY must be set together with LICENSING_DATABASE_URL/)
      assert.deepStrictEqual(lines.slice(1), [
        "LICENSING_MASTERKEY is not a setting and is ignored: did you mean LICENSING_MASTER_KEY?"
      ])
    })
  )
})
