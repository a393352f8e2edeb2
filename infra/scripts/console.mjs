/**
 * Builds the web pages, the console's and the customer's, each into a folder of its own: `node infra/scripts/console.mjs [<folder>]`,
 * by default into node_modules/.cache, from where the service serves them. `--serve <address of a service> [portal]` serves the
 * console, or the customer's page, from the sources instead, for work on it.
 *
 * `npm ci` runs it (`prepare`), on a machine's own Node, which may be too old for TypeScript.
 */
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const path = (relative) => fileURLToPath(new URL(`../../${relative}`, import.meta.url))
const [first, address, served = "console"] = process.argv.slice(2)
const out = first ?? path("node_modules/.cache")

const vite = await import("vite").catch(() => undefined)
if (vite === undefined) {
  console.error("The web pages are not built: that needs the development dependencies (npm ci without --omit=dev).")
  process.exit(0)
}

// Another value gives the slower and larger React of development.
process.env.NODE_ENV = "production"

const configOf = (page) => ({
  configFile: false,
  mode: "production",
  root: path(`src/clients/${page}`),
  base: `/${page}/`,
  // Scripts name each other by relative addresses: only the page knows the path at which the service is.
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === "html" ? undefined : { relative: true }) },
  logLevel: "error",
  build: {
    outDir: join(out, page),
    emptyOutDir: true,
    // Each asset is a file: the page's security policy allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "esnext",
    chunkSizeWarningLimit: 2_000
  }
})

if (first === "--serve") {
  const paths = ["/api", "/console/sign-in.json", "/portal/api", "/portal/colors.css", "/portal/logo"]
  const server = await vite.createServer({
    ...configOf(served),
    server: { port: 24_020, proxy: Object.fromEntries(paths.map((each) => [each, { target: address }])) }
  })
  await server.listen()
  server.printUrls()
} else {
  for (const page of ["console", "portal"]) await vite.build(configOf(page))
  // The licenses of the font (SIL OFL) and of the QR codes (MIT) go wherever those go.
  const font = fileURLToPath(import.meta.resolve("@fontsource-variable/inter/LICENSE"))
  copyFileSync(font, join(out, "console/inter-license.txt"))
  copyFileSync(path("node_modules/qr/LICENSE-MIT"), join(out, "portal/qr-license.txt"))
}
