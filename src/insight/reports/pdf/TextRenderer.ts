/**
 * Writes texts into a PDF with embedded fonts, so that it looks the same everywhere. A character that the bundled font lacks is taken
 * from the operator's font. If both lack it, a replacement mark is shown; no character is left out.
 */
import { Result } from "effect"
import PDFDocument from "pdfkit"

export type Document = InstanceType<typeof PDFDocument>

export interface Fonts {
  readonly regular: Uint8Array
  readonly bold: Uint8Array
  /** For characters that the others lack; `name` selects a font of a collection. */
  readonly fallback?: { readonly bytes: Uint8Array; readonly name?: string | undefined }
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
  /** Writes one line. If it is aligned right, `x` is its end. */
  write(text: string, x: number, y: number, style: Style, align?: "left" | "right"): void
  /** Breaks a text into lines of a width. The last line ends with an ellipsis if the text is truncated. */
  lines(text: string, style: Style, width: number, linesMax: number): ReadonlyArray<string>
  readonly hasMissingGlyph: boolean
}

export interface Pages {
  readonly left: number
  readonly width: number
  y: number
  /** Starts a new page if the current one has less space than `height`. Returns whether it did. */
  reserve(height: number): boolean
}

export const replacementMark = "\uFFFD"
const ellipsis = "…"
const breakCharacters = new Set(" -_/.,;:|@")
const widthUnit = 1_000

interface Glyph {
  readonly font: string
  readonly text: string
  /** At the size `widthUnit`. */
  readonly width: number
}

export const makeTextRenderer = (pdf: Document, fonts: Fonts): TextRenderer => {
  pdf.registerFont("regular", Buffer.from(fonts.regular))
  pdf.registerFont("bold", Buffer.from(fonts.bold))
  if (fonts.fallback !== undefined)
    pdf.registerFont("fallback", Buffer.from(fonts.fallback.bytes), fonts.fallback.name as never)
  const fallbacks = fonts.fallback === undefined ? [] : ["fallback"]
  const glyphCache = { regular: new Map<string, Glyph>(), bold: new Map<string, Glyph>() }
  let hasMissingGlyph = false

  const findGlyph = (character: string, face: Face): Glyph => {
    const font = [face, ...fallbacks].find((name) => hasGlyph(pdf.font(name), character))
    if (font === undefined) hasMissingGlyph = true
    const text = font === undefined ? replacementMark : character
    const width = pdf
      .font(font ?? face)
      .fontSize(widthUnit)
      .widthOfString(text)
    return { font: font ?? face, text, width }
  }
  const glyphOf = (character: string, face: Face): Glyph => {
    const glyph = glyphCache[face].get(character) ?? findGlyph(character, face)
    glyphCache[face].set(character, glyph)
    return glyph
  }
  const glyphsOf = (text: string, face: Face) =>
    Array.from(withoutControls(text), (character) => glyphOf(character, face))
  const widthOf = (glyphList: ReadonlyArray<Glyph>, { size }: Style) =>
    (glyphList.reduce((sum, { width }) => sum + width, 0) * size) / widthUnit

  const write: TextRenderer["write"] = (text, x, y, style, align = "left") => {
    const glyphList = glyphsOf(text, style.face)
    let at = align === "left" ? x : x - widthOf(glyphList, style)
    for (const run of runsOf(glyphList)) {
      pdf.font(run[0]!.font).fontSize(style.size).fillColor(style.color)
      // Fonts share the baseline, because their boxes differ.
      pdf.text(run.map(({ text }) => text).join(""), at, y, { lineBreak: false, baseline: "alphabetic" })
      at += widthOf(run, style)
    }
  }

  const lines: TextRenderer["lines"] = (text, style, width, linesMax) => {
    const glyphList = glyphsOf(text, style.face)
    if (widthOf(glyphList, style) <= width) return [text]
    const available = (width * widthUnit) / style.size
    const broken = breakLines(glyphList, available, linesMax, glyphOf(ellipsis, style.face).width)
    return broken.map((line) => line.map(({ text }) => text).join(""))
  }

  return {
    pdf,
    width: (text, style) => widthOf(glyphsOf(text, style.face), style),
    write,
    lines,
    get hasMissingGlyph() {
      return hasMissingGlyph
    }
  }
}

/** A collection needs the name of a font in it. */
export const isFont = (bytes: Uint8Array, name: string | undefined): boolean =>
  Result.match(
    Result.try(() => {
      const pdf = new PDFDocument({ autoFirstPage: false })
      return hasGlyph(pdf.font(Buffer.from(bytes), name as never), " ")
    }),
    { onFailure: () => false, onSuccess: () => true }
  )

const withoutControls = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")

const hasGlyph = (pdf: Document, character: string): boolean => {
  // The library exposes a font's characters only in this private member.
  const { font } = (pdf as unknown as { readonly _font: { readonly font: FontFile } })._font
  return font.hasGlyphForCodePoint(character.codePointAt(0) ?? 0)
}
interface FontFile {
  hasGlyphForCodePoint(codePoint: number): boolean
}

const runsOf = (glyphList: ReadonlyArray<Glyph>): ReadonlyArray<ReadonlyArray<Glyph>> => {
  const runs: Array<Array<Glyph>> = []
  for (const glyph of glyphList) {
    const run = runs.at(-1)
    if (run?.[0]?.font === glyph.font) run.push(glyph)
    else runs.push([glyph])
  }
  return runs
}

const breakLines = (glyphList: ReadonlyArray<Glyph>, available: number, linesMax: number, moreWidth: number) => {
  const lines: Array<Array<Glyph>> = []
  let rest = glyphList
  while (rest.length > 0) {
    const last = lines.length + 1 === linesMax
    const fitting = countFitting(rest, available)
    if (fitting === rest.length || !last) {
      const length = fitting === rest.length ? fitting : breakBefore(rest, fitting)
      lines.push(rest.slice(0, length))
      rest = rest.slice(length)
    } else {
      const length = countFitting(rest, available - moreWidth)
      lines.push([...rest.slice(0, length), { font: "regular", text: ellipsis, width: moreWidth }])
      rest = []
    }
  }
  return lines
}

/** At least one, so that each line makes progress. */
const countFitting = (glyphList: ReadonlyArray<Glyph>, available: number): number => {
  let [count, width] = [0, 0]
  for (const glyph of glyphList) {
    width += glyph.width
    if (width > available) break
    count++
  }
  return Math.max(1, count)
}

/** The last position in the second half of the line at which it may break. */
const breakBefore = (glyphList: ReadonlyArray<Glyph>, fitting: number): number => {
  for (let length = fitting; length > fitting / 2; length--)
    if (breakCharacters.has(glyphList[length - 1]!.text)) return length
  return fitting
}
