/** The devices and floating seats of the simulator's license. */

export interface Device {
  readonly id: string
  readonly kind: "hardware" | "container"
  readonly status: string
  readonly slot: boolean
  readonly activated: number | null
  readonly validated: number | null
  /** Until when the device was promised its slot. */
  readonly due: number | null
  /** When its latest offline envelope expires. */
  readonly offline: number | null
  /** Until when the slot of the deactivated device stays taken. */
  readonly held: number | null
}

export interface Lease {
  readonly id: string
  readonly device: string
  readonly status: string
  readonly ends: number
  /** Until when the seat was borrowed. */
  readonly borrowed: number | null
}

/** Whether a seat is borrowed at an instant. */
export const isBorrowed = ({ borrowed, status }: Lease, now: number): boolean =>
  status === "live" && now < (borrowed ?? 0)
