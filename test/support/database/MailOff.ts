/** A node that sends no mail. */
import { Effect, Layer } from "effect"
import { Mail } from "../../../src/ledger/mail/Mail.ts"

export const mailOff = Layer.succeed(
  Mail,
  Mail.of({
    isOn: false,
    admit: () => Effect.die("no mail is asked for"),
    queue: () => Effect.void,
    rowsOf: () => Effect.succeed([])
  })
)
