/**
 * Templates of mails: `{{name}}` is a value, and `{{#name}}…{{/name}}` a part that is left out without it. What must stay
 * true: a value never becomes markup of a page or a line of a header, because names come from customers.
 */

export type Template = ReadonlyArray<Piece>

type Piece =
  | { readonly text: string }
  | { readonly value: string }
  | { readonly ifPresent: string; readonly pieces: Template }

export interface Values {
  readonly [name: string]: string
}

const tag = /\{\{([#/]?)([a-z_]+)\}\}/g

/** The pieces of a template, or what is wrong with it. */
export const parseTemplate = (source: string, known: ReadonlySet<string>): Template | string => {
  const open: Array<{ readonly name: string; readonly pieces: Array<Piece> }> = [{ name: "", pieces: [] }]
  let end = 0
  for (const { 0: whole, 1: sign, 2: name = "", index } of source.matchAll(tag)) {
    const { name: opened, pieces } = open.at(-1)!
    if (index > end) pieces.push({ text: source.slice(end, index) })
    end = index + whole.length
    if (!known.has(name)) return `it names the value ${name}, which this mail does not have`
    if (sign === "#") open.push({ name, pieces: [] })
    else if (sign === "") pieces.push({ value: name })
    else {
      if (opened !== name) return `{{/${name}}} closes nothing`
      open.pop()
      open.at(-1)!.pieces.push({ ifPresent: name, pieces })
    }
  }
  if (open.length > 1) return `{{#${open.at(-1)!.name}}} is not closed`
  return [...open[0]!.pieces, { text: source.slice(end) }]
}

/** The text, with each value as `show` gives it, and each literal part as `literal` gives it. */
const render = (
  template: Template,
  values: Values,
  show: (value: string, name: string) => string,
  literal: (text: string) => string
): string =>
  template
    .map((piece) => {
      if ("text" in piece) return literal(piece.text)
      if ("value" in piece) return values[piece.value] === undefined ? "" : show(values[piece.value]!, piece.value)
      return values[piece.ifPresent] === undefined ? "" : render(piece.pieces, values, show, literal)
    })
    .join("")

const asIs = (text: string): string => text

export const renderText = (template: Template, values: Values): string => render(template, values, asIs, asIs)

/** Of a template that is HTML itself. */
export const renderHtml = (template: Template, values: Values): string => render(template, values, escapeHtml, asIs)

/** A page from a template that is text: paragraphs, with keys and links as such. */
export const htmlOfText = (template: Template, values: Values, language: string): string => {
  const body = render(template, values, markedUp, escapeHtml)
  const paragraphs = body
    .trim()
    .split(/\n{2,}/)
    .map((paragraph) => `<p>${paragraph.replaceAll("\n", "<br>\n")}</p>`)
  // A link is wider than a phone.
  const style =
    "font-family: sans-serif; font-size: 16px; line-height: 1.5; color: #222; max-width: 36em; overflow-wrap: anywhere"
  return `<!doctype html>\n<html lang="${escapeHtml(language)}">\n<meta charset="utf-8">\n<body style="${style}">\n${paragraphs.join("\n")}\n</body>\n</html>\n`
}

const markedUp = (value: string, name: string): string => {
  const escaped = escapeHtml(value)
  if (name === "license_key") return `<code style="font-size: 18px">${escaped}</code>`
  return name === "link" && /^https?:/.test(value) ? `<a href="${escaped}">${escaped}</a>` : escaped
}

const entities: Values = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }

const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character]!)

/** Characters of a value: longer than any name, key or link. */
const valueMax = 2_048

/** Controls would end a line, and marks of direction would reorder the text around a name. */
export const cleanValue = (value: string): string =>
  value
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, " ")
    .trim()
    .slice(0, valueMax)
