/** A feed that reads what is new, as long as nobody reads further down. */
import { Exit } from "effect"
import { useEffect, useRef, useState, useSyncExternalStore } from "react"
import { useBeat, useIsVisible } from "../service/Beat.ts"
import { type Told, tell } from "../service/Failures.ts"
import { type Entry, type Feed, type FeedPage, type Read, readNewer, readSome, withEarlier, withNewer } from "./Feed.ts"

type Ask<A extends Entry> = (cursor: number | undefined) => Promise<Exit.Exit<FeedPage<A>, unknown>>

/** Further down, somebody reads. */
const readingPixels = 160

const onScroll = (notify: () => void) => {
  document.addEventListener("scroll", notify, { passive: true })
  return () => document.removeEventListener("scroll", notify)
}

const useIsAtTop = (): boolean => useSyncExternalStore(onScroll, () => window.scrollY < readingPixels)

export type Pause = "button" | "reading" | "hidden" | "past"

export interface LiveFeed<A extends Entry> {
  readonly feed: Feed<A> | undefined
  readonly told: Told | undefined
  readonly busy: boolean
  /** Why nothing new is read; absent while it is. */
  readonly pause: Pause | undefined
  readonly setPaused: (isPaused: boolean) => void
  readonly readEarlier: () => void
}

/** `key` names the feed with its filters; `start` is the number below which it begins. */
export const useFeed = <A extends Entry>(
  key: string,
  ask: Ask<A>,
  { isOpen, start }: { readonly start: number | undefined; readonly isOpen: boolean }
): LiveFeed<A> => {
  const [feed, setFeed] = useState<Feed<A>>()
  const [told, setTold] = useState<Told>()
  const [isPaused, setPaused] = useState(false)
  const [busy, setBusy] = useState(false)
  const running = useRef(false)
  const shown = useRef(key)
  const isVisible = useIsVisible()
  const isAtTop = useIsAtTop()
  const read: Read<A> = (cursor) =>
    ask(cursor).then((exit) => {
      setTold(Exit.isSuccess(exit) ? undefined : tell(exit.cause))
      return Exit.isSuccess(exit) ? exit.value : undefined
    })
  /** Only one read goes on at a time, and one of earlier filters shows nothing. */
  const once = <B>(work: () => Promise<B | undefined>, done: (value: B) => void) => {
    if (running.current) return
    running.current = true
    const of = shown.current
    void work()
      .then((value) => value !== undefined && of === shown.current && done(value))
      .finally(() => {
        if (of === shown.current) running.current = false
      })
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key names what is asked.
  useEffect(() => {
    shown.current = key
    running.current = false
    setFeed(undefined)
    once(
      () => readSome(read, start),
      (page) => setFeed({ ...page, arrived: 0 })
    )
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
  useBeat("3 seconds", pause === undefined, () =>
    feed === undefined
      ? once(
          () => readSome(read, start),
          (page) => setFeed({ ...page, arrived: 0 })
        )
      : once(
          () => readNewer(read, feed),
          (newer) => setFeed((before) => before && withNewer(before, newer))
        )
  )
  const readEarlier = () => {
    if (feed?.next === undefined) return
    setBusy(true)
    const { next } = feed
    once(
      () => readSome(read, next).finally(() => setBusy(false)),
      (page) => setFeed((before) => before && withEarlier(before, page))
    )
  }
  return { feed, told, busy, pause, setPaused, readEarlier }
}
