/** The disk of PostgreSQL's log is full: a small file system in memory, which only root can mount. */
import { rmSync, statfsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Scope } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import { run } from "../../../src/platform/postgres/embedded/ServerProcess.ts"
import { type Fault, nothingWrong } from "./Fault.ts"

const megabytes = 256
/** Changes that the log takes before it is full. */
const writableMillis = 500

const shell = (script: string) =>
  Effect.flatMap(run("/bin/sh", ["-ec", script]), ({ code, output }) =>
    code === 0 ? Effect.void : Effect.die(new Error(output))
  )

/** Moves the log of a stopped server to the small file system, or back from it. */
const toSmall = (log: string) =>
  shell(`mv ${log} ${log}-kept && mkdir ${log} && mount -t tmpfs -o size=${megabytes}m tmpfs ${log}
    cp -a ${log}-kept/. ${log} && chown --reference=${log}-kept ${log} && chmod 700 ${log} && rm -r ${log}-kept`)
const fromSmall = (log: string) =>
  shell(`cp -a ${log} ${log}-kept && umount ${log} && rmdir ${log} && mv ${log}-kept ${log}`)

const fill = (path: string) =>
  Effect.sync(() => {
    const { bavail, bsize } = statfsSync(join(path, ".."))
    writeFileSync(path, Buffer.alloc(bavail * bsize))
  })

const fullDisk: Fault = {
  name: "the disk of PostgreSQL's log is full",
  lasts: [500, 3_000],
  unavailable: () => (process.getuid?.() === 0 ? undefined : "only root can mount a small file system"),
  begin: Effect.fnUntraced(function* ({ installation: { postgres, scope } }) {
    const log = join(postgres.cluster, "pg_wal")
    const ballast = join(log, "ballast")
    yield* postgres.signal("SIGINT", "server")
    yield* postgres.ended
    // An interrupted run leaves no mount behind.
    yield* Scope.addFinalizer(scope, Effect.ignore(shell(`! mountpoint -q ${log} || umount -l ${log}`)))
    yield* toSmall(log)
    yield* postgres.start
    yield* pauseFor(writableMillis)
    yield* fill(ballast)
    return Effect.gen(function* () {
      yield* Effect.sync(() => rmSync(ballast))
      yield* postgres.start
      yield* postgres.signal("SIGINT", "server")
      yield* postgres.ended
      yield* fromSmall(log)
      yield* postgres.start
      return nothingWrong
    })
  })
}

export const diskFaults: ReadonlyArray<Fault> = [fullDisk]
