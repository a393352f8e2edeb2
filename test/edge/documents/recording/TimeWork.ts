/** What a node, or an operator's command, does without a request. */
import { Clock, Console, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentActor } from "../../../../src/access/CurrentActor.ts"
import { Nodes } from "../../../../src/insight/ops/Nodes.ts"
import { EventLog } from "../../../../src/ledger/events/EventLog.ts"
import { BulkWorker } from "../../../../src/licensing/bulk/BulkWorker.ts"
import { Journal } from "../../../../src/licensing/engine/Journal.ts"
import { LicenseLookups } from "../../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../../src/licensing/lookups/LicenseStore.ts"
import { ExpirySweep } from "../../../../src/licensing/sweeps/ExpirySweep.ts"
import { FeatureExpirySweep } from "../../../../src/licensing/sweeps/FeatureExpirySweep.ts"
import { HeartbeatSweep } from "../../../../src/licensing/sweeps/HeartbeatSweep.ts"
import { LeaseSweep } from "../../../../src/licensing/sweeps/LeaseSweep.ts"
import { PeriodSweep } from "../../../../src/licensing/sweeps/PeriodSweep.ts"
import type { KeyRing } from "../../../../src/platform/signing/KeyRing.ts"
import { rotateKey } from "../../../../src/tools/cli/Keys.ts"
import { mailOff } from "../../../support/database/MailOff.ts"

export class TimeWork extends Context.Service<
  TimeWork,
  {
    /** Carries out the open bulk jobs. */
    readonly bulkJobs: Effect.Effect<void>
    /** Writes the node's sign of life. */
    readonly signOfLife: Effect.Effect<void>
    /** Stores the changes by time that are due. */
    readonly sweep: Effect.Effect<void>
    readonly rotateSigningKey: Effect.Effect<void>
  }
>()("licensing/test/documents/TimeWork") {
  static readonly layer = Layer.effect(
    TimeWork,
    Effect.gen(function* () {
      const sweeps = [
        yield* LeaseSweep,
        yield* HeartbeatSweep,
        yield* FeatureExpirySweep,
        yield* PeriodSweep,
        yield* ExpirySweep
      ]
      const { pass: bulkPass } = yield* BulkWorker
      const { pass: nodePass } = yield* Nodes
      const sql = yield* SqlClient.SqlClient
      const services = yield* Effect.context<KeyRing | SqlClient.SqlClient>()
      const clock = yield* Clock.Clock
      return TimeWork.of({
        bulkJobs: Effect.orDie(bulkPass).pipe(Effect.provideService(Clock.Clock, clock)),
        // The epoch is another one in each run.
        signOfLife: Effect.andThen(nodePass, sql`UPDATE nodes SET epoch = '4871026593.2203817465'`).pipe(
          Effect.orDie,
          Effect.provideService(Clock.Clock, clock),
          Effect.asVoid
        ),
        sweep: Effect.forEach(sweeps, ({ pass }) => pass, { discard: true }).pipe(
          Effect.provideService(Clock.Clock, clock)
        ),
        rotateSigningKey: rotateKey({ json: true }).pipe(
          Effect.provideService(Clock.Clock, clock),
          Effect.provideService(CurrentActor, { actor_type: "system", actor_id: "cli" }),
          Effect.provideService(Console.Console, silent),
          Effect.provideContext(services),
          Effect.orDie
        )
      })
    })
  ).pipe(
    Layer.provide([
      BulkWorker.layer,
      Nodes.layer,
      LeaseSweep.layer,
      HeartbeatSweep.layer,
      FeatureExpirySweep.layer,
      PeriodSweep.layer,
      ExpirySweep.layer
    ]),
    Layer.provide([Journal.layer, LicenseStore.layer, LicenseLookups.layer]),
    Layer.provide([EventLog.layer, mailOff])
  )
}

const silent: Console.Console = Object.assign(Object.create(globalThis.console), { log: () => {} })
