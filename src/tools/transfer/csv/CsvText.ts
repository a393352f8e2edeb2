/** The records of a CSV file (RFC 4180). */
import { Stream } from "effect"
import { Csv } from "effect/encoding"
import { TransferRefused } from "../Lines.ts"

/** The fields of a record, and the line that it begins on, from 1. */
export interface CsvRecord {
  readonly line: number
  readonly fields: ReadonlyArray<string>
}

/** Characters of the longest record. */
const recordMax = 262_144

/** The records of a text in pieces. An empty line is no record. */
export const csvRecords = <R>(text: Stream.Stream<string, TransferRefused, R>) =>
  Stream.suspend(() => {
    let next = 1
    return text.pipe(
      Stream.pipeThroughChannelOrFail(Csv.decodeString({ maxRecordSize: recordMax })),
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
    : `line ${line}, field ${column}: ${message}. Separate fields by commas, quote a field with quotes in it, and double these.`
