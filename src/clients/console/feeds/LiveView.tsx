/** A feed with its state: whether it is live, what came, and the way to earlier entries. */
import { type ReactNode, useState } from "react"
import { countOf } from "../parts/Format.ts"
import { Unread, Waiting } from "../parts/Show.tsx"
import { PageLink, useNarrow } from "../tables/List.tsx"
import type { Entry, Feed } from "./Feed.ts"
import type { LiveFeed, Pause } from "./UseFeed.ts"

interface Props<A extends Entry> {
  readonly live: LiveFeed<A>
  readonly children: (entries: ReadonlyArray<A>) => ReactNode
}

export const LiveView = <A extends Entry>({ children, live }: Props<A>) => {
  const { busy, cause, feed, pause, readAgain, readEarlier } = live
  // The button stays once it was used: it may have the focus.
  const [isUsed, setUsed] = useState(false)
  return (
    <>
      <div className="row spread live">
        <p role="status" className="quiet">
          {feed !== undefined && stateOf(feed, pause)}
        </p>
        <PauseButton live={live} />
      </div>
      {cause !== undefined && <Unread cause={cause} again={readAgain} />}
      {feed === undefined ? cause === undefined && <Waiting /> : <Entries feed={feed}>{children}</Entries>}
      {feed !== undefined && (feed.next !== undefined || isUsed) && (
        <div className="row end">
          <button
            type="button"
            aria-disabled={busy || feed.next === undefined}
            onClick={() => {
              setUsed(true)
              readEarlier()
            }}
          >
            {busy ? "Reading…" : "Earlier"}
          </button>
        </div>
      )}
    </>
  )
}

const Entries = <A extends Entry>(props: { readonly feed: Feed<A>; readonly children: Props<A>["children"] }) => {
  const { items, next } = props.feed
  if (items.length > 0) return props.children(items)
  return (
    <p className="empty">
      {next === undefined ? "Nothing matches." : "Nothing matches among the latest entries. Look at earlier ones."}
    </p>
  )
}

const arrivedOf = ({ arrived, isCut = false }: Feed<Entry>) => {
  const count =
    arrived === 0 ? "" : ` ${countOf(arrived)} new ${arrived === 1 ? "entry" : "entries"} since you opened it.`
  return isCut ? `${count} So much came at once that only the latest was read: “Earlier” shows the rest.` : count
}

const stateOf = (feed: Feed<Entry>, pause: Pause | undefined): string => {
  switch (pause) {
    case undefined:
      return `Live: new entries appear by themselves.${arrivedOf(feed)}`
    case "button":
      return `Paused.${arrivedOf(feed)}`
    case "reading":
    case "hidden":
      return `Paused while you read.${arrivedOf(feed)}`
    case "past":
      return "Earlier entries."
  }
}

type PauseProps = { readonly live: Pick<LiveFeed<Entry>, "pause" | "setPaused"> }

const PauseButton = ({ live: { pause, setPaused } }: PauseProps) => {
  const narrow = useNarrow()
  const goToNewest = () => {
    narrow({ open: undefined })
    window.scrollTo(0, 0)
  }
  switch (pause) {
    case "past":
      return <PageLink change={{ cursor: undefined, open: undefined }}>Newest</PageLink>
    case "button":
      return (
        <button type="button" onClick={() => setPaused(false)}>
          Continue
        </button>
      )
    case "reading":
      return (
        <button type="button" onClick={goToNewest}>
          Go to the newest
        </button>
      )
    case "hidden":
    case undefined:
      return (
        <button type="button" onClick={() => setPaused(true)}>
          Pause
        </button>
      )
  }
}
