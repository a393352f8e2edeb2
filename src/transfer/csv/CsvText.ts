/** Parses CSV by RFC 4180, piece by piece: quoted fields may contain commas, quotes and line breaks. */

/** The fields of a record, and the line that it begins on, from 1. */
export interface CsvRecord {
  readonly line: number
  readonly fields: ReadonlyArray<string>
}

/** Characters of the longest record. */
const recordMax = 262_144

/** Records from pieces of text. A fault of the syntax is a text in place of the fields. */
export const makeCsvParser = (onRecord: (record: CsvRecord) => void) => {
  let fields: Array<string> = []
  let field = ""
  let [line, startedOn] = [1, 1]
  let state: "start" | "plain" | "quoted" | "quote" = "start"
  let size = 0
  let fault: string | undefined

  const endField = () => {
    fields.push(field)
    field = ""
    state = "start"
  }
  const endRecord = () => {
    endField()
    // An empty line is no record.
    if (fields.length > 1 || fields[0] !== "") onRecord({ line: startedOn, fields })
    fields = []
    size = 0
  }
  const fail = (message: string) => {
    fault ??= `line ${line}: ${message}`
  }

  const take = (character: string) => {
    if (++size > recordMax) return fail(`the record is longer than ${recordMax} characters: is a quote not closed?`)
    if (state === "quoted") {
      if (character === '"') state = "quote"
      else field += character
    } else if (character === ",") endField()
    else if (character === "\n") endRecord()
    else if (character === "\r") return
    else if (character === '"' && state !== "plain") {
      if (state === "quote") field += '"'
      state = "quoted"
    } else if (state === "quote") fail("text follows a closing quote: double the quotes within a field.")
    else {
      field += character
      state = "plain"
    }
  }

  return {
    push: (text: string) => {
      for (const character of text) {
        if (fault !== undefined) return
        take(character)
        if (character === "\n") {
          line++
          if (fields.length === 0 && state === "start") startedOn = line
        }
      }
    },
    end: () => {
      if (state === "quoted") fail(`the quote of the record from line ${startedOn} is not closed.`)
      else if (field !== "" || fields.length > 0 || state === "quote") endRecord()
    },
    fault: () => fault
  }
}
