/**
 * A notice of what was done, with "Undo". It stays until the reader dismisses it, does something else that can be undone, or goes
 * to another screen after a while. It has no time limit of its own. Control+Z undoes, too.
 */
import { useRouterState } from "@tanstack/react-router"
import { Cause, Exit } from "effect"
import { Atom } from "effect/reactivity"
import { useEffect, useRef } from "react"
import { focusContent } from "../look/Focus.ts"
import { inWords, isFinal, tell } from "../service/Failures.ts"
import { refresh, useAtom, useBusy } from "../service/Hooks.ts"
import { now } from "../service/Service.ts"
import { currentSession } from "../service/Session.ts"

/** Longer on screen than this, a notice goes with the screen. */
const freshMillis = 10_000

interface Notice {
  readonly text: string
  readonly since: number
  readonly undo?: () => Promise<Exit.Exit<unknown, unknown>>
}

/** Each session has its own: who signs in next does not undo what the one before did. */
const notice = Atom.keepAlive(Atom.make<Notice | undefined>(undefined))

const told = () => currentSession().registry.get(notice)
const put = (next: Notice | undefined) => currentSession().registry.set(notice, next)

const show = (text: string, undo?: Notice["undo"]): void =>
  put({ text, since: now(), ...(undo === undefined ? {} : { undo }) })

/** Tells what was done, and offers to undo it. */
export const offerUndo = (said: string, undo: NonNullable<Notice["undo"]>): void => show(said, undo)

/** Tells how something ended whose form has left the page. Without a cause it is done. */
export const tellLate = (what: string, cause?: Cause.Cause<unknown>): void => show(`“${what}” ${endOf(cause)}`)

const endOf = (cause: Cause.Cause<unknown> | undefined): string => {
  if (cause === undefined) return "is done."
  const end = isFinal(Cause.squash(cause)) ? "is not done." : "may not be done."
  return `${end} ${inWords(tell(cause).message)}`
}

const dismiss = () => put(undefined)

/** Tells how an undo ended. It can be tried again, unless the service refused it for good; a newer notice keeps its own undo. */
const tellUndo = (undone: Notice, exit: Exit.Exit<unknown, unknown>): void => {
  const current = told()
  const isNewer = current !== undefined && current !== undone
  if (Exit.isSuccess(exit)) {
    if (!isNewer) show("Undone.")
    return
  }
  const isRefused = isFinal(Cause.squash(exit.cause))
  // The screen shows what somebody else has done since.
  if (isRefused) void refresh()
  const fault = inWords(tell(exit.cause).message)
  if (isNewer) put({ ...current, text: `${current.text} The change before it is not undone: ${fault}` })
  else show(`Not undone. ${fault}`, isRefused ? undefined : undone.undo)
}

const isEditing = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches("input:not([type=checkbox]), textarea, select")

export const Notices = () => {
  const shown = useAtom(notice)
  const region = useRef<HTMLElement>(null)
  const [busy, track] = useBusy()
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const { undo } = shown ?? {}
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path is what the effect follows.
  useEffect(() => {
    const current = told()
    if (current !== undefined && now() - current.since > freshMillis) dismiss()
  }, [path])
  const take = () => {
    if (shown === undefined || undo === undefined || busy) return
    // The button goes, the text stays.
    region.current?.focus()
    void track(undo()).then((exit) => tellUndo(shown, exit))
  }
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isUndo = event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey
      if (!isUndo || undo === undefined || isEditing(event.target)) return
      if (document.querySelector("dialog[open]") !== null) return
      event.preventDefault()
      take()
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  })
  return (
    <section className="notices" aria-label="Notices" ref={region} tabIndex={-1}>
      <p role="status">
        {/* A screen reader says the same text again only if it is another element. */}
        <span key={shown?.since}>{shown?.text}</span>
      </p>
      {undo !== undefined && (
        <button type="button" aria-disabled={busy} aria-keyshortcuts="Control+Z Meta+Z" onClick={take}>
          {busy ? "Undoing…" : "Undo"}
        </button>
      )}
      {shown !== undefined && (
        <button
          type="button"
          className="quiet"
          onClick={() => {
            focusContent()
            dismiss()
          }}
        >
          Dismiss
        </button>
      )}
    </section>
  )
}
