/**
 * What is known of ids, found by the bytes of an id where they lie in an answer of the database: no text is made to look one up.
 * A hundred thousand entries take some 20 MB, a Map of texts and objects five times as much. It never grows beyond its bound:
 * whoever fills it empties it first where there is no room.
 */
import { int32 } from "./LedgerRecords.ts"

/** A text as bytes, or none. */
export type Bytes = Uint8Array | undefined

/** Bytes before an entry's texts: the caller's mark, and how long the entry is. */
const headBytes = 5
/** Bytes before each text: its length plus one, 0 where there is none. */
const lengthBytes = 4
/** Hashes and what they lead to: half of them stay empty, so that few steps lead to an entry. */
const slotsForEach = 2

export class IdTable {
  /** Entries one after another: their heads, then texts, the id first. */
  bytes: Uint8Array = new Uint8Array(65_536)
  count = 0
  readonly #entriesMax: number
  readonly #slots: Int32Array
  #end = 0

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(entriesMax * slotsForEach)))
  }

  hasRoom(entries: number): boolean {
    return this.count + entries <= this.#entriesMax
  }

  clear(): void {
    this.#slots.fill(0)
    this.count = 0
    this.#end = 0
  }

  /** Adds an entry under the first of the texts, which is not in the table yet. */
  add(mark: number, texts: ReadonlyArray<Bytes>): void {
    const [id] = texts
    if (id === undefined || !this.hasRoom(1)) throw new RangeError("No room for an id")
    const size = texts.reduce((sum, text) => sum + lengthBytes + (text?.length ?? 0), headBytes)
    this.#reserve(size)
    const entry = this.#end
    this.bytes[this.#end++] = mark
    this.#int32(size)
    for (const text of texts) {
      this.#int32(text === undefined ? 0 : text.length + 1)
      if (text === undefined) continue
      this.bytes.set(text, this.#end)
      this.#end += text.length
    }
    this.#slots[this.#slotOf(id, 0, id.length)] = entry + 1
    this.count++
  }

  /** Where the entry of an id begins, or -1. */
  find(bytes: Uint8Array, start: number, size: number): number {
    return this.#slots[this.#slotOf(bytes, start, size)]! - 1
  }

  /** The caller's byte of an entry. */
  mark(entry: number): number {
    return this.bytes[entry]!
  }

  /** Where the id of an entry is; the next texts follow by `next`. */
  first(entry: number): number {
    return entry + headBytes
  }

  /** How long the text at a place is, -1 where there is none. It begins `lengthBytes` behind that place. */
  size(place: number): number {
    return int32(this.bytes, place) - 1
  }

  start(place: number): number {
    return place + lengthBytes
  }

  next(place: number): number {
    return place + lengthBytes + Math.max(0, this.size(place))
  }

  /** The bytes of an entry. */
  length(entry: number): number {
    return int32(this.bytes, entry + 1)
  }

  /** Whether the text number `index` of an entry is this one. */
  isText(entry: number, index: number, text: Uint8Array): boolean {
    let place = this.first(entry)
    for (let count = 0; count < index; count++) place = this.next(place)
    return this.#isAt(place, text, 0, text.length)
  }

  texts(entry: number, count: number): ReadonlyArray<string | null> {
    let place = this.first(entry)
    return Array.from({ length: count }, () => {
      const [start, size] = [this.start(place), this.size(place)]
      place = this.next(place)
      return size < 0 ? null : Buffer.from(this.bytes.buffer, start, size).toString()
    })
  }

  /** The slot that holds an id, or the empty one where it belongs. */
  #slotOf(bytes: Uint8Array, start: number, size: number): number {
    const slots = this.#slots
    const last = slots.length - 1
    let slot = hash(bytes, start, size) & last
    for (; slots[slot] !== 0; slot = (slot + 1) & last) {
      if (this.#isAt(this.first(slots[slot]! - 1), bytes, start, size)) return slot
    }
    return slot
  }

  #isAt(place: number, bytes: Uint8Array, start: number, size: number): boolean {
    if (this.size(place) !== size) return false
    const at = this.start(place)
    for (let index = 0; index < size; index++) if (this.bytes[at + index] !== bytes[start + index]) return false
    return true
  }

  #int32(value: number): void {
    for (const shift of [24, 16, 8, 0]) this.bytes[this.#end++] = value >>> shift
  }

  #reserve(size: number): void {
    if (this.#end + size <= this.bytes.length) return
    const more = new Uint8Array(Math.max(this.bytes.length * 2, this.#end + size))
    more.set(this.bytes.subarray(0, this.#end))
    this.bytes = more
  }
}

/** FNV-1a, its bits mixed once more: ids differ in their last letters, and the low bits choose the slot. */
const hash = (bytes: Uint8Array, start: number, size: number): number => {
  let sum = 0x811c9dc5
  for (let index = start; index < start + size; index++) sum = Math.imul(sum ^ bytes[index]!, 0x01000193)
  sum ^= sum >>> 15
  sum = Math.imul(sum, 0x2c1b3c6d)
  return sum ^ (sum >>> 12)
}
