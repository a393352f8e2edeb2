/** The records of a CSV file (RFC 4180). */
import { Effect, Option, Stream } from "effect"
import * as Csv from "effect/encoding/Csv"
import { bytesOf } from "../Files.ts"
import { TransferRefused } from "../Lines.ts"

/** The fields of a record, and the line that it begins on, from 1. */
export interface CsvRecord {
  readonly line: number
  readonly fields: ReadonlyArray<string>
}

/** Characters of the longest record. */
const recordMax = 262_144

/** Encodings that a file may have without a BOM. */
export const encodings = ["utf-8", "windows-1252"] as const
export type Encoding = (typeof encodings)[number]

const boms = [
  ["utf-8", [0xef, 0xbb, 0xbf]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]]
] as const

/** The records of a file. A BOM takes precedence over the encoding; the first line shows what separates the fields. */
export const csvFile = (path: string, encoding: Encoding) =>
  Stream.unwrap(
    Effect.map(Stream.runHead(bytesOf(path)), (first) => {
      const head = Option.getOrElse(first, () => new Uint8Array())
      const [named = encoding] = boms.find(([, bom]) => bom.every((byte, index) => head[index] === byte)) ?? []
      const separator = separatorOf(new TextDecoder(named).decode(head))
      return csvRecords(Stream.decodeText(bytesOf(path), { encoding: named }), separator)
    })
  )

const separatorOf = (text: string): string => {
  const [line = ""] = text.replaceAll(/"[^"]*"/g, "").split(/[\r\n]/, 1)
  const count = (separator: string) => line.split(separator).length
  return [";", "\t"].reduce((most, separator) => (count(separator) > count(most) ? separator : most), ",")
}

/** The records of a text in pieces. An empty line is no record. */
export const csvRecords = <R>(text: Stream.Stream<string, TransferRefused, R>, delimiter = ",") =>
  Stream.suspend(() => {
    let next = 1
    return text.pipe(
      Stream.pipeThroughChannelOrFail(Csv.decodeString({ delimiter, maxRecordSize: recordMax })),
      Stream.map((fields): CsvRecord => {
        const line = next
        next += 1 + fields.reduce((sum, field) => sum + lineBreaks(field), 0)
        return { line, fields }
      }),
      Stream.filter(({ fields }) => fields.length > 1 || fields[0] !== ""),
      Stream.catchTag("CsvError", (error) => Stream.fail(refuseRest(faultOf(error))))
    )
  })

export const refuseRest = (fault: string) => new TransferRefused({ message: `Nothing more was imported: ${fault}` })

const lineBreaks = (text: string): number => text.match(/\r\n?|\n/g)?.length ?? 0

const faultOf = ({ column, kind, line, message }: Csv.CsvError): string =>
  kind === "RecordSize"
    ? `line ${line}: the record is longer than ${recordMax} characters: is a quote not closed?`
    : `line ${line}, field ${column}: ${message}. Quote a field with quotes in it, and double these.`
