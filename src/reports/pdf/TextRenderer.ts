/**
 * Writes texts into a PDF with fonts that lie in the file, so that it looks the same everywhere. A character that the first font
 * lacks is taken from the operator's own one; one that both lack is shown as a mark, never left out.
 */
import { Result } from "effect"
import PDFDocument from "pdfkit"

export type Document = InstanceType<typeof PDFDocument>

/** The bytes of the fonts. */
export interface Fonts {
  readonly regular: Uint8Array
  readonly bold: Uint8Array
  /** For what the others lack; a font of a collection is named. */
  readonly other?: { readonly bytes: Uint8Array; readonly name?: string | undefined }
}

type Face = "regular" | "bold"

export interface Style {
  readonly face: Face
  readonly size: number
  readonly color: string
}

export interface TextRenderer {
  readonly pdf: Document
  width(text: string, style: Style): number
  /** Writes one line. Where it is to stand on the right, `x` is its end. */
  write(text: string, x: number, y: number, style: Style, side?: "left" | "right"): void
  /** A text as lines of a width, the last of which tells that there is more. */
  lines(text: string, style: Style, width: number, linesMax: number): ReadonlyArray<string>
  /** Whether some character had to be shown as a mark. */
  readonly lacked: boolean
}

/** Where on the pages the next thing goes. */
export interface Pages {
  readonly left: number
  readonly width: number
  y: number
  /** Goes on to a new page where this one has less room than that; tells whether it did. */
  reserve(height: number): boolean
}

/** Stands for a character that no font has. */
export const mark = "\uFFFD"
const more = "…"
/** Lines break before none of these, and after each of them. */
const breaks = new Set(" -_/.,;:|@")
const widthUnit = 1_000

interface Glyph {
  readonly font: string
  readonly text: string
  /** At the size `widthUnit`. */
  readonly width: number
}

/** Registers the fonts in a document. */
export const makeTextRenderer = (pdf: Document, fonts: Fonts): TextRenderer => {
  pdf.registerFont("regular", Buffer.from(fonts.regular))
  pdf.registerFont("bold", Buffer.from(fonts.bold))
  if (fonts.other !== undefined) pdf.registerFont("other", Buffer.from(fonts.other.bytes), fonts.other.name as never)
  const others = fonts.other === undefined ? [] : ["other"]
  const known = { regular: new Map<string, Glyph>(), bold: new Map<string, Glyph>() }
  let lacked = false

  const look = (character: string, face: Face): Glyph => {
    const font = [face, ...others].find((name) => hasGlyph(pdf.font(name), character))
    if (font === undefined) lacked = true
    const text = font === undefined ? mark : character
    const width = pdf
      .font(font ?? face)
      .fontSize(widthUnit)
      .widthOfString(text)
    return { font: font ?? face, text, width }
  }
  const glyphOf = (character: string, face: Face): Glyph => {
    const glyph = known[face].get(character) ?? look(character, face)
    known[face].set(character, glyph)
    return glyph
  }
  const glyphs = (text: string, face: Face) => Array.from(printable(text), (character) => glyphOf(character, face))
  const widthOf = (all: ReadonlyArray<Glyph>, { size }: Style) =>
    (all.reduce((sum, { width }) => sum + width, 0) * size) / widthUnit

  const write: TextRenderer["write"] = (text, x, y, style, side = "left") => {
    const all = glyphs(text, style.face)
    let at = side === "left" ? x : x - widthOf(all, style)
    for (const run of runsOf(all)) {
      pdf.font(run[0]!.font).fontSize(style.size).fillColor(style.color)
      // Fonts stand on one line, not in one box.
      pdf.text(run.map(({ text }) => text).join(""), at, y, { lineBreak: false, baseline: "alphabetic" })
      at += widthOf(run, style)
    }
  }

  const lines: TextRenderer["lines"] = (text, style, width, linesMax) => {
    const all = glyphs(text, style.face)
    if (widthOf(all, style) <= width) return [text]
    const room = (width * widthUnit) / style.size
    const broken = breakLines(all, room, linesMax, glyphOf(more, style.face).width)
    return broken.map((line) => line.map(({ text }) => text).join(""))
  }

  return {
    pdf,
    width: (text, style) => widthOf(glyphs(text, style.face), style),
    write,
    lines,
    get lacked() {
      return lacked
    }
  }
}

/** Whether texts can be written with these bytes. Of a collection, only with a font of it that is named. */
export const isFont = (bytes: Uint8Array, name: string | undefined): boolean =>
  Result.match(
    Result.try(() => {
      const pdf = new PDFDocument({ autoFirstPage: false })
      return hasGlyph(pdf.font(Buffer.from(bytes), name as never), " ")
    }),
    { onFailure: () => false, onSuccess: () => true }
  )

/** Line ends and other characters that have no form of their own are blanks in a line. */
const printable = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")

const hasGlyph = (pdf: Document, character: string): boolean => {
  // The library tells of a font's characters nowhere else.
  const { font } = (pdf as unknown as { readonly _font: { readonly font: FontFile } })._font
  return font.hasGlyphForCodePoint(character.codePointAt(0) ?? 0)
}
interface FontFile {
  hasGlyphForCodePoint(codePoint: number): boolean
}

/** Neighbours of one font, which are written in one go. */
const runsOf = (all: ReadonlyArray<Glyph>): ReadonlyArray<ReadonlyArray<Glyph>> => {
  const runs: Array<Array<Glyph>> = []
  for (const glyph of all) {
    const run = runs.at(-1)
    if (run?.[0]?.font === glyph.font) run.push(glyph)
    else runs.push([glyph])
  }
  return runs
}

const breakLines = (all: ReadonlyArray<Glyph>, room: number, linesMax: number, moreWidth: number) => {
  const lines: Array<Array<Glyph>> = []
  let rest = all
  while (rest.length > 0) {
    const last = lines.length + 1 === linesMax
    const fitting = countFitting(rest, room)
    if (fitting === rest.length || !last) {
      const length = fitting === rest.length ? fitting : breakBefore(rest, fitting)
      lines.push(rest.slice(0, length))
      rest = rest.slice(length)
    } else {
      const length = countFitting(rest, room - moreWidth)
      lines.push([...rest.slice(0, length), { font: "regular", text: more, width: moreWidth }])
      rest = []
    }
  }
  return lines
}

/** At least one, so that every line gets on. */
const countFitting = (all: ReadonlyArray<Glyph>, room: number): number => {
  let [count, width] = [0, 0]
  for (const glyph of all) {
    width += glyph.width
    if (width > room) break
    count++
  }
  return Math.max(1, count)
}

/** The last place to break a line at that is not in its first half. */
const breakBefore = (all: ReadonlyArray<Glyph>, fitting: number): number => {
  for (let length = fitting; length > fitting / 2; length--) if (breaks.has(all[length - 1]!.text)) return length
  return fitting
}
