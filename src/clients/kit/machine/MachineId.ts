/**
 * A fingerprint of this machine, from what its operating system keeps for this purpose: the same for all users, also after updates. For
 * Node, Deno, Bun and the main process of Electron; browsers have BrowserMachineId.ts.
 */
import { machineIdOf } from "./Machine.ts"
import type { MachineIdOptions } from "./MachineText.ts"
import { thisMachine } from "./ThisMachine.ts"

export type { MachineIdOptions } from "./MachineText.ts"

/** 64 hex characters. Rejects with a sentence that says what to do if the machine has no id. */
export const machineId = (options: MachineIdOptions): Promise<string> => machineIdOf(options, thisMachine)
