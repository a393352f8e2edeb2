/**
 * All metrics of the service. Names follow Prometheus: base units, `_total` for counters. Labels have a small fixed set of values
 * and never an id, so that a scrape of a large service is as small as one of a new service.
 *
 * A metric is declared here; its users create it once for each set of labels. An update costs one map lookup.
 */
import { Metric } from "effect"

type Labels = { readonly [label: string]: string }

const counter = (name: string, description: string) => (attributes?: Labels) =>
  Metric.counter(name, { description, incremental: true, attributes })

const gauge = (name: string, description: string) => (attributes?: Labels) =>
  Metric.gauge(name, { description, attributes })

const histogram = (name: string, description: string, boundaries: ReadonlyArray<number>) => (attributes?: Labels) =>
  Metric.histogram(name, { description, boundaries, attributes })

// From the time of a cached read to the default timeout of a request.
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const commitSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const groupSizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

/** Labels method, route (the template) and status. */
export const httpRequests = counter("licensing_http_requests_total", "Requests answered, by route template and status.")
/** Labels method and route. */
export const httpSeconds = histogram(
  "licensing_http_request_duration_seconds",
  "Time from a request's arrival to its response.",
  requestSeconds
)
/** Label code. */
export const refusals = counter("licensing_refusals_total", "Requests refused, by error code.")

/** Entries dropped from a full buffer, which fills faster than it is written, or while the database is unreachable. */
export const refusalsDropped = counter(
  "licensing_activity_refusals_dropped_total",
  "Refused runtime calls missing from the activities feed."
)()
export const validationsUncounted = counter(
  "licensing_validations_uncounted_total",
  "Validations missing from the counts by license and hour."
)()

export const licenseActors = gauge("licensing_license_actors", "License actors in memory.")()
export const licenseCommandsWaiting = gauge(
  "licensing_license_commands_waiting",
  "Commands in the mailboxes of all license actors."
)()
export const journalGroup = histogram(
  "licensing_journal_group_size",
  "Licenses written by one group commit.",
  groupSizes
)()
export const journalSeconds = histogram(
  "licensing_journal_commit_duration_seconds",
  "Time from a group's first statement to its commit.",
  commitSeconds
)()

/** Label outcome: answered by the owner, returned by it undecided, late (the owner did not answer), lost (its connection broke). */
export const handedOver = counter(
  "licensing_cluster_handed_over_total",
  "Commands handed over to the node that owns their license."
)
export const takenOver = counter(
  "licensing_cluster_taken_over_total",
  "Commands of other nodes that this node received as the owner of their license."
)
/** Label state: known (of the cluster, without this one), connected (of these). */
export const clusterNodes = gauge("licensing_cluster_peers", "Other nodes of the cluster.")

/** 1 if the metrics from the database are current, 0 if the query failed. */
export const databaseUp = gauge("licensing_database_up", "Whether the database answered the scrape.")()
/** Labels pool and state: in_use, waiting (requests for a connection), max. */
export const databaseConnections = gauge("licensing_database_connections", "Database connections of this node.")

/** Label worker, as for the next ones. */
export const workerPasses = counter("licensing_worker_passes_total", "Successful passes of a worker.")
export const workerFailures = gauge(
  "licensing_worker_failures",
  "Failed passes since the last success; above zero the worker is failing."
)
export const workerUp = gauge(
  "licensing_worker_up",
  "1 while a worker runs; 0 after it crashed or got stuck, until its next successful pass."
)
export const workerDeaths = counter("licensing_worker_deaths_total", "Crashes of a worker; it is restarted after each.")
export const workerSuccessAge = gauge(
  "licensing_worker_last_success_age_seconds",
  "Time since a worker's last successful pass, or since its start."
)
/** Above zero, others hold the event counter while this node's groups commit. */
export const counterWait = gauge(
  "licensing_event_counter_wait_seconds",
  "Average time for which the last commits of this node have waited for the event counter."
)()
/** Label queue: webhook-deliveries, mails, leases, erasures, usage-rollup (past days of the ledger without a rollup), event-numbers. */
export const oldestWaiting = gauge(
  "licensing_oldest_waiting_seconds",
  "Time since the oldest unprocessed item of a queue was due; 0 if none is due."
)

/** Label status. */
export const licenses = gauge("licensing_licenses", "Licenses by status.")
/** Label status. */
export const devices = gauge("licensing_devices", "Devices by status.")
export const leasesLive = gauge("licensing_leases_live", "Live floating leases.")()
export const deliveriesPending = gauge("licensing_webhook_deliveries_pending", "Pending webhook deliveries.")()
/** Label result: delivered, failed, exhausted. */
export const deliveries = gauge("licensing_webhook_deliveries_24h", "Webhook attempts of the last 24 hours by result.")
export const mailsPending = gauge("licensing_mails_pending", "Mails that wait to be sent.")()
/** Label result: sent, failed, given_up. */
export const mails = gauge("licensing_mails_24h", "Attempts to send mails in the last 24 hours by result.")
export const eventSequence = gauge("licensing_event_sequence", "Sequence number of the newest event.")()

/** Label signal: traces, metrics, logs. */
export const telemetryFailures = counter(
  "licensing_telemetry_failures_total",
  "Failed exports of telemetry, by signal."
)

/** Label stat: p50, p99, max. */
export const eventLoopDelay = gauge(
  "licensing_event_loop_delay_seconds",
  "Delay of the event loop since the last scrape."
)
/** Label kind: rss, heap_used, heap_total, external. */
export const memory = gauge("licensing_process_memory_bytes", "Memory of the process.")
