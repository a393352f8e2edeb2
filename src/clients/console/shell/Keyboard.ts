/** What every screen does for people who use the keyboard or a screen reader. */
import { focusContent } from "../look/Focus.ts"

const listen = (event: KeyboardEvent) => {
  const { key, repeat, target } = event
  if (key === "Enter" && repeat && target instanceof Element && target.matches("dialog :not(textarea)"))
    event.preventDefault()
}

/** The Enter that opened a dialog does not answer it as well while it is held. */
export const ignoreHeldEnter = () => {
  document.addEventListener("keydown", listen)
  return () => document.removeEventListener("keydown", listen)
}

/** The parts of a screen that may get the focus of what was in them. */
const parts = "tr, li, section"

/**
 * Moves the focus on when its element leaves the page, as the button of an action does once that is done: to the first control
 * in the nearest part that is left. Otherwise the keyboard and screen readers would begin again at the top of the page.
 */
export const keepFocus = () => {
  let path: ReadonlyArray<Element> = []
  const remember = (event: FocusEvent) => {
    path = event.composedPath().filter((target) => target instanceof Element)
  }
  // A click beside all controls takes the focus away for good.
  const forget = () => {
    path = []
  }
  const observer = new MutationObserver(() => {
    if (document.activeElement !== document.body || path[0] === undefined || path[0].isConnected) return
    const controls = path.flatMap((part) =>
      part.isConnected && part.matches(parts) ? [...part.querySelectorAll<HTMLElement>("button, a[href]")] : []
    )
    const next = controls.find((control) => control.checkVisibility())
    if (next === undefined) focusContent()
    else next.focus({ preventScroll: true })
  })
  document.addEventListener("focusin", remember)
  document.addEventListener("pointerdown", forget)
  observer.observe(document.body, { childList: true, subtree: true })
  return () => {
    document.removeEventListener("focusin", remember)
    document.removeEventListener("pointerdown", forget)
    observer.disconnect()
  }
}
