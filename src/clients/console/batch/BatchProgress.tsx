/** A run of many changes: how far it is, whether it waits, and a button that stops it. */
import { useBlocker } from "@tanstack/react-router"
import { useEffect, useRef, useState } from "react"
import { takeFocus } from "../look/Focus.ts"
import { countOf, instantOf } from "../parts/Format.ts"
import { refresh } from "../service/Hooks.ts"
import { endingSession, runSendingOnce } from "../service/Service.ts"
import { currentSession } from "../service/Session.ts"
import type { BatchJob, Done, Item } from "./BatchJob.ts"
import { runBatch } from "./BatchRun.ts"

const nothing: Done = { succeeded: [], failed: [] }

/** So often a screen reader says how far the run is: after each tenth. */
const tenths = 10

export const BatchProgress = ({ onEnd, job }: { readonly job: BatchJob; readonly onEnd: (done: Done) => void }) => {
  const [progress, setProgress] = useState(nothing)
  const [stopping, setStopping] = useState(false)
  const stop = useRef<AbortController>(null)
  // A run belongs to the job that the dialog began it with.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the job is what the effect follows.
  useEffect(() => {
    const controller = new AbortController()
    stop.current = controller
    const { attempts } = job
    const of = currentSession()
    const send = (item: Item) => endingSession(of, job.send(item))
    let isShown = true
    void runSendingOnce(of, runBatch({ attempts, send, signal: controller.signal, report: setProgress }))
      .then((done) => {
        if (isShown) onEnd(done)
      })
      .finally(refresh)
    return () => {
      isShown = false
      controller.abort()
    }
  }, [job])
  const [isLeaving, setLeaving] = useState(false)
  const stay = () => {
    setLeaving(true)
    return true
  }
  useBlocker({ shouldBlockFn: stay, enableBeforeUnload: true })
  const total = job.attempts.length
  const sent = progress.succeeded.length + progress.failed.length
  const end = () => {
    stop.current?.abort()
    setStopping(true)
  }
  return (
    <>
      <progress value={sent} max={total} aria-label="Licenses that are done" />
      <p>
        {countOf(sent)} of {countOf(total)}
        {progress.failed.length > 0 && `, ${countOf(progress.failed.length)} failed`}
      </p>
      {progress.waitsUntil !== undefined && (
        <p className="quiet">
          The service accepts no more requests of this token for now. The rest follows at{" "}
          {instantOf(progress.waitsUntil)}.
        </p>
      )}
      {isLeaving && <p role="alert">To leave this page, stop the run first.</p>}
      <p className="hidden" role="status">
        {Math.floor((sent / total) * tenths) * (100 / tenths)} %
      </p>
      <div className="row end">
        <button type="button" ref={takeFocus} aria-disabled={stopping} onClick={end}>
          {stopping ? "Stopping…" : "Stop"}
        </button>
      </div>
    </>
  )
}
