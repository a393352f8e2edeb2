/**
 * Loaded before a program: writes the most CPU time that its main thread has spent between two turns of a timer to a file, from
 * SIGUSR2 on. CPU time, because a busy machine delays a timer that nothing blocks.
 */
import { writeFileSync } from "node:fs"
import { isMainThread } from "node:worker_threads"

const turnMillis = 5
const file = process.env["LONGEST_TASK_FILE"]

const cpuMillis = () => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

if (isMainThread && file !== undefined) {
  process.once("SIGUSR2", () => {
    let longest = 0
    let last = cpuMillis()
    setInterval(() => {
      const now = cpuMillis()
      if (now - last > longest) {
        longest = now - last
        writeFileSync(file, String(longest))
      }
      // Without the file's own time.
      last = cpuMillis()
    }, turnMillis).unref()
  })
}
