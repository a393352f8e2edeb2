#!/usr/bin/env node
// The command of the package: `npx licensing-service serve`. A checkout uses `npm start`.
import { enableCompileCache } from "node:module"

enableCompileCache()
await import("../../dist/main.js")
