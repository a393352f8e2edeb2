// A temporary data folder that an embedded server's own user may pass through.
import { tmpdir } from "node:os"
import { Effect, FileSystem } from "effect"

export const folderPrefix = "licensing-test-"

export const serverFolder = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const directory = yield* files.makeTempDirectoryScoped({ directory: tmpdir(), prefix: folderPrefix })
  yield* files.chmod(directory, 0o711)
  return directory
})
