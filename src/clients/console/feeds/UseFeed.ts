/** A feed that loads new entries while its first page is shown. */
import { type Cause, Exit } from "effect"
import { useEffect, useRef, useState, useSyncExternalStore } from "react"
import { useIsVisible, usePolling } from "../service/Polling.ts"
import { type Entry, type Feed, type FeedPage, type Read, readNewer, readSome, withEarlier, withNewer } from "./Feed.ts"

type Ask<A extends Entry> = (cursor: number | undefined) => Promise<Exit.Exit<FeedPage<A>, unknown>>

/** Scrolled further down than this, the reader is reading, and the feed stays as it is. */
const readingPixels = 160

const onScroll = (notify: () => void) => {
  document.addEventListener("scroll", notify, { passive: true })
  return () => document.removeEventListener("scroll", notify)
}

const useIsAtTop = (): boolean => useSyncExternalStore(onScroll, () => window.scrollY < readingPixels)

export type Pause = "button" | "reading" | "hidden" | "past"

export interface LiveFeed<A extends Entry> {
  readonly feed: Feed<A> | undefined
  /** Why it could not be read last. */
  readonly cause: Cause.Cause<unknown> | undefined
  readonly busy: boolean
  /** Why nothing new is read; absent while it is. */
  readonly pause: Pause | undefined
  readonly setPaused: (isPaused: boolean) => void
  readonly readEarlier: () => void
  readonly readAgain: () => void
}

/** `key` names the feed with its filters; `start` is the number below which it begins. */
export const useFeed = <A extends Entry>(
  key: string,
  ask: Ask<A>,
  { isOpen, start }: { readonly start: number | undefined; readonly isOpen: boolean }
): LiveFeed<A> => {
  const [feed, setFeed] = useState<Feed<A>>()
  const [cause, setCause] = useState<Cause.Cause<unknown>>()
  const [isPaused, setPaused] = useState(false)
  const [busy, setBusy] = useState(false)
  const running = useRef<Promise<void>>(undefined)
  const latest = useRef<Feed<A>>(undefined)
  const shown = useRef(key)
  const isVisible = useIsVisible()
  const isAtTop = useIsAtTop()
  const read: Read<A> = (cursor) =>
    ask(cursor).then((exit) => {
      setCause(Exit.isSuccess(exit) ? undefined : exit.cause)
      return Exit.isSuccess(exit) ? exit.value : undefined
    })
  /** Only one read runs at a time. The result of one with earlier filters is dropped. */
  const once = <B>(work: () => Promise<B | undefined>, next: (value: B) => Feed<A>): Promise<void> => {
    if (running.current !== undefined) return running.current
    const of = shown.current
    const begun = work()
      .then((value) => {
        if (value !== undefined && of === shown.current) show(next(value))
      })
      .finally(() => {
        if (of === shown.current) running.current = undefined
      })
    running.current = begun
    return begun
  }
  const show = (next: Feed<A> | undefined) => {
    latest.current = next
    setFeed(next)
  }
  const readTop = () =>
    once(
      () => readSome(read, start),
      (page) => ({ ...page, arrived: 0 })
    )
  const readOn = (feed: Feed<A>) =>
    once(
      () => readNewer(read, feed),
      (newer) => withNewer(latest.current ?? feed, newer)
    )
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key names what is asked.
  useEffect(() => {
    shown.current = key
    running.current = undefined
    show(undefined)
    setBusy(false)
    void readTop()
  }, [key])
  const pause = isPaused
    ? "button"
    : start !== undefined
      ? "past"
      : isOpen || !isAtTop
        ? "reading"
        : isVisible
          ? undefined
          : "hidden"
  const readAgain = () => void (latest.current === undefined ? readTop() : readOn(latest.current))
  usePolling("3 seconds", pause === undefined, readAgain)
  const readDown = (): Promise<void> | undefined => {
    const feed = latest.current
    if (feed?.next === undefined) return undefined
    return once(
      () => readSome(read, feed.next),
      (page) => withEarlier(feed, page)
    )
  }
  const readEarlier = () => {
    if (busy) return
    setBusy(true)
    const of = shown.current
    // Waits for a read in progress first.
    void Promise.resolve(running.current)
      .then(() => (of === shown.current ? readDown() : undefined))
      .finally(() => of === shown.current && setBusy(false))
  }
  return { feed, cause, busy, pause, setPaused, readEarlier, readAgain }
}
