/** Loaded before a program: prints the address of each module that the program loads. */
import { registerHooks } from "node:module"

registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const resolved = nextResolve(specifier, context)
    process.stderr.write(`${resolved.url}\n`)
    return resolved
  }
})
