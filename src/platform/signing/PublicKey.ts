/** A published signing key (contract, "Public key"). Clients verify responses with active and retired keys. */
import { Schema } from "effect"
import { Timestamp } from "../../contract/api/Timestamp.ts"

export const PublicKey = Schema.Struct({
  kid: Schema.String.annotate({ description: "The first 16 hex digits of SHA-256 over the public key bytes." }),
  algorithm: Schema.String.annotate({ description: "Ed25519" }),
  public_key: Schema.String.annotate({ description: "Base64 of the 32 Ed25519 public key bytes." }),
  status: Schema.Literals(["active", "retired"]),
  created_at: Timestamp
}).annotate({ identifier: "PublicKey" })
export type PublicKey = typeof PublicKey.Type
