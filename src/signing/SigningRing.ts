/**
 * The memory that the main thread and the signing thread share: texts go in, signatures come back in the same order, and each side
 * sees by two counts how far the other has come, mostly without waking it. Private keys are never in it.
 */

/** An Ed25519 signature. */
const signatureLength = 64
/** A UTF-16 code unit becomes at most three bytes of UTF-8. */
const unitBytesMax = 3

/** How many texts may be under way, a power of two, and how many bytes they may have together. */
export interface RingSize {
  readonly slots: number
  readonly textBytes: number
}

/** Far more than is signed while a group is committed; a text of a license with thousands of features fits as well. */
export const ringSize: RingSize = { slots: 1024, textBytes: 1 << 20 }

export interface Ring extends RingSize {
  readonly memory: SharedArrayBuffer
  readonly counts: Int32Array<SharedArrayBuffer>
  /** Of each slot the number of its key, and where its text begins and ends. */
  readonly places: Int32Array<SharedArrayBuffer>
  readonly signatures: Buffer<SharedArrayBuffer>
  readonly texts: Buffer<SharedArrayBuffer>
}

/** The counts: of texts handed over, of texts signed, and the count of these at which the main thread wants to be told. */
const handedOver = 0
const signed = 1
const wanted = 2
const countsLength = 4
const placeLength = 3

export const makeRing = ({ slots, textBytes }: RingSize): Ring => {
  const bytes =
    Int32Array.BYTES_PER_ELEMENT * (countsLength + placeLength * slots) + signatureLength * slots + textBytes
  return ringOver(new SharedArrayBuffer(bytes), { slots, textBytes })
}

export const ringOver = (memory: SharedArrayBuffer, { slots, textBytes }: RingSize): Ring => {
  const counts = new Int32Array(memory, 0, countsLength)
  const places = new Int32Array(memory, counts.byteLength, placeLength * slots)
  const signatures = Buffer.from(memory, counts.byteLength + places.byteLength, signatureLength * slots)
  const texts = Buffer.from(memory, memory.byteLength - textBytes, textBytes)
  return { memory, slots, textBytes, counts, places, signatures, texts }
}

/** The main thread's end. Counts run over after 2^31 texts: only how far they are apart means something. */
export class RingWriter {
  private readonly ring: Ring
  private written: number
  private taken: number
  /** Where the oldest text begins that is under way, and where the newest one ends. */
  private begin = 0
  private end = 0

  constructor(ring: Ring) {
    this.ring = ring
    this.written = this.taken = Atomics.load(ring.counts, handedOver)
  }

  /** Hands a text over and gives its place in the order, or undefined where there is no room for it. */
  write(key: number, text: string): number | undefined {
    const { counts, places, slots, texts } = this.ring
    if (((this.written - this.taken) | 0) === slots) return undefined
    const begin = this.roomFor(text.length * unitBytesMax)
    if (begin === undefined) return undefined
    this.end = begin + texts.write(text, begin)
    const number = this.written
    const place = (number & (slots - 1)) * placeLength
    places[place] = key
    places[place + 1] = begin
    places[place + 2] = this.end
    this.written = (number + 1) | 0
    Atomics.store(counts, handedOver, this.written)
    return number
  }

  /** Where so many bytes are free in one piece. */
  private roomFor(bytes: number): number | undefined {
    const { textBytes } = this.ring
    if (this.written === this.taken) this.begin = this.end = 0
    const wrapped = this.end < this.begin
    if (bytes < (wrapped ? this.begin : textBytes) - this.end) return this.end
    return !wrapped && bytes < this.begin ? 0 : undefined
  }

  /** Wakes the reader where it sleeps: it does once it has signed all. */
  wake(): void {
    Atomics.notify(this.ring.counts, handedOver)
  }

  /** Gives what was signed since the last time, in order, as base64, and frees its room. */
  take(use: (number: number, signature: string) => void): void {
    const { counts, places, signatures, slots } = this.ring
    const ready = Atomics.load(counts, signed)
    if (this.taken === ready) return
    for (; this.taken !== ready; this.taken = (this.taken + 1) | 0) {
      const place = (this.taken & (slots - 1)) * signatureLength
      use(this.taken, signatures.toString("base64", place, place + signatureLength))
    }
    this.begin = places[(this.taken & (slots - 1)) * placeLength + 1]!
  }

  /** Asks the reader to tell when this text is signed; false where it is already. */
  want(number: number): boolean {
    const { counts } = this.ring
    Atomics.store(counts, wanted, (number + 1) | 0)
    // Looked at after it was asked: the reader looks the other way round, so one of the two sees the other.
    return ((number - Atomics.load(counts, signed)) | 0) >= 0
  }
}

type SignBytes = (key: number, text: Buffer) => Uint8Array

/** The signing thread's end: signs all that is handed over, and tells where that is wanted. */
export const signHandedOver = (
  { counts, places, signatures, slots, texts }: Ring,
  sign: SignBytes,
  tell: () => void
) => {
  let done = Atomics.load(counts, signed)
  while (done !== Atomics.load(counts, handedOver)) {
    const slot = done & (slots - 1)
    const place = slot * placeLength
    const text = texts.subarray(places[place + 1], places[place + 2])
    signatures.set(sign(places[place]!, text), slot * signatureLength)
    done = (done + 1) | 0
    Atomics.store(counts, signed, done)
    if (Atomics.load(counts, wanted) === done) tell()
  }
}

/** Sleeps until there is something to sign. */
export const awaitHandedOver = ({ counts }: Ring): void => {
  Atomics.wait(counts, handedOver, Atomics.load(counts, signed))
}
