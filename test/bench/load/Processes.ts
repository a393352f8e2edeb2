/** CPU and memory use of processes, read from /proc; NaN on systems without it. */
import { readdirSync, readFileSync } from "node:fs"

/** USER_HZ: the unit of /proc's times, 100 on every common Linux. */
const ticksPerSecond = 100

interface Stat {
  readonly parent: number
  /** Seconds of CPU of the process itself. */
  readonly own: number
  /** Seconds of CPU of its children that have exited. */
  readonly ended: number
}

const statOf = (pid: number): Stat | undefined => {
  try {
    // The program's name may contain spaces and parentheses: the fields follow its last parenthesis.
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number)
    const seconds = (first: number) => (fields[first]! + fields[first + 1]!) / ticksPerSecond
    return { parent: fields[1]!, own: seconds(11), ended: seconds(13) }
  } catch {
    return undefined
  }
}

/** Seconds of CPU that a process has used. */
export const cpuSeconds = (pid: number): number => statOf(pid)?.own ?? Number.NaN

/** Seconds of CPU of a process with all its children, including exited ones: a PostgreSQL server and its backends. */
export const cpuSecondsOfFamily = (pid: number): number => {
  const parent = statOf(pid)
  if (parent === undefined) return Number.NaN
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  const children = processes.map((name) => statOf(Number(name))).filter((stat) => stat?.parent === pid)
  return children.reduce((sum, child) => sum + child!.own, parent.own + parent.ended)
}

/** Seconds of CPU that all threads of a process have used, to the nanosecond. */
export const cpuSecondsOfThreads = (pid: number): number => {
  try {
    const tasks = `/proc/${pid}/task`
    const used = readdirSync(tasks).map((task) =>
      Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0])
    )
    return used.reduce((sum, nanos) => sum + nanos, 0) / 1e9
  } catch {
    return Number.NaN
  }
}

/** The peak resident set of a process, in megabytes of 10^6 bytes. */
export const peakMegabytes = (pid: number): number => {
  try {
    const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))
    return Math.round((Number(peak?.[1]) * 1024) / 1e6)
  } catch {
    return Number.NaN
  }
}
