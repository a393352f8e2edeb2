/** What the system says of a file that cannot be used. */
import { type PlatformError, Predicate } from "effect"

/** The system's own words, as "EACCES: permission denied, mkdir '/data'". */
export const systemReason = ({ message, reason: { cause } }: PlatformError.PlatformError): string =>
  Predicate.isError(cause) ? cause.message : message
