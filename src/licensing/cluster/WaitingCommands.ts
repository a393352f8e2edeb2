/**
 * The commands that wait for one owner, in the order in which they were handed over: unsent at first, then sent in an
 * epoch.
 */
import type { HandedSpan } from "../../platform/telemetry/Traces.ts"
import type { PendingCommand } from "../engine/PendingCommand.ts"
import type { HandedOver } from "./Wire.ts"
import { toWire } from "./WireCommands.ts"

export interface WaitingCommand {
  readonly licenseId: string
  readonly command: PendingCommand
  /** Undefined until it is sent. */
  epoch: string | undefined
  sentMillis: number
}

export class WaitingCommands {
  private readonly waiting = new Map<number, WaitingCommand>()
  private unsent: Array<HandedOver> = []
  private nextId = 0

  get size(): number {
    return this.waiting.size
  }

  get unsentCount(): number {
    return this.unsent.length
  }

  add(licenseId: string, command: PendingCommand, span: HandedSpan | null): void {
    const id = this.nextId++
    this.waiting.set(id, { licenseId, command, epoch: undefined, sentMillis: 0 })
    this.unsent.push(toWire(id, licenseId, command, span))
  }

  /** Undefined if the command was given up meanwhile. */
  take(id: number): WaitingCommand | undefined {
    const taken = this.waiting.get(id)
    this.waiting.delete(id)
    return taken
  }

  takeAll(): ReadonlyArray<WaitingCommand> {
    const all = Array.from(this.waiting.values())
    this.waiting.clear()
    return all
  }

  takeUnsent(): ReadonlyArray<WaitingCommand> {
    const unsent = this.unsent
    this.unsent = []
    return unsent.map(([id]) => this.take(id)!)
  }

  /** Those that were sent so long ago. */
  takeSentBefore(millis: number): ReadonlyArray<WaitingCommand> {
    const taken: Array<WaitingCommand> = []
    for (const [id, waiting] of this.waiting) {
      if (waiting.epoch === undefined || waiting.sentMillis > millis) break
      this.waiting.delete(id)
      taken.push(waiting)
    }
    return taken
  }

  /** Marks the unsent ones as sent in the epoch, and returns them for the wire. */
  send(epoch: string, now: number): ReadonlyArray<HandedOver> {
    const sent = this.unsent
    this.unsent = []
    for (const [id] of sent) {
      const waiting = this.waiting.get(id)!
      waiting.epoch = epoch
      waiting.sentMillis = now
    }
    return sent
  }

  /** The epochs in which they were sent. */
  epochs(): ReadonlySet<string> {
    return new Set(Array.from(this.waiting.values(), ({ epoch }) => epoch!))
  }
}
