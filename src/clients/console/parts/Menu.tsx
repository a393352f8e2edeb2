/** Actions behind a button, in the popover of HTML: it closes by Escape and by a click beside it, and gives the focus back. */
import { type KeyboardEvent, type ReactNode, type ToggleEvent, useCallback, useEffect, useId, useRef } from "react"
import { Icon, type IconName } from "../look/Icon.tsx"

const gap = 4
const edge = 8

const leave = (place: () => void) => {
  removeEventListener("scroll", place, { capture: true })
  removeEventListener("resize", place)
}

export const Menu = (props: {
  /** What it is about: the name of a row's menu, or the text of a screen's. */
  readonly label: string
  /** The button is an icon, and the label its name. */
  readonly quiet?: true
  /** In place of the three dots of a quiet one. */
  readonly icon?: IconName
  readonly children: ReactNode
}) => {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  // The page's security policy does not count styles that a script sets as inline styles.
  const place = useCallback(() => {
    const [box, menu] = [button.current, list.current]
    if (box === null || menu === null) return
    const at = box.getBoundingClientRect()
    const below = at.bottom + gap
    const isLow = below + menu.offsetHeight + edge > innerHeight && at.top > menu.offsetHeight + edge
    menu.style.top = `${isLow ? at.top - gap - menu.offsetHeight : below}px`
    menu.style.left = `${Math.max(edge, at.right - menu.offsetWidth)}px`
  }, [])
  useEffect(() => () => leave(place), [place])
  const toggled = ({ newState }: ToggleEvent<HTMLDivElement>) => {
    if (newState !== "open") return leave(place)
    place()
    list.current?.querySelector<HTMLElement>("button, a")?.focus({ preventScroll: true })
    // The menu stays beside its button.
    addEventListener("scroll", place, { capture: true, passive: true })
    addEventListener("resize", place)
  }
  const step = (event: KeyboardEvent<HTMLDivElement>) => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
    // A dialog's keys bubble here in React, though the dialog stands elsewhere in the page.
    if (by === 0 || list.current === null || !list.current.contains(event.target as Node)) return
    event.preventDefault()
    const all = [...list.current.querySelectorAll<HTMLElement>("button, a")]
    all.at((all.indexOf(document.activeElement as HTMLElement) + by) % all.length)?.focus()
  }
  return (
    <>
      <button
        ref={button}
        type="button"
        className={props.quiet ? "icon-only quiet" : "with-icon"}
        popoverTarget={id}
        {...(props.quiet ? { "aria-label": props.label } : {})}
      >
        {props.quiet ? <Icon name={props.icon ?? "more"} /> : props.label}
        {!props.quiet && <Icon name="down" />}
      </button>
      {/* biome-ignore lint/a11y/useSemanticElements: a menu is not a group of fields. */}
      <div
        ref={list}
        id={id}
        role="group"
        aria-label={props.label}
        className="menu-list"
        popover="auto"
        onToggle={toggled}
        onKeyDown={step}
      >
        {props.children}
      </div>
    </>
  )
}
