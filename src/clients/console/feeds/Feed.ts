/**
 * The entries of a feed that are shown, the newest first. Entries have numbers that rise and never change, so that what is new is
 * what has a higher number. All reads are bounded.
 */

export interface Entry {
  readonly sequence: number
}

export interface FeedPage<A extends Entry> {
  readonly items: ReadonlyArray<A>
  /** Where the next page begins; a page may be empty and yet have one. */
  readonly next?: number
}

/** What was read from the top of a feed: all entries with this number or a higher one were looked at. */
interface Top {
  readonly floor: number
}

export interface Feed<A extends Entry> extends FeedPage<A>, Top {
  /** How many entries came since the feed was opened. */
  readonly arrived: number
  /** More came at once than is read: entries that were shown before are below. */
  readonly isCut?: boolean
}

export interface Newer<A extends Entry> extends FeedPage<A>, Top {
  /** It reaches down to what was read before. */
  readonly isWhole: boolean
}

export type Read<A extends Entry> = (cursor: number | undefined) => Promise<FeedPage<A> | undefined>

/** Pages that are read in search of entries that match the filters. */
const pagesMax = 10
/** Entries that are kept; the earlier ones are read again when they are asked for. */
const entriesMax = 500

const floorOf = ({ next = 1 }: FeedPage<Entry>) => next

/** Reads until there are entries, or none are left. Undefined: a read failed. */
export const readSome = <A extends Entry>(
  read: Read<A>,
  cursor: number | undefined,
  pages = pagesMax
): Promise<(FeedPage<A> & Top) | undefined> =>
  read(cursor).then((page) => {
    if (page === undefined) return undefined
    const floor = floorOf(page)
    return page.items.length > 0 || page.next === undefined || pages === 1
      ? { ...page, floor }
      : readSome(read, page.next, pages - 1).then((later) => later && { ...later, floor })
  })

/** Reads what is newer than a feed, down to its newest entry; or if that is too much, the newest. */
export const readNewer = <A extends Entry>(read: Read<A>, feed: Feed<A>): Promise<Newer<A> | undefined> => {
  // Entries that match may be rare: what was looked at before is not looked at again.
  const above = Math.max(feed.items[0]?.sequence ?? 0, feed.floor - 1)
  const readOn = (cursor: number | undefined, found: ReadonlyArray<A>, pages: number): Promise<Newer<A> | undefined> =>
    read(cursor).then((page) => {
      if (page === undefined) return undefined
      const items = [...found, ...page.items.filter(({ sequence }) => sequence > above)]
      const isWhole =
        page.next === undefined || page.next <= above + 1 || page.items.some(({ sequence }) => sequence <= above)
      const read = { ...page, items, isWhole, floor: floorOf(page) }
      return isWhole || pages === 1
        ? read
        : readOn(page.next, items, pages - 1).then((later) => later && { ...later, floor: read.floor })
    })
  return readOn(undefined, [], pagesMax)
}

/**
 * The feed with newer entries on top. If they were not read down to what is shown, this is left out, also if none of them matched: a
 * feed has no gaps.
 */
export const withNewer = <A extends Entry>(feed: Feed<A>, { floor, isWhole, items, next }: Newer<A>): Feed<A> => {
  const arrived = feed.arrived + items.length
  if (!isWhole) return { items, floor, arrived, isCut: true, ...(next === undefined ? {} : { next }) }
  const all = [...items, ...feed.items]
  const kept = all.slice(0, entriesMax)
  return kept.length === all.length
    ? { ...feed, items: all, floor, arrived }
    : { ...feed, items: kept, floor, arrived, next: kept.at(-1)!.sequence }
}

/** The feed with a page of earlier entries below. */
export const withEarlier = <A extends Entry>(feed: Feed<A>, { items, next }: FeedPage<A>): Feed<A> => ({
  items: [...feed.items, ...items],
  arrived: feed.arrived,
  floor: feed.floor,
  isCut: false,
  ...(next === undefined ? {} : { next })
})
