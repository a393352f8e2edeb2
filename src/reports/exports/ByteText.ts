/** A text that is written as UTF-8 at once, into room that is used again: millions of rows leave no garbage behind. */

/** The bytes of a text that is written often. */
export const utf8 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))

const [colon, dot, zulu] = [58, 46, 90]

// Beyond it, copying by the engine is faster than a loop.
const loopMax = 48

export class ByteText {
  #bytes: Buffer
  #end = 0

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity)
  }

  clear(): void {
    this.#end = 0
  }

  /** What was written: not to be kept beyond the next `clear`. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#end)
  }

  /** Makes room: what is written by `copy`, `bytes`, `byte` and `integer` until the next time must fit into it. */
  reserve(size: number): void {
    if (this.#end + size <= this.#bytes.length) return
    const more = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#end + size))
    this.#bytes.copy(more, 0, 0, this.#end)
    this.#bytes = more
  }

  byte(value: number): void {
    this.#bytes[this.#end++] = value
  }

  bytes(from: Uint8Array): void {
    this.copy(from, 0, from.length)
  }

  copy(from: Uint8Array, start: number, size: number): void {
    const to = this.#bytes
    const end = this.#end
    if (size > loopMax) to.set(from.subarray(start, start + size), end)
    else for (let index = 0; index < size; index++) to[end + index] = from[start + index]!
    this.#end = end + size
  }

  /** A whole number as JSON and CSV write it: at most 20 bytes. */
  integer(value: number): void {
    if (value >= 0 && value <= 0x7fffffff) this.#digits(value)
    else for (const digit of String(value)) this.byte(digit.charCodeAt(0))
  }

  #digits(value: number): void {
    let digits = 1
    for (let power = 10; digits < 10 && value >= power; power *= 10) digits++
    const to = this.#bytes
    let rest = value | 0
    for (let index = this.#end + digits - 1; index >= this.#end; index--) {
      const tens = (rest / 10) | 0
      to[index] = 48 + rest - tens * 10
      rest = tens
    }
    this.#end += digits
  }

  /** The time of a day in UTC as ISO 8601 writes it, of milliseconds since it began. */
  timeOfDay(millis: number): void {
    const seconds = (millis / 1_000) | 0
    const minutes = (seconds / 60) | 0
    const hours = (minutes / 60) | 0
    const rest = millis - seconds * 1_000
    const tenths = (rest / 100) | 0
    this.#twoDigits(hours, colon)
    this.#twoDigits(minutes - hours * 60, colon)
    this.#twoDigits(seconds - minutes * 60, dot)
    this.byte(48 + tenths)
    this.#twoDigits(rest - tenths * 100, zulu)
  }

  #twoDigits(value: number, behind: number): void {
    const tens = (value / 10) | 0
    const to = this.#bytes
    to[this.#end] = 48 + tens
    to[this.#end + 1] = 48 + value - tens * 10
    to[this.#end + 2] = behind
    this.#end += 3
  }

  /** Any text, with room made for it. */
  text(text: string): void {
    this.reserve(text.length * 3)
    this.#end += this.#bytes.write(text, this.#end)
  }
}
