/** A run of many changes: how far it is, whether it waits, and a button that stops it. */
import { useBlocker } from "@tanstack/react-router"
import { useEffect, useRef, useState } from "react"
import { takeFocus } from "../look/Focus.ts"
import { countOf, instantOf } from "../parts/Format.ts"
import { refresh } from "../service/Hooks.ts"
import { endingSession, runSendingOnce } from "../service/Service.ts"
import { currentSession } from "../service/Session.ts"
import { runBulk } from "./BulkRun.ts"
import type { Done, Item, Work } from "./Work.ts"

const nothing: Done = { succeeded: [], failed: [] }

/** So often a screen reader says how far the run is: after each tenth. */
const tenths = 10

export const BulkRunning = ({ onEnd, work }: { readonly work: Work; readonly onEnd: (done: Done) => void }) => {
  const [progress, setProgress] = useState(nothing)
  const [stopping, setStopping] = useState(false)
  const stop = useRef<AbortController>(null)
  // A run belongs to the work that the dialog began it with.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the work is what the effect follows.
  useEffect(() => {
    const controller = new AbortController()
    stop.current = controller
    const { attempts } = work
    const of = currentSession()
    const send = (item: Item) => endingSession(of, work.send(item))
    let isShown = true
    void runSendingOnce(of, runBulk({ attempts, send, signal: controller.signal, report: setProgress }))
      .then((done) => {
        if (isShown) onEnd(done)
      })
      .finally(refresh)
    return () => {
      isShown = false
      controller.abort()
    }
  }, [work])
  const [isLeaving, setLeaving] = useState(false)
  const stay = () => {
    setLeaving(true)
    return true
  }
  useBlocker({ shouldBlockFn: stay, enableBeforeUnload: true })
  const total = work.attempts.length
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
