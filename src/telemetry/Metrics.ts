/**
 * Every metric of the service, in one list. Names follow Prometheus: base units, `_total` on what only rises. Labels have few
 * values, known beforehand; no label ever holds an id, so that a scrape stays as small on a large service as on a new one.
 *
 * A metric is declared here and made once for each set of labels by who counts; updating one costs a map's look-up.
 */
import { Metric } from "effect"

type Labels = { readonly [label: string]: string }

const counter = (name: string, description: string) => (attributes?: Labels) =>
  Metric.counter(name, { description, incremental: true, attributes })

const gauge = (name: string, description: string) => (attributes?: Labels) =>
  Metric.gauge(name, { description, attributes })

const histogram = (name: string, description: string, boundaries: ReadonlyArray<number>) => (attributes?: Labels) =>
  Metric.histogram(name, { description, boundaries, attributes })

// From a cached read to a request that is about to be given up.
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const commitSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const groupSizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

/** Labels method, route (the template) and status. */
export const httpRequests = counter("licensing_http_requests_total", "Requests answered, by route template and status.")
/** Labels method and route. */
export const httpSeconds = histogram(
  "licensing_http_request_duration_seconds",
  "From a request's arrival to its answer.",
  requestSeconds
)
/** Label code. */
export const refusals = counter("licensing_refusals_total", "Requests refused, by error code.")

/** What was gathered in memory faster than it could be written, or while the database was out of reach for long. */
export const refusalsDropped = counter(
  "licensing_activity_refusals_dropped_total",
  "Refused runtime calls that are missing in the activities feed."
)()
export const validationsUncounted = counter(
  "licensing_validations_uncounted_total",
  "Validations that are missing in the counts by license and hour."
)()

export const licenseActors = gauge("licensing_license_actors", "Licenses held in memory by their actors.")()
export const licenseCommandsWaiting = gauge(
  "licensing_license_commands_waiting",
  "Commands in the mailboxes of all license actors."
)()
export const journalGroup = histogram(
  "licensing_journal_group_size",
  "Licenses that one group commit writes.",
  groupSizes
)()
export const journalSeconds = histogram(
  "licensing_journal_commit_duration_seconds",
  "From a group's first statement to its commit.",
  commitSeconds
)()

/** 1 where the numbers that the database knows are of this scrape, 0 where it could not be asked. */
export const databaseUp = gauge("licensing_database_up", "Whether the database answered the scrape.")()
/** Labels pool and state: in_use, waiting (who wants a connection and has none), max. */
export const databaseConnections = gauge("licensing_database_connections", "Database connections of this node.")

/** Label worker, as on the ones that follow. */
export const workerPasses = counter("licensing_worker_passes_total", "Passes of a worker that succeeded.")
export const workerFailures = gauge(
  "licensing_worker_failures",
  "Passes that failed since the last one that succeeded; above zero the worker is in trouble."
)
export const workerUp = gauge(
  "licensing_worker_up",
  "1 while a worker is at work, 0 once it has died or is stuck, to the next pass of it that succeeds."
)
export const workerDeaths = counter(
  "licensing_worker_deaths_total",
  "How often a worker has died and was raised again."
)
export const workerSuccessAge = gauge(
  "licensing_worker_last_success_age_seconds",
  "Time since a worker's last pass that succeeded, or since it began."
)
/** Label queue: webhook-deliveries, leases, usage-rollup (days of the ledger that are over and not summed up). */
export const oldestWaiting = gauge(
  "licensing_oldest_waiting_seconds",
  "How long the oldest item that a worker should have dealt with has been due; 0 where none is."
)

/** Label status. */
export const licenses = gauge("licensing_licenses", "Licenses by status.")
/** Label status. */
export const devices = gauge("licensing_devices", "Devices by status.")
export const leasesLive = gauge("licensing_leases_live", "Floating leases that are live.")()
export const deliveriesPending = gauge("licensing_webhook_deliveries_pending", "Webhook deliveries still owed.")()
/** Label result: delivered, failed, exhausted. */
export const deliveries = gauge("licensing_webhook_deliveries_24h", "Webhook attempts of the last 24 hours by result.")
export const eventSequence = gauge("licensing_event_sequence", "Sequence number of the newest event.")()

/** Label stat: p50, p99, max. */
export const eventLoopDelay = gauge(
  "licensing_event_loop_delay_seconds",
  "How late the event loop ran what was due, since the last scrape."
)
/** Label kind: rss, heap_used, heap_total, external. */
export const memory = gauge("licensing_process_memory_bytes", "Memory of the process.")
