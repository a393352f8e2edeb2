/** Commands for changes of many licenses. The running nodes carry the jobs out. */
import { Console, Effect, Layer, Option, Schema } from "effect"
import { Argument, Flag } from "effect/cli"
import { bodyRefusal, faultsOf } from "../../access/requests/RequestFaults.ts"
import { limitMax } from "../../contract/api/Paging.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { BulkAction, BulkJob, BulkJobCreate, BulkRefusal } from "../../licensing/bulk/BulkJob.ts"
import { BulkJobs } from "../../licensing/bulk/BulkJobs.ts"
import { aligned, CommandEnded, flag, jsonFlag, print } from "./Output.ts"

const services = BulkJobs.layer.pipe(Layer.provide(EventLog.layer))

export const bulkCreateFlags = {
  action: Argument.Literals("action", BulkAction.literals).pipe(Argument.withDescription("What changes.")),
  filter: Flag.String("filter").pipe(
    Flag.withDescription("A filter of the list of licenses, as name=value, once for each."),
    Flag.atLeast(0)
  ),
  license: Flag.String("license").pipe(
    Flag.withDescription("The id of a license, once for each, in place of filters."),
    Flag.atLeast(0)
  ),
  all: flag("all", "Every license, in place of filters."),
  parameters: Flag.String("parameters").pipe(
    Flag.withDescription('The parameters of the action as JSON, such as {"extend_by_days": 30}.'),
    Flag.optional
  ),
  reason: Flag.String("reason").pipe(
    Flag.withDescription("Why, in the job and in its event bulk_job.created."),
    Flag.optional
  ),
  dryRun: flag("dry-run", "Count what would be changed, and change nothing."),
  ...jsonFlag
}

export const bulkJobFlags = {
  id: Argument.String("id").pipe(Argument.withDescription("The job's id, as `bulk list` shows it.")),
  ...jsonFlag
}

const encode = Schema.encodeSync(BulkJob)
const encodeRefusal = Schema.encodeSync(BulkRefusal)

interface CreateFlags {
  readonly action: BulkAction
  readonly filter: ReadonlyArray<string>
  readonly license: ReadonlyArray<string>
  readonly all: boolean
  readonly parameters: Option.Option<string>
  readonly reason: Option.Option<string>
  readonly dryRun: boolean
  readonly json: boolean
}

export const createBulkJob = Effect.fnUntraced(function* (flags: CreateFlags) {
  const job = yield* (yield* BulkJobs).create(yield* requestOf(flags))
  yield* printJob(flags.json, job)
  yield* Console.error(`The nodes carry it out: \`licensing bulk show ${job.id}\` shows how far they are.`)
}, Effect.provide(services))

const requestOf = Effect.fnUntraced(function* ({ action, all, dryRun, filter, license, ...flags }: CreateFlags) {
  const unnamed = filter.find((text) => !text.includes("="))
  if (unnamed !== undefined) return yield* wrong(`--filter ${unnamed} has no value: give name=value.`)
  const filters = Object.fromEntries(filter.map(splitAtEqual))
  if (Object.keys(filters).length < filter.length) return yield* wrong("--filter takes each name once.")
  if ([all, filter.length > 0, license.length > 0].filter(Boolean).length !== 1) {
    return yield* wrong("Give either --filter or --license or --all.")
  }
  const parameters = yield* Option.match(flags.parameters, {
    onNone: () => Effect.undefined,
    onSome: (text) => Effect.mapError(parseJson(text), () => wrong("--parameters is no JSON."))
  })
  const request = {
    action,
    dry_run: dryRun,
    ...((all || filter.length > 0) && { filter: filters }),
    ...(all && { confirm_all: true }),
    ...(license.length > 0 && { license_ids: license }),
    ...(parameters !== undefined && { parameters }),
    ...(Option.isSome(flags.reason) && { reason: flags.reason.value })
  }
  return yield* Effect.mapError(decodeRequest(request), ({ issue }) =>
    wrong(bodyRefusal(faultsOf(issue, [], request)).message)
  )
})

const parseJson = Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))
const decodeRequest = Schema.decodeUnknownEffect(BulkJobCreate, { onExcessProperty: "error" })

const wrong = (message: string) => new CommandEnded({ exitCode: 2, message })

const splitAtEqual = (text: string): readonly [string, string] => {
  const at = text.indexOf("=")
  return [text.slice(0, at), text.slice(at + 1)]
}

export const listBulkJobs = Effect.fnUntraced(function* ({ json }: { readonly json: boolean }) {
  const { items, next } = yield* (yield* BulkJobs).list({ limit: limitMax })
  yield* print(
    json,
    items.map((job) => encode(job)),
    aligned(items.map(rowOf))
  )
  if (next !== undefined) yield* Console.error(`Only the newest ${limitMax} are shown: the API lists all.`)
}, Effect.provide(services))

export const showBulkJob = Effect.fnUntraced(function* ({ id, json }: { readonly id: string; readonly json: boolean }) {
  const jobs = yield* BulkJobs
  const job = yield* jobs.get(id)
  const { items, next } = yield* jobs.refusals(id, { limit: limitMax })
  const refusals = items.map(({ code, license_id, message }) => [license_id, code, message])
  yield* print(json, { job: encode(job), refusals: items.map((refusal) => encodeRefusal(refusal)) }, [
    ...linesOf(job),
    ...aligned(refusals)
  ])
  if (next !== undefined) yield* Console.error(`Only ${limitMax} refusals are shown: the API lists all.`)
}, Effect.provide(services))

export const cancelBulkJob = Effect.fnUntraced(function* (flags: { readonly id: string; readonly json: boolean }) {
  yield* printJob(flags.json, yield* (yield* BulkJobs).cancel(flags.id))
}, Effect.provide(services))

const printJob = (json: boolean, job: BulkJob) => print(json, encode(job), linesOf(job))

const linesOf = (job: BulkJob) => [...aligned([rowOf(job)]), ...(job.failure === undefined ? [] : [job.failure])]

const rowOf = ({ action, changed, created_at, dry_run, id, matched, refused, status, unchanged }: BulkJob) => [
  id,
  `${action}${dry_run ? " (dry run)" : ""}`,
  status,
  `${changed + unchanged + refused} of ${matched}: ${changed} changed, ${unchanged} unchanged, ${refused} refused`,
  formatTimestamp(created_at)
]
