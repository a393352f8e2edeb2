/** The paths of the browser that tests start; undefined if this machine has none. */
import { execFile } from "node:child_process"

const pathOf = (name: string) =>
  new Promise<string | undefined>((resolve) =>
    execFile("which", [name], (failure, out) => resolve(failure === null ? out.trim() : undefined))
  )

const firstOf = (names: ReadonlyArray<string>) =>
  Promise.all(names.map(pathOf)).then((paths) => paths.find((path) => path !== undefined))

const whole = ["chromium", "chromium-browser", "google-chrome"]

/** With a user interface, though it shows none, and with cameras. */
export const wholeChromium = () => firstOf(whole)

/** Without either if possible: tests of the console take a third less CPU time. */
export const headlessChromium = () => firstOf(["chromium-headless-shell", ...whole])
