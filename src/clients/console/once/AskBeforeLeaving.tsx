/** The question before something that is shown once is lost, whatever would take it away. */
import { useBlocker } from "@tanstack/react-router"
import { useEffect, useId, useRef } from "react"
import { createPortal } from "react-dom"
import { useAtom } from "../service/Hooks.ts"
import { leaving, stopLeaving, useWhatIsUnkept } from "./Unkept.ts"

export const AskBeforeLeaving = () => {
  const what = useWhatIsUnkept()
  const begun = useAtom(leaving)
  const isNeeded = what !== undefined
  const blocker = useBlocker({ shouldBlockFn: () => isNeeded, enableBeforeUnload: isNeeded, withResolver: true })
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const isAsking = isNeeded && (begun !== undefined || blocker.status === "blocked")
  useEffect(() => {
    if (isAsking) dialog.current?.showModal()
  }, [isAsking])
  if (!isAsking) return null
  // The browser tells only later that a dialog is closed: what the reader begins meanwhile would be stopped instead.
  const stay = () => {
    // Closing gives the focus back to what was in front before.
    dialog.current?.close()
    stopLeaving()
    blocker.reset?.()
  }
  const leave = () => {
    stopLeaving()
    begun?.act()
    blocker.proceed?.()
  }
  // After the dialog that it stands in front of.
  return createPortal(
    <dialog ref={dialog} aria-labelledby={id} onCancel={stay} onClose={stay}>
      <h2 id={id}>Leave without {what}?</h2>
      <p>There is no copy yet, and it cannot be shown again.</p>
      <div className="row end">
        <button type="button" className="danger" onClick={leave}>
          Leave
        </button>
        <button type="button" className="primary" onClick={stay}>
          Stay
        </button>
      </div>
    </dialog>,
    document.body
  )
}
