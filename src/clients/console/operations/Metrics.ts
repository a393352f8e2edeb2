/** The metrics of the node that responds, as far as the operations screen shows them. */

/** A value by the labels of its line. */
export interface Sample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
}

/** Reads the text format of Prometheus. */
export const samplesOf = (text: string): ReadonlyArray<Sample> =>
  text.split("\n").flatMap((line) => {
    const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    return name === undefined ? [] : [{ name, labels: labelsOf(labels), value: Number(value) }]
  })

const labelsOf = (text: string): ReadonlyMap<string, string> =>
  new Map([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name!, value!]))

export interface NodeState {
  /** Requests since the start, by the first digit of their status. */
  readonly requests: ReadonlyMap<string, number>
  readonly memoryBytes: number
  /** The delay of the event loop that one in a hundred turns exceeds. */
  readonly delaySeconds: number
  readonly databaseUp: boolean
  readonly connections: { readonly inUse: number; readonly max: number; readonly waiting: number }
  /** Absent without a cluster. */
  readonly peers: number | undefined
  /** Seconds since the oldest unprocessed item was due, by queue. */
  readonly queues: ReadonlyArray<readonly [queue: string, seconds: number]>
}

export const stateOf = (samples: ReadonlyArray<Sample>): NodeState => {
  const all = (name: string, label?: string, value?: string) =>
    samples.filter((each) => each.name === name && (label === undefined || each.labels.get(label) === value))
  const sum = (...given: Parameters<typeof all>) => all(...given).reduce((total, { value }) => total + value, 0)
  const requests = new Map<string, number>()
  for (const { labels, value } of all("licensing_http_requests_total")) {
    const digit = labels.get("status")?.[0] ?? ""
    requests.set(digit, (requests.get(digit) ?? 0) + value)
  }
  const connections = (state: string) => sum("licensing_database_connections", "state", state)
  return {
    requests,
    memoryBytes: sum("licensing_process_memory_bytes", "kind", "rss"),
    delaySeconds: sum("licensing_event_loop_delay_seconds", "stat", "p99"),
    databaseUp: sum("licensing_database_up") === 1,
    connections: { inUse: connections("in_use"), max: connections("max"), waiting: connections("waiting") },
    peers: all("licensing_cluster_peers")[0]?.value,
    queues: all("licensing_oldest_waiting_seconds").map(({ labels, value }) => [labels.get("queue") ?? "", value])
  }
}

export interface Rates {
  readonly all: number
  readonly refused: number
  readonly failed: number
}

/** Requests per second between two readings; undefined if the second is of another node, or of one that has restarted. */
export const ratesOf = (before: NodeState, after: NodeState, seconds: number): Rates | undefined => {
  const of = (digit: string) => (after.requests.get(digit) ?? 0) - (before.requests.get(digit) ?? 0)
  const digits = [...new Set([...before.requests.keys(), ...after.requests.keys()])]
  if (seconds <= 0 || digits.some((digit) => of(digit) < 0)) return undefined
  const all = digits.reduce((sum, digit) => sum + of(digit), 0)
  return { all: all / seconds, refused: of("4") / seconds, failed: of("5") / seconds }
}
