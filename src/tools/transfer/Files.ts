/** Files of lines, read and written piece by piece. */
import { Config, Effect, Exit, FileSystem, Path, type PlatformError, Stream } from "effect"
import { systemReason } from "../../platform/config/SystemErrors.ts"
import { lineMax, TransferRefused } from "./Lines.ts"

const cannotRead = (name: string) => (error: PlatformError.PlatformError) =>
  new TransferRefused({ message: `${name} cannot be read: ${systemReason(error)}` })

/** A path is the caller's: npm and infra/licensing change to the project's folder, and name the caller's in INIT_CWD. */
export const resolvePath = Effect.fnUntraced(function* (name: string) {
  const paths = yield* Path.Path
  const folder = yield* Effect.orDie(Config.String("INIT_CWD").pipe(Config.withDefault(".")))
  return paths.resolve(folder, name)
})

/** The bytes of a file in pieces. */
export const bytesOf = (path: string, offset = 0) =>
  Stream.unwrap(Effect.map(FileSystem.FileSystem, (files) => files.stream(path, { chunkSize: 262_144, offset }))).pipe(
    Stream.mapError(cannotRead(path))
  )

/** Passes the lines of a file, or some of them, with the number of the first, in pieces. */
export const forEachLines = <E, R>(
  path: string,
  use: (lines: ReadonlyArray<string>, first: number) => Effect.Effect<void, E, R>,
  { line, offset }: LineStart = { line: 1, offset: 0 },
  last = Number.POSITIVE_INFINITY
) => {
  let first = line
  return bytesOf(path, offset).pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.take(last - line + 1),
    Stream.runForEachArray((lines): Effect.Effect<void, E | TransferRefused, R> => {
      const long = lines.findIndex((line) => line.length > lineMax)
      if (long >= 0) {
        return Effect.fail(new TransferRefused({ message: `${path}: line ${first + long} is too long.` }))
      }
      const from = first
      first += lines.length
      return use(lines, from)
    })
  )
}

export interface LineStart {
  readonly line: number
  /** The number of bytes before it. */
  readonly offset: number
}

const lineFeed = 10

/** Where a line begins. The bytes before it are only counted, from a line before it, which takes a second for a gigabyte. */
export const startOfLine = Effect.fnUntraced(function* (
  path: string,
  line: number,
  from: LineStart = { line: 1, offset: 0 }
) {
  let { line: at, offset } = from
  yield* bytesOf(path, offset).pipe(
    Stream.takeUntil((bytes) => {
      for (let from = 0; at < line; ) {
        const found = bytes.indexOf(lineFeed, from)
        if (found < 0) {
          offset += bytes.length - from
          return false
        }
        offset += found + 1 - from
        from = found + 1
        at++
      }
      return true
    }),
    Stream.runDrain
  )
  return { line, offset } satisfies LineStart
})

/**
 * Writes lines to a new file that only its owner can read, under another name until it is complete. Returns what `write` does.
 */
export const writeLines = Effect.fnUntraced(function* <A, E, R>(
  name: string,
  write: (emit: (lines: ReadonlyArray<string>) => Effect.Effect<void, TransferRefused>) => Effect.Effect<A, E, R>
) {
  const files = yield* FileSystem.FileSystem
  const path = yield* resolvePath(name)
  if (yield* Effect.orElseSucceed(files.exists(path), () => true)) {
    return yield* new TransferRefused({ message: `${name} exists already: name a new file.` })
  }
  const cannotWrite = (error: PlatformError.PlatformError) =>
    new TransferRefused({ message: `${name} cannot be written: ${systemReason(error)}` })
  const partial = `${path}.partial`
  const encoder = new TextEncoder()
  const result = yield* Effect.gen(function* () {
    // A new file, so that no link is followed and no other export writes it, readable only by its owner.
    const file = yield* files.open(partial, { flag: "wx", mode: 0o600 }).pipe(
      Effect.catchReason("PlatformError", "AlreadyExists", () =>
        Effect.fail(
          new TransferRefused({
            message: `${name}.partial exists: another export is writing it, or was killed. If none runs, remove it.`
          })
        )
      ),
      Effect.catchTag("PlatformError", (error) => Effect.fail(cannotWrite(error)))
    )
    yield* Effect.addFinalizer((exit) =>
      Exit.isFailure(exit) ? Effect.ignore(files.remove(partial, { force: true })) : Effect.void
    )
    const result = yield* write((lines) =>
      lines.length === 0
        ? Effect.void
        : Effect.mapError(file.writeAll(encoder.encode(`${lines.join("\n")}\n`)), cannotWrite)
    )
    yield* Effect.mapError(file.sync, cannotWrite)
    return result
  }).pipe(Effect.scoped)
  yield* Effect.mapError(files.rename(partial, path), cannotWrite)
  return result
})
