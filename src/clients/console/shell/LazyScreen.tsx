/**
 * Screens that are loaded when they are opened. A newer service has other files than a tab that is open since before: the reader is
 * told to reload the page, which is never left blank and never reloaded without a word, because that may sign the reader out.
 */
import { type ErrorComponentProps, Link, lazyRouteComponent as lazy, SearchParamError } from "@tanstack/react-router"
import { Cause } from "effect"
import { Fault, Heading } from "../parts/Show.tsx"
import { type Told, tell } from "../service/Failures.ts"

const notLoaded: Told = {
  message:
    "It cannot be loaded: the service was replaced by a newer version, or cannot be reached. Reload the page. " +
    "You will sign in again, unless you chose to stay signed in.",
  fields: new Map()
}

class NotLoaded extends Error {}

/** In place of a part of a screen that cannot be loaded: the rest of the screen stays. */
export const PartNotLoaded = () => <Fault told={notLoaded} />

/** In place of the router's own, which reloads the page. */
export const lazyRouteComponent: typeof lazy = (load, name) =>
  lazy(
    () =>
      load().catch(() => {
        throw new NotLoaded()
      }),
    name
  )

const notAnAddress: Told = {
  message:
    "A part of this address is not known, perhaps because it was cut or is older than the console: open the screen without it.",
  fields: new Map()
}

const toldOf = (error: unknown): Told => {
  if (error instanceof SearchParamError) return notAnAddress
  return error instanceof NotLoaded ? notLoaded : tell(Cause.fail(error))
}

export const Failed = ({ error }: ErrorComponentProps) => (
  <div className="loaded">
    <Heading title="This screen cannot be shown" />
    <Fault told={toldOf(error)} />
    <div className="row">
      {error instanceof SearchParamError ? (
        <Link to="." search={{} as never} className="button primary">
          Open the screen
        </Link>
      ) : (
        <button type="button" className="primary" onClick={() => location.reload()}>
          Reload the page
        </button>
      )}
    </div>
  </div>
)
