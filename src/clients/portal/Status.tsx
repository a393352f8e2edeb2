import type { Answer } from "./Ask.ts"
import { useTexts } from "./Language.tsx"

type LicenseStatus = Answer<"GET /licenses">["data"][number]["status"]

export const Status = ({ status }: { readonly status: LicenseStatus }) => (
  <span className={`status ${status}`}>{useTexts().status[status]}</span>
)
