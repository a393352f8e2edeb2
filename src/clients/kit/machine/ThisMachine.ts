/** What is asked of the machine that this runs on. */
import { execFile } from "node:child_process"
import { open } from "node:fs/promises"
import { hostname } from "node:os"
import process from "node:process"
import type { Machine } from "./Machine.ts"

const bytesMax = 65_536

export const thisMachine: Machine = {
  platform: process.platform,
  read: async (path) => {
    try {
      const file = await open(path)
      try {
        const buffer = new Uint8Array(bytesMax)
        let length = 0
        // One read of a file in /proc gives at most a page.
        for (let bytes = bytesMax; bytes > 0; length += bytes) {
          bytes = (await file.read(buffer, length, bytesMax - length)).bytesRead
        }
        return new TextDecoder().decode(buffer.subarray(0, length))
      } finally {
        await file.close()
      }
    } catch {
      return undefined
    }
  },
  run: (program, args) =>
    new Promise((resolve, reject) => {
      const options = { timeout: 5_000, maxBuffer: bytesMax, windowsHide: true }
      execFile(program, [...args], options, (problem, printed) =>
        problem === null ? resolve(printed) : reject(problem)
      )
    }),
  environment: (name) => process.env[name],
  hostname
}
