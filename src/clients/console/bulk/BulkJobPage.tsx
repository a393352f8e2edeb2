/** One bulk job: how far it is, what it refused, and what was asked for. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { BulkJob } from "../../../licensing/bulk/BulkJob.ts"
import { Changes } from "../audit/Changes.tsx"
import type { Members } from "../audit/Differences.ts"
import { Action } from "../parts/Dialog.tsx"
import { countOf, sentenceOf, wordsOf } from "../parts/Format.ts"
import { licenseCount } from "../parts/LicenseName.ts"
import { Actor, RecordName } from "../parts/Names.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Fault, Heading, Section, Status, Time } from "../parts/Show.tsx"
import { tell } from "../service/Failures.ts"
import { useFollowing } from "../service/Following.ts"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import { changeOf, nameOfJob } from "./BulkChanges.ts"
import { JobProgress } from "./JobProgress.tsx"
import { Refusals } from "./Refusals.tsx"
import { doneOf, isOpen } from "./Target.ts"

const route = getRouteApi("/bulk-jobs/$id")

export const BulkJobPage = () => {
  const { id } = route.useParams()
  const asked = useAsk("getBulkJob", { params: { id } })
  return (
    <OneRecord of={asked} noun="bulk job">
      {(first) => <Screen key={first.id} first={first} />}
    </OneRecord>
  )
}

const Screen = ({ first }: { readonly first: BulkJob }) => {
  const may = useMay()
  const params = { id: first.id }
  const reread = () => run("getBulkJob", { params })
  const { failed, isRefused, latest, setLatest } = useFollowing({ first, isOpen, reread })
  const mayStop = isOpen(latest) && may("license:write")
  return (
    <>
      <Heading
        title={nameOfJob(latest, changeOf(latest.action).send(licenseCount(latest.matched)))}
        about={<Status of={latest.status} />}
      >
        <Link to="/bulk-jobs" className="button">
          All bulk jobs
        </Link>
        {may("license:write") && <TakeBack of={latest} />}
      </Heading>
      {failed !== undefined && <Fault told={tell(failed)} />}
      <div className="split">
        <div>
          <Section
            id="progress"
            title="Progress"
            {...(mayStop && {
              actions: (
                <Action
                  label="Stop the job"
                  effect="What it has changed stays changed, the rest stays as it is. The job cannot be continued."
                  danger
                  run={() => change("cancelBulkJob", { params })}
                  then={setLatest}
                />
              )
            })}
          >
            {!isRefused && <p role="status">{progressOf(latest)}</p>}
            {latest.failure !== undefined && <p className="failed">{latest.failure}</p>}
            {latest.status !== "completed" && <JobProgress of={latest} />}
            <Facts
              of={[
                [latest.dry_run ? "Would change" : "Changed", countOf(latest.changed)],
                ["Unchanged", countOf(latest.unchanged)],
                ["Refused", countOf(latest.refused)]
              ]}
            />
          </Section>
          {latest.refused > 0 && <Refusals of={latest} />}
        </div>
        <div>
          <Section id="about" title="About">
            <Facts of={factsOf(latest)} />
          </Section>
        </div>
      </div>
    </>
  )
}

const opposites = { suspend: "reinstate", reinstate: "suspend" } as const

/** The opposite change of the licenses that the job matched. */
const TakeBack = ({ of: { action, changed, dry_run, ended_at, id, matched, unchanged } }: { readonly of: BulkJob }) => {
  const navigate = useNavigate()
  if (dry_run || ended_at === undefined || changed === 0) return null
  if (action !== "suspend" && action !== "reinstate") return null
  const opposite = opposites[action]
  const { effect, label, send } = changeOf(opposite)
  return (
    <Action
      label={`${label} them`}
      title={send(licenseCount(matched))}
      send={send(licenseCount(matched))}
      effect={
        <>
          A new job looks at all licenses of this one. {effect}
          {unchanged > 0 && (
            <strong> Among them are the {countOf(unchanged)} that this job had found as they should be.</strong>
          )}
        </>
      }
      danger={opposite === "suspend"}
      run={() =>
        change("createBulkJob", {
          payload: { action: opposite, filter: { bulk_job_id: id }, reason: `Takes back ${id}.` }
        })
      }
      then={(job) => void navigate({ to: "/bulk-jobs/$id", params: { id: job.id } })}
    />
  )
}

const progressOf = (job: BulkJob): string => {
  const changed = licenseCount(job.changed)
  switch (job.status) {
    case "pending":
      return "The job waits for its turn. You can leave this page."
    case "running":
      return "The job goes through the licenses. You can leave this page."
    case "completed":
      return job.dry_run ? `${changed} would change. Nothing was changed.` : `${changed} changed.`
    case "canceled":
      return `The job was stopped: ${licenseCount(job.matched - doneOf(job))} not reached.`
    case "failed":
      return "The job failed. What it had changed stays changed."
  }
}

type Fact = readonly [name: string, value: ReactNode]

const factsOf = (job: BulkJob): ReadonlyArray<Fact> => [
  ["Change", changeOf(job.action).label],
  ...Object.entries(job.parameters).map(
    ([name, value]): Fact => [labelOf(job.action, name), <Value key="" {...{ name, value }} />]
  ),
  [
    "Licenses",
    job.filter === undefined
      ? "Chosen one by one"
      : Object.keys(job.filter).length === 0
        ? "Every license"
        : "All that match"
  ],
  ...Object.entries(job.filter ?? {}).map(
    ([name, value]): Fact => [`Filter: ${wordsOf(name.replace(/_id$/, ""))}`, <Value key="" {...{ name, value }} />]
  ),
  ...(job.reason === undefined ? [] : [["Reason", job.reason] as const]),
  ["Created", <Time key="created" at={job.created_at} />],
  ["Created by", <Actor key="by" id={job.created_by} name={job.created_by_name} />],
  ...(job.ended_at === undefined ? [] : [["Ended", <Time key="ended" at={job.ended_at} />] as const])
]

/** What the form of the change calls it. */
const labelOf = (action: BulkJob["action"], name: string): string =>
  (changeOf(action).fields as Readonly<Record<string, { readonly label: string } | undefined>> | undefined)?.[name]
    ?.label ?? sentenceOf(name.replace(/_id$/, ""))

const isInstant = (name: string) => /_(at|before|after)$/.test(name)

const Value = ({ name, value }: { readonly name: string; readonly value: unknown }): ReactNode => {
  if (value === null) return "–"
  if (typeof value === "boolean") return value ? "yes" : "no"
  if (name === "status") return <Status of={String(value)} />
  if (isInstant(name)) return <Time at={new Date(value as string | number).getTime()} />
  if (name.endsWith("_id")) return <RecordName field={name} id={String(value)} />
  return typeof value === "object" ? <Changes of={value as Members} /> : wordsOf(String(value))
}
