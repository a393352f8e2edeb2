/**
 * The standard OTEL_ settings of OpenTelemetry. The official SDK reads most of them itself, but ignores invalid values, so each is
 * checked here. Without an endpoint nothing is exported, and the other settings are ignored.
 */
import { readFileSync } from "node:fs"
import { Effect, Result } from "effect"
import {
  exactly,
  flag,
  fraction,
  integer,
  linesOf,
  optional,
  readEach,
  type Setting,
  setting,
  text
} from "./Setting.ts"

export const signals = ["traces", "metrics", "logs"] as const
export type Signal = (typeof signals)[number]

export type OtlpProtocol = "http/protobuf" | "http/json"

const propagators = ["tracecontext", "baggage", "b3", "b3multi", "jaeger"] as const
export type Propagator = (typeof propagators)[number]

export type SamplerName = (typeof samplers)[number]

/** The settings that the SDK does not read itself. */
export interface TelemetrySettings {
  /** The signals to export, with their protocols. */
  readonly protocols: ReadonlyMap<Signal, OtlpProtocol>
  readonly sampler: SamplerName
  /** The share of sampled traces, for samplers by trace id. */
  readonly samplerRatio: number
  readonly propagators: ReadonlyArray<Propagator>
  readonly logBatches: {
    readonly scheduledDelayMillis?: number
    readonly exportTimeoutMillis?: number
    readonly maxQueueSize?: number
    readonly maxExportBatchSize?: number
  }
  readonly logAttributeLengthMax: number | undefined
  readonly metricIntervalMillis: number
  readonly metricTimeoutMillis: number | undefined
  readonly metricTemporality: "cumulative" | "delta"
}

const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio"
] as const

const int32Max = 2_147_483_647
// The queue holds records in memory.
const queueMax = 1_000_000

const millis = (name: string) =>
  optional(name, `a whole number of milliseconds from 1 to ${int32Max}`, integer(1, int32Max))
const count = (name: string) => optional(name, `a whole number from 1 to ${queueMax}`, integer(1, queueMax))
const limit = (name: string) => optional(name, `a whole number from 1 to ${int32Max}`, integer(1, int32Max))

const endpoint = (name: string) =>
  optional(name, "an http or https address, as http://collector:4318", (value) => {
    const parsed = URL.parse(value)
    return parsed !== null && ["http:", "https:"].includes(parsed.protocol) ? value : undefined
  })

// The packages for grpc include another HTTP/2 client, and every collector accepts HTTP.
const protocol = (name: string) =>
  optional<OtlpProtocol>(
    name,
    "http/protobuf or http/json: this service does not export over grpc; send to the HTTP port of the collector, usually 4318",
    exactly("http/protobuf", "http/json")
  )

/** `key=value` pairs separated by commas, with percent encoding. Values may be secret, so errors show no entry. */
const pairs = (value: string): string | undefined => {
  const entries = value.split(",").map((entry) => entry.trim())
  const isPair = (entry: string) =>
    /^[\w!#$%&'*+.^`|~-]+\s*=/.test(entry) && Result.isSuccess(Result.try(() => decodeURIComponent(entry)))
  return entries.every((entry) => entry === "" || isPair(entry)) ? value : undefined
}

const expectedPairs = "pairs of key=value separated by commas, with percent encoding for other characters"

const propagatorList = (value: string): ReadonlyArray<Propagator> | undefined => {
  const names = [...new Set(value.split(",").map((name) => name.trim()))]
  if (names.length === 1 && names[0] === "none") return []
  return names.every((name) => propagators.includes(name as Propagator)) ? (names as Array<Propagator>) : undefined
}

/** The SDK only warns of a file that it cannot read, and then fails to export. */
const pemFile = (name: string) =>
  optional(name, "the path of a readable PEM file", (path) => {
    const read = Result.try(() => readFileSync(path, "latin1"))
    return Result.isSuccess(read) && read.success.includes("-----BEGIN ") ? path : undefined
  })

/** The settings of one signal, or of all signals without a name. */
const exporter = (signal = "") => {
  const name = (end: string) => `OTEL_EXPORTER_OTLP_${signal}${end}`
  return {
    endpoint: endpoint(name("ENDPOINT")),
    protocol: protocol(name("PROTOCOL")),
    headers: optional(name("HEADERS"), expectedPairs, pairs),
    timeout: millis(name("TIMEOUT")),
    compression: optional(name("COMPRESSION"), "gzip or none", exactly("gzip", "none")),
    certificate: pemFile(name("CERTIFICATE")),
    clientCertificate: pemFile(name("CLIENT_CERTIFICATE")),
    clientKey: pemFile(name("CLIENT_KEY"))
  }
}

const selected = (name: string) => setting<"otlp" | "none">(name, "otlp or none", "otlp", exactly("otlp", "none"))

const shared = {
  isDisabled: setting("OTEL_SDK_DISABLED", "true or false", false, flag),
  sampler: setting<SamplerName>(
    "OTEL_TRACES_SAMPLER",
    `one of ${samplers.join(", ")}`,
    "parentbased_always_on",
    exactly(...samplers)
  ),
  samplerRatio: setting("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", 1, fraction),
  propagators: setting<ReadonlyArray<Propagator>>(
    "OTEL_PROPAGATORS",
    `none, or some of ${propagators.join(", ")} separated by commas`,
    ["tracecontext", "baggage"],
    propagatorList
  ),
  logDelay: millis("OTEL_BLRP_SCHEDULE_DELAY"),
  logTimeout: millis("OTEL_BLRP_EXPORT_TIMEOUT"),
  logQueue: count("OTEL_BLRP_MAX_QUEUE_SIZE"),
  logBatch: count("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE"),
  logLength: limit("OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
  metricInterval: setting(
    "OTEL_METRIC_EXPORT_INTERVAL",
    `a whole number of milliseconds from 1 to ${int32Max}`,
    60_000,
    integer(1, int32Max)
  ),
  metricTimeout: millis("OTEL_METRIC_EXPORT_TIMEOUT"),
  temporality: setting<"cumulative" | "delta" | "lowmemory">(
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
    "cumulative, delta or lowmemory",
    "cumulative",
    exactly("cumulative", "delta", "lowmemory")
  ),
  spanQueue: count("OTEL_BSP_MAX_QUEUE_SIZE"),
  spanBatch: count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
}

/** Only the SDK uses these. */
const checked = [
  optional("OTEL_SERVICE_NAME", "a text", text),
  optional("OTEL_RESOURCE_ATTRIBUTES", expectedPairs, pairs),
  optional("OTEL_LOG_LEVEL", "one of NONE, ERROR, WARN, INFO, DEBUG, VERBOSE, ALL", (value) =>
    /^(none|error|warn|info|debug|verbose|all)$/i.test(value) ? value : undefined
  ),
  millis("OTEL_BSP_SCHEDULE_DELAY"),
  millis("OTEL_BSP_EXPORT_TIMEOUT"),
  limit("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
  limit("OTEL_ATTRIBUTE_COUNT_LIMIT"),
  limit("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
  limit("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"),
  limit("OTEL_SPAN_EVENT_COUNT_LIMIT"),
  limit("OTEL_SPAN_LINK_COUNT_LIMIT")
]

const exporters = { traces: exporter("TRACES_"), metrics: exporter("METRICS_"), logs: exporter("LOGS_") }
const selections = {
  traces: selected("OTEL_TRACES_EXPORTER"),
  metrics: selected("OTEL_METRICS_EXPORTER"),
  logs: selected("OTEL_LOGS_EXPORTER")
}

type ValuesOf<T> = { readonly [K in keyof T]: T[K] extends Setting<infer A> ? A : never }

const readValues = <const T extends { readonly [name: string]: Setting<unknown> }>(settings: T) =>
  Effect.map(readEach(settings), ({ values, lines }) => ({ values: values as Partial<ValuesOf<T>>, lines }))

/** The settings, undefined if nothing is exported, and a line for each invalid one. */
export const readTelemetrySettings = Effect.gen(function* () {
  const { lines: sharedLines, values } = yield* readValues(shared)
  const general = yield* readValues(exporter())
  const selection = yield* readValues(selections)
  const bySignal = yield* Effect.forEach(signals, (signal) => readValues(exporters[signal]))
  const others = yield* readValues(Object.fromEntries(checked.map((each) => [each.name, each])))
  const isSet = ({ lines, values: { endpoint } }: (typeof bySignal)[number] | typeof general) =>
    endpoint !== undefined || lines.some((line) => /ENDPOINT must/.test(line))
  const exported = signals.filter(
    (signal, index) => selection.values[signal] !== "none" && (isSet(general) || isSet(bySignal[index]!))
  )
  if (values.isDisabled === true || exported.length === 0) return { settings: undefined, lines: [] }
  const protocols = new Map(
    exported.map((signal) => {
      const own = bySignal[signals.indexOf(signal)]!.values.protocol
      return [signal, own ?? general.values.protocol ?? "http/protobuf"] as const
    })
  )
  const all = values as ValuesOf<typeof shared>
  const lines = [general, ...bySignal, selection, { lines: sharedLines }, others].flatMap((each) => each.lines)
  return { settings: settingsOf(all, protocols), lines: [...lines, ...(lines.length === 0 ? contradictions(all) : [])] }
})

const settingsOf = (
  values: ValuesOf<typeof shared>,
  protocols: ReadonlyMap<Signal, OtlpProtocol>
): TelemetrySettings => ({
  protocols,
  sampler: values.sampler,
  samplerRatio: values.samplerRatio,
  propagators: values.propagators,
  logBatches: {
    ...(values.logDelay !== undefined && { scheduledDelayMillis: values.logDelay }),
    ...(values.logTimeout !== undefined && { exportTimeoutMillis: values.logTimeout }),
    ...(values.logQueue !== undefined && { maxQueueSize: values.logQueue }),
    ...(values.logBatch !== undefined && { maxExportBatchSize: values.logBatch })
  },
  logAttributeLengthMax: values.logLength,
  metricIntervalMillis: values.metricInterval,
  metricTimeoutMillis: values.metricTimeout,
  metricTemporality: values.temporality === "cumulative" ? "cumulative" : "delta"
})

const queueDefault = 2_048
const batchDefault = 512

/** Errors of combinations of values, which the SDK would change or fail with. */
const contradictions = (values: ValuesOf<typeof shared>): ReadonlyArray<string> => {
  const { logBatch, logQueue, metricInterval, metricTimeout, spanBatch, spanQueue } = values
  const isLarger = (batch = batchDefault, queue = queueDefault) => batch > queue
  return linesOf([
    [
      isLarger(spanBatch, spanQueue),
      "OTEL_BSP_MAX_EXPORT_BATCH_SIZE (512) must be at most OTEL_BSP_MAX_QUEUE_SIZE (2048)."
    ],
    [
      isLarger(logBatch, logQueue),
      "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE (512) must be at most OTEL_BLRP_MAX_QUEUE_SIZE (2048)."
    ],
    [
      metricTimeout !== undefined && metricTimeout > metricInterval,
      "OTEL_METRIC_EXPORT_TIMEOUT must be at most OTEL_METRIC_EXPORT_INTERVAL (60000)."
    ]
  ])
}
