/**
 * Builds the console: `node infra/scripts/console.mjs [<folder>]`, by default into node_modules/.cache/console, from where the
 * service serves it. `--serve <address of a service>` serves it from the sources instead, for work on the console.
 *
 * `npm ci` runs it (`prepare`), on a machine's own Node, which may be too old for TypeScript.
 */
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const path = (relative) => fileURLToPath(new URL(`../../${relative}`, import.meta.url))
const [first, address] = process.argv.slice(2)
const out = first ?? path("node_modules/.cache/console")

const vite = await import("vite").catch(() => undefined)
if (vite === undefined) {
  console.error("The console is not built: that needs the development dependencies (npm ci without --omit=dev).")
  process.exit(0)
}

// Another value gives the slower and larger React of development.
process.env.NODE_ENV = "production"

const config = {
  configFile: false,
  mode: "production",
  root: path("src/clients/console"),
  base: "/console/",
  // Scripts name each other by relative addresses: only the page knows the path at which the service is.
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === "html" ? undefined : { relative: true }) },
  logLevel: "error",
  build: {
    outDir: out,
    emptyOutDir: true,
    // Each asset is a file: the page's security policy allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "esnext",
    chunkSizeWarningLimit: 2_000
  }
}

if (first === "--serve") {
  const server = await vite.createServer({
    ...config,
    server: { port: 24_020, proxy: { "/api": { target: address }, "/console/sign-in.json": { target: address } } }
  })
  await server.listen()
  server.printUrls()
} else {
  await vite.build(config)
  // The font's license (SIL OFL) goes wherever the font goes.
  copyFileSync(fileURLToPath(import.meta.resolve("@fontsource-variable/inter/LICENSE")), join(out, "inter-license.txt"))
}
