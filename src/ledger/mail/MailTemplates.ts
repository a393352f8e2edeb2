/**
 * The templates of all mails and languages: those of the service, and those of the operator's folder, which replace or add to
 * them. `<mail>.<language>.txt` has the subject in its first line; `<mail>.<language>.html` is optional. All are read and checked
 * when the service starts, so that a faulty one stops the start and no mail.
 */
import { fileURLToPath } from "node:url"
import { Context, Effect, FileSystem, Layer, Path, Result, Schema } from "effect"
import { Settings } from "../../platform/config/Config.ts"
import { systemReason } from "../../platform/config/SystemErrors.ts"
import { licenseValues, type MailContent, type MailKind, mailValues } from "./QueuedMail.ts"
import {
  cleanValue,
  htmlOfText,
  parseTemplate,
  renderHtml,
  renderText,
  type Template,
  type Values
} from "./Template.ts"

const ownFolder = fileURLToPath(new URL("../../../schema/mails", import.meta.url))
/** Bytes of a template, and files in the operator's folder: a hundred languages. */
const templateBytesMax = 65_536
const filesMax = 1_000

class TemplatesUnusable extends Schema.TaggedError<TemplatesUnusable>()("TemplatesUnusable", {
  message: Schema.String
}) {}

export interface RenderedMail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface LanguageTemplates {
  readonly subject: Template
  readonly text: Template
  readonly html: Template | undefined
}

export class MailTemplates extends Context.Service<
  MailTemplates,
  { render(kind: MailKind, content: MailContent): RenderedMail }
>()("licensing/ledger/mail/MailTemplates") {
  static readonly layer = Layer.effect(
    MailTemplates,
    Effect.gen(function* () {
      const { mailLanguage, mailTemplates } = yield* Settings
      const sources = new Map(yield* readFolder(ownFolder))
      if (mailTemplates !== undefined)
        for (const [name, text] of yield* readFolder(mailTemplates)) sources.set(name, text)
      const templates = yield* parseAll(sources)

      const find = (kind: MailKind, language: string) => {
        const tags = [...tagsOf(language), ...tagsOf(mailLanguage)]
        const found = tags.find((tag) => templates.has(`${kind}.${tag}`)) ?? "en"
        return { language: found, ...templates.get(`${kind}.${found}`)! }
      }

      return MailTemplates.of({
        render: (kind, { to, values }) => {
          const { html, language, subject, text } = find(kind, to.language ?? mailLanguage)
          const shown = shownValues(values, language)
          return {
            subject: cleanValue(renderText(subject, shown)),
            text: renderText(text, shown),
            html: html === undefined ? htmlOfText(text, shown, language) : renderHtml(html, shown)
          }
        }
      })
    })
  )
}

/** The tag, and the shorter ones that include its language: zh-hant-tw, zh-hant, zh (RFC 4647, 3.4). */
const tagsOf = (language: string): ReadonlyArray<string> => {
  const parts = language.toLowerCase().split("-")
  return parts.map((_, index) => parts.slice(0, parts.length - index).join("-"))
}

const shownValues = (values: MailContent["values"], language: string): Values =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === "number" && name.endsWith("_at")
        ? dateFormatOf(language).format(value)
        : cleanValue(String(value))
    ])
  )

/** By language. To make one takes longer than to render the rest of a mail. */
const dateFormats = new Map<string, Intl.DateTimeFormat>()

const dateFormatOf = (language: string): Intl.DateTimeFormat => {
  const format = dateFormats.get(language) ?? new Intl.DateTimeFormat(language, { dateStyle: "long", timeZone: "UTC" })
  dateFormats.set(language, format)
  return format
}

const fileName = /^([a-z_]+)\.([a-z]{2,3}(?:-[a-z0-9]{2,8})*)\.(txt|html)$/i

/** Dates are written in the language of the template, which must not fail when a mail is sent. */
const isLanguage = (tag: string): boolean => Result.isSuccess(Result.try(() => new Intl.Locale(tag)))

const unusable = (message: string) => new TemplatesUnusable({ message: `LICENSING_MAIL_TEMPLATES: ${message}.` })

/** The files of a folder that are templates by their names. */
const readFolder = Effect.fnUntraced(
  function* (folder: string) {
    const files = yield* FileSystem.FileSystem
    const { join } = yield* Path.Path
    const names = (yield* files.readDirectory(folder)).filter((name) => /\.(txt|html)$/i.test(name))
    if (names.length > filesMax) return yield* unusable(`${folder} has more than ${filesMax} templates`)
    return yield* Effect.forEach(names, (name) =>
      Effect.gen(function* () {
        const [, , language] = fileName.exec(name) ?? []
        if (language === undefined) return yield* unusable(`${name} is not named like license_key.fr.txt`)
        if (!isLanguage(language))
          return yield* unusable(`${language} in ${name} is not a language tag like fr or pt-br`)
        if ((yield* files.stat(join(folder, name))).size > templateBytesMax)
          return yield* unusable(`${name} is larger than ${templateBytesMax} bytes`)
        return [name.toLowerCase(), (yield* files.readFileString(join(folder, name))).replaceAll("\r\n", "\n")] as const
      })
    )
  },
  (read, folder) =>
    Effect.catchTag(read, "PlatformError", (error) => unusable(`${folder} cannot be read: ${systemReason(error)}`))
)

const parseAll = Effect.fnUntraced(function* (sources: ReadonlyMap<string, string>) {
  const templates = new Map<string, LanguageTemplates>()
  for (const [name, source] of sources) {
    const [, kind = "", language = "", form] = fileName.exec(name)!
    if (!Object.hasOwn(mailValues, kind)) {
      return yield* unusable(`${name} is no mail: there are ${Object.keys(mailValues).join(", ")}`)
    }
    if (form !== "txt") {
      if (sources.has(`${kind}.${language}.txt`)) continue
      return yield* unusable(`${name} needs ${kind}.${language}.txt beside it`)
    }
    const [, subject, text] = /^Subject: *([^\n]+)\n\s*\n([\s\S]+)$/.exec(source) ?? []
    if (subject === undefined || text === undefined)
      return yield* unusable(`${name} must begin with a line "Subject: …" and an empty line`)
    const html = sources.get(`${kind}.${language}.html`)
    const known = new Set<string>([...mailValues[kind as MailKind], ...licenseValues])
    const parse = (part: string) => {
      const parsed = parseTemplate(part, known)
      return typeof parsed === "string" ? unusable(`${name}: ${parsed}`) : Effect.succeed(parsed)
    }
    templates.set(`${kind}.${language}`, {
      subject: yield* parse(subject),
      text: yield* parse(text),
      html: html === undefined ? undefined : yield* parse(html)
    })
  }
  return templates
})
