/** Report exports: workers, downloads, ledger rows to export, and a reader of PDF files. */

import { inflateSync } from "node:zlib"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ExportWorker } from "../../../src/insight/reports/exports/ExportWorker.ts"
import { ReportsDatabase } from "../../../src/insight/reports/model/ReportsDatabase.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import type { MeteredLicense } from "../http/IssuedLicenses.ts"
import { TestServer } from "../http/TestServer.ts"
import type { Database } from "./Database.ts"

export const exportsPath = "/api/v1/reports/exports"

export const download = (id: string, headers = {}) =>
  Effect.flatMap(TestServer, ({ send }) => send({ path: `${exportsPath}/${id}/download`, headers }))

/** The export worker of a new node. */
export const makeWorker = Effect.map(
  Layer.build(Layer.fresh(ExportWorker.layer.pipe(Layer.provide(ReportsDatabase.layer)))),
  (context) => Context.get(context, ExportWorker)
)

/** The same of a node with a replica. */
export const makeWorkerOver = (reportsDatabaseUrl: Database["Service"]["url"]) =>
  Effect.provide(makeWorker, Settings.layerTest({ reportsDatabaseUrl }))

/** Runs an effect of a worker with the service's clock ahead by this many seconds. */
export const at =
  (seconds: number) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.provide(
      work,
      RehearsalClock.layer(() => seconds * 1_000)
    )

/**
 * Inserts ledger rows as if the license had consumed its first feature that often: now, or once an hour
 * from an instant on.
 */
export const writeLedger = Effect.fnUntraced(function* (
  { license }: MeteredLicense,
  count: number,
  { amount = 1, from }: { readonly amount?: number; readonly from?: string } = {}
) {
  const sql = yield* SqlClient.SqlClient
  const occurredAt = from === undefined ? sql`now()` : sql`${from}::timestamptz + n * interval '1 hour'`
  yield* sql`
    WITH counter AS (UPDATE event_sequence SET ledger_last = ledger_last + ${count} RETURNING ledger_last - ${count} AS base)
    INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, actor_type, actor_id,
      request_id, occurred_at)
    SELECT base + n, a.license_id, a.feature_id, 'consume', 'row-' || n, ${amount}::int, ${amount}::int * n, 'license',
      a.license_id, 'req_test', ${occurredAt}
    FROM counter, generate_series(1, ${count}::int) AS n,
      (SELECT * FROM license_features WHERE license_id = ${license.id} ORDER BY feature_id LIMIT 1) AS a`
})

/** A text on a page; its position is in points from the lower left corner. */
interface Written {
  readonly text: string
  readonly x: number
  readonly y: number
  /** The position of its end. */
  readonly right: number
}

export interface PdfPage {
  readonly written: ReadonlyArray<Written>
  /** All texts, one on each line. */
  readonly text: string
}

interface Stored {
  readonly dictionary: string
  readonly stream: () => string
}

export const readPdf = (bytes: Uint8Array): ReadonlyArray<PdfPage> => {
  const file = Buffer.from(bytes)
  const objects = readObjects(file)
  const trailer = file.toString("latin1", file.lastIndexOf("trailer"))
  const catalog = objectAt(objects, reference(trailer, "Root"))
  const tree = objectAt(objects, reference(catalog.dictionary, "Pages"))
  const kids = references(/\/Kids \[([^\]]*)\]/.exec(tree.dictionary)?.[1] ?? "")
  if (Number(/\/Count (\d+)/.exec(tree.dictionary)?.[1]) !== kids.length) throw new Error("the page tree miscounts")
  return kids.map((kid) => readPage(objects, objectAt(objects, kid)))
}

/** The objects by number, at the offsets of the cross-reference table. */
const readObjects = (file: Buffer): ReadonlyMap<number, Stored> => {
  const table = Number(/startxref\n(\d+)\n%%EOF/.exec(file.toString("latin1", file.length - 64))?.[1])
  const [head = "", ...entries] = file.toString("latin1", table).split("\n").slice(1)
  const count = Number(head.split(" ")[1])
  return new Map(
    entries.slice(1, count).map((entry, index) => {
      const at = Number(entry.slice(0, 10))
      const number = index + 1
      if (!file.toString("latin1", at, at + 20).startsWith(`${number} 0 obj\n`)) throw new Error(`no object ${number}`)
      return [number, readObject(file, at)] as const
    })
  )
}

const readObject = (file: Buffer, at: number): Stored => {
  const end = file.indexOf("\nendobj", at)
  const streamAt = file.indexOf("\nstream\n", at)
  const hasStream = streamAt >= 0 && streamAt < end
  const dictionary = file.toString("latin1", at, hasStream ? streamAt : end)
  const length = Number(/\/Length (\d+)/.exec(dictionary)?.[1])
  const stream = () => inflateSync(file.subarray(streamAt + 8, streamAt + 8 + length)).toString("latin1")
  return { dictionary, stream }
}

const objectAt = (objects: ReadonlyMap<number, Stored>, number: number): Stored => {
  const found = objects.get(number)
  if (found === undefined) throw new Error(`no object ${number}`)
  return found
}

const reference = (dictionary: string, name: string): number =>
  Number(new RegExp(`/${name} \\[?(\\d+) 0 R`).exec(dictionary)?.[1])

const references = (text: string): ReadonlyArray<number> =>
  Array.from(text.matchAll(/(\d+) 0 R/g), ([, number]) => Number(number))

interface Font {
  readonly characters: ReadonlyArray<string>
  readonly widths: ReadonlyArray<number>
}

const readFont = (objects: ReadonlyMap<number, Stored>, { dictionary }: Stored): Font => {
  const descendant = objectAt(objects, reference(dictionary, "DescendantFonts")).dictionary
  if (!objectAt(objects, reference(descendant, "FontDescriptor")).dictionary.includes("/FontFile")) {
    throw new Error("a font is not in the file")
  }
  const map = objectAt(objects, reference(dictionary, "ToUnicode")).stream()
  const characters = Array.from(map.matchAll(/<\w+> <\w+> \[([^\]]*)\]/g), ([, list]) =>
    Array.from(list!.matchAll(/<([\w ]*)>/g), ([, hex]) =>
      Buffer.from(hex!.replaceAll(" ", ""), "hex").swap16().toString("utf16le")
    )
  ).flat()
  const widths = (/\/W \[0 \[([^\]]*)\]/.exec(descendant)?.[1] ?? "").split(" ").map(Number)
  return { characters, widths }
}

const readPage = (objects: ReadonlyMap<number, Stored>, { dictionary }: Stored): PdfPage => {
  const resources = objectAt(objects, reference(dictionary, "Resources")).dictionary
  const fonts = new Map(
    Array.from(
      resources.matchAll(/\/(F\d+) (\d+) 0 R/g),
      ([, name, number]) => [name!, readFont(objects, objectAt(objects, Number(number)))] as const
    )
  )
  const content = objectAt(objects, reference(dictionary, "Contents")).stream()
  const written = Array.from(content.matchAll(/BT\n([\s\S]*?)ET/g), ([, block]) => readText(block!, fonts))
  return { written, text: written.map(({ text }) => text).join("\n") }
}

const readText = (block: string, fonts: ReadonlyMap<string, Font>): Written => {
  const [, x, y] = /1 0 0 1 (\S+) (\S+) Tm/.exec(block) ?? []
  const [, name, size] = /\/(F\d+) (\S+) Tf/.exec(block) ?? []
  const { characters, widths } = fonts.get(name!)!
  let [text, width] = ["", 0]
  for (const [, hex, shift] of block.matchAll(/<([0-9a-f]*)>|(-?\d+(?:\.\d+)?)(?=[ \]])/g)) {
    for (const code of hex?.match(/.{4}/g) ?? []) {
      text += characters[Number.parseInt(code, 16)]
      width += widths[Number.parseInt(code, 16)] ?? Number.NaN
    }
    // Numbers before the first text belong to other operators.
    if (shift !== undefined && text !== "") width -= Number(shift)
  }
  return { text, x: Number(x), y: Number(y), right: Number(x) + (width * Number(size)) / 1_000 }
}
