/** What surrounds every screen: navigation, search, and where the focus goes. */
import { Link, Outlet, useRouterState } from "@tanstack/react-router"
import { AsyncResult } from "effect/reactivity"
import { useEffect, useRef } from "react"
import { version } from "../../../contract/Version.ts"
import { Icon, Mark } from "../look/Icon.tsx"
import { AskBeforeLeaving } from "../once/AskBeforeLeaving.tsx"
import { unlessUnkept } from "../once/Unkept.ts"
import { Notices } from "../parts/Notices.tsx"
import { Loaded } from "../parts/Show.tsx"
import { SearchBox } from "../search/SearchBox.tsx"
import { title } from "../service/Address.ts"
import { forgetDrafts } from "../service/Drafts.ts"
import { askAgain, causeOf, lastOf, personIn, useAsk, useMay, useSession } from "../service/Hooks.ts"
import { usePolling } from "../service/Polling.ts"
import { leave } from "../service/Service.ts"
import { followRowKeys } from "../tables/RowKeys.ts"
import { ignoreHeldEnter, keepFocus } from "./Keyboard.ts"
import { Navigation, navigationId } from "./Navigation.tsx"

export const Frame = () => {
  const content = useRef<HTMLElement>(null)
  const menu = useRef<HTMLElement>(null)
  const me = useAsk("getMe", {})
  // What the reader may do decides what every screen offers.
  usePolling("10 seconds", causeOf(me) !== undefined, () => askAgain("getMe", {}))
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const first = useRef(true)
  useEffect(followRowKeys, [])
  useEffect(ignoreHeldEnter, [])
  useEffect(keepFocus, [])
  const session = useSession()
  useEffect(() => {
    if (AsyncResult.isSuccess(me)) personIn(session)
  }, [me, session])
  // A screen reader and the keyboard begin a new screen at its top.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path is what the effect follows.
  useEffect(() => {
    if (!first.current) {
      content.current?.focus()
      forgetDrafts()
    }
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
        <span className="name">{title}</span>
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
