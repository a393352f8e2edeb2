/** The one search box: results as one types, records opened last, and commands. The keys / and Control+K lead to it. */
import { useNavigate, useRouter, useRouterState } from "@tanstack/react-router"
import { type FormEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from "react"
import { Icon } from "../look/Icon.tsx"
import { useAtom, useMay } from "../service/Hooks.ts"
import { recent } from "../service/Recent.ts"
import { commandsFor } from "./Commands.ts"
import { commandGroup, type Group, groupsOfResults, type Option, recentGroup } from "./Options.tsx"
import { placeOf } from "./Terms.ts"
import { lengthMin, useSought } from "./UseSought.ts"

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

const isMac = /Mac|iP(?:hone|ad)/.test(navigator.userAgent)

/** The key / and Control+K, or Command+K, lead to an input. */
const useShortcut = (act: () => void) => {
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent) => {
      const isCommand =
        event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey
      if (!isCommand && (event.key !== "/" || isTyping(event.target))) return
      if (document.querySelector("dialog[open]") !== null) return
      event.preventDefault()
      act()
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  }, [act])
}

export const SearchBox = () => {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const focus = useRef(() => input.current?.focus()).current
  const [text, setText] = useState("")
  const [isOpen, setOpen] = useState(false)
  const { groups, said } = useGroups(isOpen ? text : "")
  const { active, activate, keys, place } = useSteps(isOpen ? groups : [], setOpen)
  const navigate = useNavigate()
  const router = useRouter()
  useShortcut(focus)
  const isAtResults = useRouterState({ select: ({ location }) => location.pathname === "/search" })
  useEffect(() => {
    // A license key does not stay on the screen of its license.
    if (!isAtResults) setText("")
  }, [isAtResults])
  const show = (typed: string) => {
    setText(typed)
    activate(undefined)
    setOpen(true)
  }
  const go = ({ path }: Option) => {
    setText("")
    activate(undefined)
    setOpen(false)
    router.history.push(router.history.createHref(`${router.basepath}${path}`))
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (active !== undefined) return go(active)
    const q = text.trim()
    if (q === "") return
    setOpen(false)
    void navigate(placeOf(q))
  }
  return (
    <search onBlur={({ currentTarget, relatedTarget }) => !currentTarget.contains(relatedTarget) && setOpen(false)}>
      <form onSubmit={submit}>
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          role="combobox"
          aria-label="Search by e-mail, name, license key, device or order"
          aria-keyshortcuts="Control+K Meta+K /"
          aria-expanded={isOpen}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={active === undefined ? undefined : `${id}-${place}`}
          placeholder="Search"
          autoComplete="off"
          value={text}
          onFocus={() => setOpen(true)}
          onClick={() => setOpen(true)}
          onKeyDown={keys}
          onChange={({ currentTarget }) => show(currentTarget.value)}
        />
        <Shortcut />
      </form>
      <Palette id={id} groups={isOpen ? groups : []} isOpen={isOpen} said={said} active={active} go={go} />
    </search>
  )
}

const Shortcut = () => (
  <span className="kbd" aria-hidden="true">
    {isMac ? "⌘ K" : "Ctrl K"}
  </span>
)

/** The option that the arrows have reached. It stays the same where results come later above it, so that Enter opens what was seen. */
const useSteps = (groups: ReadonlyArray<Group>, setOpen: (isOpen: boolean) => void) => {
  const [key, activate] = useState<string>()
  const options = groups.flatMap((group) => group.options)
  const place = options.findIndex((option) => option.key === key)
  const keys = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === "Escape" && groups.length > 0) {
      // The browser would empty the input as well.
      event.preventDefault()
      activate(undefined)
      return setOpen(false)
    }
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
    if (by === 0) return
    event.preventDefault()
    setOpen(true)
    activate(options[Math.min(Math.max(place + by, -1), options.length - 1)]?.key)
  }
  return { active: options[place], activate, keys, place }
}

/** What is offered for a text, and what is said about it. */
const useGroups = (text: string): { readonly groups: ReadonlyArray<Group>; readonly said: string } => {
  const may = useMay()
  const opened = useAtom(recent)
  const sought = useSought(text)
  const wanted = text.trim()
  const commands = commandGroup(commandsFor(may), wanted)
  if (wanted === "") return { groups: [recentGroup(opened), commands].filter(isFilled), said: "" }
  const found = sought?.results === undefined ? [] : groupsOfResults(sought.results)
  const groups = [...found, commands].filter(isFilled)
  if (sought?.text !== wanted) return { groups, said: wanted.length < lengthMin ? "" : "Searching…" }
  if (sought.results === undefined) return { groups, said: "The search failed. Press Enter to try again." }
  return { groups, said: found.some(isFilled) ? "" : "Nothing matches." }
}

const isFilled = ({ options }: Group) => options.length > 0

interface PaletteProps {
  readonly id: string
  readonly groups: ReadonlyArray<Group>
  readonly isOpen: boolean
  readonly said: string
  readonly active: Option | undefined
  readonly go: (option: Option) => void
}

const Palette = ({ active, go, groups, id, isOpen, said }: PaletteProps) => {
  let place = -1
  return (
    <div className="palette" hidden={!isOpen}>
      <p role="status" className="quiet">
        {isOpen && said}
      </p>
      <div id={id} role="listbox" aria-label="Results" hidden={groups.length === 0}>
        {groups.map(({ name, options }) => (
          // biome-ignore lint/a11y/useSemanticElements: groups of a listbox are no fields.
          <div key={name} role="group" aria-label={name}>
            <p aria-hidden="true">{name}</p>
            {options.map((option) => {
              place += 1
              return (
                <OptionView
                  key={option.key}
                  id={`${id}-${place}`}
                  option={option}
                  isActive={option === active}
                  go={go}
                />
              )
            })}
          </div>
        ))}
      </div>
    </div>
  )
}

interface OptionProps {
  readonly id: string
  readonly option: Option
  readonly isActive: boolean
  readonly go: (option: Option) => void
}

const OptionView = ({ go, id, isActive, option }: OptionProps) => {
  const view = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isActive) view.current?.scrollIntoView({ block: "nearest" })
  }, [isActive])
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input, which names the active option.
    // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys.
    <div
      ref={view}
      id={id}
      role="option"
      aria-selected={isActive}
      onPointerDown={(event) => event.preventDefault()}
      onClick={() => go(option)}
    >
      <Icon name={option.icon} />
      <span className="name">{option.title}</span>
      {option.about !== undefined && (
        <span className="told">
          {typeof option.about === "string" ? <span className="whole">{option.about}</span> : option.about}
        </span>
      )}
    </div>
  )
}
