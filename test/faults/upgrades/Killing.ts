/** Applies migrations to a database whose server ends the session in every step. */
import { Effect, Exit, type Redacted } from "effect"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { run } from "../../../src/platform/postgres/migrations/Migrations.ts"

/** Ends the session at the change of this number since the last progress; sequences stay when a transaction is rolled back. */
const trigger = `
  CREATE SCHEMA killing;
  CREATE SEQUENCE killing.changes MINVALUE 0 START 0;
  CREATE TABLE killing.at (change bigint NOT NULL);
  INSERT INTO killing.at VALUES (1);
  CREATE FUNCTION killing.kill() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('killing.changes') = (SELECT change FROM killing.at) THEN
      PERFORM pg_terminate_backend(pg_backend_pid());
      PERFORM pg_sleep(10);
    END IF;
  END $$;
  CREATE EVENT TRIGGER killing_changes ON ddl_command_end EXECUTE FUNCTION killing.kill()`

/** The next change of a step at which the session is ended. */
export type Next = (change: number) => number

export const everyChange: Next = (change) => change + 1
/** The first three, and fewer of the later ones. */
export const someChanges: Next = (change) => (change < 3 ? change + 1 : change * 2)

/** Returns how often the session was ended. */
export const migrateKilled = Effect.fnUntraced(function* (url: Redacted.Redacted<string>, next: Next) {
  const { values } = yield* openSession(url)
  for (const statement of trigger.split(/;\n(?= {2}CREATE| {2}INSERT)/)) yield* values(statement)
  let [kills, change, reached] = [0, 1, ""]
  for (;;) {
    yield* values(`SELECT setval('killing.changes', 0)`)
    yield* values(`UPDATE killing.at SET change = ${change}`)
    const ended = yield* Effect.exit(run({ url }))
    if (Exit.isSuccess(ended)) break
    const [[wasKilled]] = (yield* values("SELECT last_value >= change FROM killing.changes, killing.at")) as [[boolean]]
    if (!wasKilled) return yield* Effect.failCause(ended.cause)
    kills++
    const [[hasSteps]] = (yield* values("SELECT to_regclass('migration_progress') IS NOT NULL")) as [[boolean]]
    const now = JSON.stringify([
      yield* values("SELECT max(id) FROM schema_migrations"),
      hasSteps ? yield* values("SELECT migration, steps FROM migration_progress") : []
    ])
    // A step that was not reached before was ended at its first change.
    change = next(now === reached ? change : 1)
    reached = now
  }
  yield* values("DROP EVENT TRIGGER killing_changes")
  yield* values("DROP SCHEMA killing CASCADE")
  return kills
}, Effect.scoped)
