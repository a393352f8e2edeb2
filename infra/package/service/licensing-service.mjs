#!/usr/bin/env node
// The command of the package: `npx licensing-service serve`. A checkout uses `npm start`.
import module from "node:module"

const nodeMin = 24

if (Number.parseInt(process.versions.node, 10) < nodeMin) {
  console.error(`licensing-service needs Node ${nodeMin} or newer, and this is ${process.version}: install a newer Node.`)
  process.exit(1)
}
module.enableCompileCache()
await import("../dist/main.js")
