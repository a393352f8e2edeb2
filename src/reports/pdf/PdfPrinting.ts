/**
 * Makes the pdf of an export while its stored figures are read once more for their digest: the document shows those figures and
 * none looked up later. Fonts lie in the file; the operator may name one for characters that ours lack.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Context, Effect, FileSystem, Layer, Schema } from "effect"
import { Settings } from "../../config/Config.ts"
import type { ReportKind } from "../model/Filter.ts"
import { makePdfModelReader } from "./PdfReports.ts"

/** The font that the operator has named cannot be used. */
class FontRefused extends Schema.TaggedError<FontRefused>()("FontRefused", {}) {
  override get message(): string {
    return "LICENSING_REPORTS_FONT must be a TrueType or OpenType font file that can be read, or a collection with # and the name of a font in it."
  }
}

/** A document that is made of bytes as they come. */
export interface Print {
  push(bytes: Uint8Array): void
  /** The file, once all bytes are in. */
  finish(digest: string): Effect.Effect<Uint8Array>
}

interface Printable {
  readonly id: string
  readonly report_kind: ReportKind
  readonly generated_at: number
}

export class Printing extends Context.Service<
  Printing,
  {
    begin(export_: Printable): Print
  }
>()("licensing/reports/pdf/PdfPrinting") {
  static readonly layer = Layer.effect(
    Printing,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const { reportsFont } = yield* Settings
      const read = (path: string) => Effect.orDie(files.readFile(path))
      const other = yield* otherFont(files, reportsFont)

      const fonts = Effect.gen(function* () {
        const [regular, bold] = yield* Effect.all([read(ours("DejaVuSans")), read(ours("DejaVuSans-Bold"))])
        return other === undefined
          ? { regular, bold }
          : { regular, bold, other: { bytes: yield* read(other.path), name: other.name } }
      })

      return Printing.of({
        begin: ({ generated_at, id, report_kind }) => {
          const reader = makePdfModelReader(report_kind)
          return {
            push: reader.push,
            finish: Effect.fn("Printing.finish")(function* (digest: string) {
              const origin = { exportId: id, digest, generatedAt: generated_at }
              const { drawPdf } = yield* drawing
              return yield* drawPdf(reader.printed(), origin, yield* fonts)
            })
          }
        }
      })
    })
  ).pipe(Layer.provide(NodeFileSystem.layer))
}

/** What draws is 20 MB of memory, which a service that prints nothing has no use for. */
const drawing = Effect.promise(() => import("./Pdf.ts"))

/** A setting `file` or `file#name`. What it names is opened once at the start, so that a wrong one is told then. */
const otherFont = Effect.fnUntraced(function* (files: FileSystem.FileSystem, setting: string | undefined) {
  if (setting === undefined) return undefined
  const [, path = "", name] = /^(.*?)(?:#([^#/]*))?$/u.exec(setting) ?? []
  const bytes = yield* Effect.mapError(files.readFile(path), () => new FontRefused())
  const { isFont } = yield* Effect.promise(() => import("./TextRenderer.ts"))
  return isFont(bytes, name) ? { path, name } : yield* new FontRefused()
})

const ours = (name: string): string =>
  decodeURIComponent(new URL(import.meta.resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`)).pathname)
