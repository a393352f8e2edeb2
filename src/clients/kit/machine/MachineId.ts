/**
 * A fingerprint of this machine, from what its operating system keeps for this purpose: the same for all users, also after updates. For
 * Node, Deno, Bun and the main process of Electron; browsers have BrowserMachineId.ts.
 */
import { execFile } from "node:child_process"
import { open } from "node:fs/promises"
import { hostname } from "node:os"
import process from "node:process"
import { type Machine, machineIdOf } from "./Machine.ts"
import type { MachineIdOptions } from "./MachineText.ts"

export type { MachineIdOptions } from "./MachineText.ts"

/** 64 hex characters. Rejects with a sentence that says what to do if the machine has no id. */
export const machineId = (options: MachineIdOptions): Promise<string> => machineIdOf(options, thisMachine)

const bytesMax = 65_536

const thisMachine: Machine = {
  platform: process.platform,
  read: async (path) => {
    try {
      const file = await open(path)
      try {
        const { buffer, bytesRead } = await file.read({ buffer: new Uint8Array(bytesMax) })
        return new TextDecoder().decode(buffer.subarray(0, bytesRead))
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
