/**
 * Creates the PDF of an export while the stored snapshot is read for its digest: the document shows exactly those figures. Fonts are
 * embedded in the file. The operator may configure a font for characters that the bundled fonts lack.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Context, Effect, FileSystem, Layer, Schema } from "effect"
import { Settings } from "../../../platform/config/Config.ts"
import type { ReportKind } from "../model/Filter.ts"
import { makePdfModelReader } from "./PdfReports.ts"

class FontRefused extends Schema.TaggedError<FontRefused>()("FontRefused", {}) {
  override get message(): string {
    return "LICENSING_REPORTS_FONT must be a TrueType or OpenType font file that can be read, or a collection with # and the name of a font in it."
  }
}

export interface PdfBuilder {
  push(bytes: Uint8Array): void
  finish(digest: string): Effect.Effect<Uint8Array>
}

interface PrintableExport {
  readonly id: string
  readonly report_kind: ReportKind
  readonly generated_at: number
}

export class PdfPrinting extends Context.Service<
  PdfPrinting,
  {
    begin(export_: PrintableExport): PdfBuilder
  }
>()("licensing/insight/reports/pdf/PdfPrinting") {
  static readonly layer = Layer.effect(
    PdfPrinting,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const read = (path: string) => Effect.orDie(files.readFile(path))
      const fallback = yield* configuredFont

      const fonts = Effect.gen(function* () {
        const [regular, bold] = yield* Effect.all([
          read(bundledFontPath("DejaVuSans")),
          read(bundledFontPath("DejaVuSans-Bold"))
        ])
        return fallback === undefined
          ? { regular, bold }
          : { regular, bold, fallback: { bytes: yield* read(fallback.path), name: fallback.name } }
      })

      return PdfPrinting.of({
        begin: ({ generated_at, id, report_kind }) => {
          const reader = makePdfModelReader(report_kind)
          return {
            push: reader.push,
            finish: Effect.fn("PdfPrinting.finish")(function* (digest: string) {
              const origin = { exportId: id, digest, generatedAt: generated_at }
              const { drawPdf } = yield* importRenderer
              return yield* drawPdf(reader.model(), origin, yield* fonts)
            })
          }
        }
      })
    })
  ).pipe(Layer.provide(NodeFileSystem.layer))
}

/** Imported at first use: the drawing code takes 20 MB of memory, which a service without PDF exports does not need. */
const importRenderer = Effect.promise(() => import("./Pdf.ts"))

/** The setting `file` or `file#name`, opened once: an invalid setting fails the start before anything is created. */
export const configuredFont = Effect.gen(function* () {
  const { reportsFont } = yield* Settings
  if (reportsFont === undefined) return undefined
  const [, path = "", name] = /^(.*?)(?:#([^#/]*))?$/u.exec(reportsFont) ?? []
  const bytes = yield* Effect.mapError((yield* FileSystem.FileSystem).readFile(path), () => new FontRefused())
  const { isFont } = yield* Effect.promise(() => import("./TextRenderer.ts"))
  return isFont(bytes, name) ? { path, name } : yield* new FontRefused()
}).pipe(Effect.provide(NodeFileSystem.layer))

const bundledFontPath = (name: string): string =>
  decodeURIComponent(new URL(import.meta.resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`)).pathname)
