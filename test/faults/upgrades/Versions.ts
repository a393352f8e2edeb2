/** The versions of this repository's history whose schema differs, each as the last commit with its migrations. */
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../../infra/scripts/service.ts"

export interface Version {
  readonly commit: string
  /** Its last migration. */
  readonly name: string
  /** Why its database cannot be upgraded, if so. */
  readonly refused: string | undefined
}

const git = (...args: ReadonlyArray<string>) =>
  execFileSync("git", args, { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n")
    .filter((line) => line !== "")

/** Their files' digests and names. */
const migrationsOf = (commit: string) =>
  git("ls-tree", `${commit}:schema/migrations`).filter((line) => line.endsWith(".sql"))

const nameOf = (migration: string) => migration.slice(migration.indexOf("\t") + 1)

/** From 0001_initial.sql on, without the present one. */
export const versions = (): ReadonlyArray<Version> => {
  const current = migrationsOf("HEAD")
  const changes = git("log", "--first-parent", "--reverse", "--format=%H", "--", "schema/migrations")
  const last = changes.slice(1).map((commit) => git("rev-parse", `${commit}^`)[0]!)
  const found = last.map((commit) => ({ commit, migrations: migrationsOf(commit) }))
  const distinct = [...Map.groupBy(found, ({ migrations }) => migrations.join()).values()].map((same) => same.at(-1)!)
  return distinct
    .filter(({ migrations }) => nameOf(migrations[0] ?? "") === nameOf(current[0]!))
    .map(({ commit, migrations }) => {
      const isPrefix = migrations.every((name, index) => name === current[index])
      const refused = isPrefix ? undefined : "a migration was later changed, or added before one of its own"
      return { commit, name: nameOf(migrations.at(-1)!), refused }
    })
}

/** The version's files, with the packages of this one. */
export const checkOut = (commit: string, folder: string): void => {
  mkdirSync(folder, { mode: 0o755 })
  execFileSync("bash", ["-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, root, commit, folder])
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
}
