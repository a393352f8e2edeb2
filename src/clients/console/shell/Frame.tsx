/** What surrounds every screen: navigation, search, and where the focus goes. */
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router"
import { type FormEvent, useEffect, useRef } from "react"
import { version } from "../../../contract/Version.ts"
import { Icon, Mark } from "../look/Icon.tsx"
import { AskBeforeLeaving } from "../once/AskBeforeLeaving.tsx"
import { unlessUnkept } from "../once/Unkept.ts"
import { Notices } from "../parts/Notices.tsx"
import { Loaded } from "../parts/Show.tsx"
import { askAgain, causeOf, lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { usePolling } from "../service/Polling.ts"
import { leave } from "../service/Service.ts"
import { Navigation, navigationId } from "./Navigation.tsx"

export const Frame = () => {
  const content = useRef<HTMLElement>(null)
  const menu = useRef<HTMLElement>(null)
  const me = useAsk("getMe", {})
  // What the reader may do decides what every screen offers.
  usePolling("10 seconds", causeOf(me) !== undefined, () => askAgain("getMe", {}))
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const first = useRef(true)
  // A screen reader and the keyboard begin a new screen at its top.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path is what the effect follows.
  useEffect(() => {
    if (!first.current) content.current?.focus()
    first.current = false
  }, [path])
  return (
    <>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <div className="frame">
        <div className="side">
          <Bar />
          <Navigation menu={menu}>
            <Account />
          </Navigation>
        </div>
        <main id="content" ref={content} tabIndex={-1}>
          <Loaded of={me}>{() => <Outlet />}</Loaded>
        </main>
      </div>
      <Notices />
      <AskBeforeLeaving />
    </>
  )
}

const Bar = () => {
  const may = useMay()
  return (
    <header className="bar">
      <button type="button" className="menu icon-only quiet" popoverTarget={navigationId} aria-label="Menu">
        <Icon name="menu" />
      </button>
      <Link to="/" className="brand" activeOptions={{ exact: true }}>
        <Mark />
        Licensing
      </Link>
      {may("license:read") && <SearchBox />}
    </header>
  )
}

/** Who is signed in, at the foot of the navigation. */
const Account = () => {
  const me = lastOf(useAsk("getMe", {}))
  return (
    <div className="account">
      <span className="initial" aria-hidden="true">
        {(me?.name ?? "?").charAt(0).toUpperCase()}
      </span>
      <p>
        {me?.name ?? "Signed in"}
        <small>Version {version}</small>
      </p>
      <button
        type="button"
        className="icon-only quiet"
        aria-label="Sign out"
        title="Sign out"
        onClick={() => unlessUnkept(leave)}
      >
        <Icon name="exit" />
      </button>
    </div>
  )
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

/** Keys of vendors have eight characters or more, nearly always with a digit: no such text gets into the address. */
const mayBeKey = /^(?=.*\d)[^\s@]{8,}$|^[^\s@]{20,}$/

/** The one search box; the key / leads to it. */
const SearchBox = () => {
  const input = useRef<HTMLInputElement>(null)
  const navigate = useNavigate()
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isCommand = event.key === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey
      if (!isCommand && (event.key !== "/" || isTyping(event.target))) return
      if (document.querySelector("dialog[open]") !== null) return
      event.preventDefault()
      input.current?.focus()
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  }, [])
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const q = input.current?.value.trim() ?? ""
    if (q === "") return
    // What may be a license key stays out of the address, which others see and which browsers keep.
    void navigate(mayBeKey.test(q) ? { to: "/search", state: { q } as never } : { to: "/search", search: { q } })
  }
  return (
    <search>
      <form onSubmit={submit}>
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          aria-label="Search by e-mail, name, license key, device or order"
          aria-keyshortcuts="Control+K Meta+K /"
          placeholder="Search"
          autoComplete="off"
        />
        <span className="kbd" aria-hidden="true">
          Ctrl K
        </span>
      </form>
    </search>
  )
}
