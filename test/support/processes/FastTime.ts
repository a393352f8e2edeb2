/** Loaded before a program: from one SIGUSR2 to the next its time passes ten times as fast, for tests of long waits. */
const factor = 10

const { now } = Date
const [elapsed, precise] = [performance.now.bind(performance), process.hrtime.bigint]
const later = globalThis.setTimeout

let gained = 0
let fastSince: number | undefined

/** Milliseconds by which the program's time is ahead. */
const ahead = (): number => gained + (fastSince === undefined ? 0 : (elapsed() - fastSince) * (factor - 1))

process.on("SIGUSR2", () => {
  gained = ahead()
  fastSince = fastSince === undefined ? elapsed() : undefined
})

Date.now = () => now() + Math.floor(ahead())
performance.now = () => elapsed() + ahead()
process.hrtime.bigint = () => precise() + BigInt(Math.floor(ahead() * 1e6))
globalThis.setTimeout = Object.assign(
  (run: (...args: Array<unknown>) => void, millis = 0, ...args: Array<unknown>) =>
    later(run, fastSince === undefined ? millis : millis / factor, ...args),
  later
)
