/** When a license expires: on a day, never, or a term after its first use, which has not come yet. */
import { Time } from "../parts/Show.tsx"
import { lastOf, useAskEach, useMay } from "../service/Hooks.ts"

/** Types of licenses that have a term, and can be renewed. Without an expiry, it has not begun. */
const renewable: ReadonlySet<string> = new Set(["subscription", "time_limited", "trial"])

export const isRenewable = (type: string): boolean => renewable.has(type)

/** The type of a license; undefined while that is not known. */
export const useLicenseType = (policy: string): string | undefined => {
  const [asked] = useAskEach("getPolicy", useMay()("product:read") ? [{ params: { id: policy } }] : [])
  return asked && lastOf(asked)?.license_type
}

interface Props {
  readonly at: number | undefined
  /** The type of the license. */
  readonly type: string | undefined
  readonly only?: "day"
}

export const Expiry = ({ type, ...time }: Props) => (
  <Time {...time} none={type === undefined ? "–" : isRenewable(type) ? "set at first use" : "never"} />
)
