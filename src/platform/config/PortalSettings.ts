/** The settings of the customer's page. */
import { ratesDefault } from "./Defaults.ts"
import { type Decode, flag, optional, pageTitle, rate, setting } from "./Setting.ts"

const color: Decode<string> = (value) => (/^#[0-9a-f]{6}$/i.test(value) ? value.toLowerCase() : undefined)

const image: Decode<string> = (value) => (/\.(svg|png|webp|jpg)$/i.test(value) ? value : undefined)

/** An e-mail address, or the address of a page. */
const contact: Decode<string> = (value) => {
  if (/^[^\s@:/?#&]+@[^\s@:/?#&]+$/.test(value)) return value
  const parsed = URL.parse(value)
  return parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username === "" ? parsed.href : undefined
}

export const portalSettings = {
  /** Whether the customer's page is served at /portal. */
  portal: setting<boolean>("LICENSING_PORTAL", "true or false", false, flag),
  /** The page's heading; unset: "Your licenses" in the reader's language. */
  portalTitle: pageTitle("LICENSING_PORTAL_TITLE"),
  /** The image beside the heading; unset: none. */
  portalLogo: optional("LICENSING_PORTAL_LOGO", "the path of an image: .svg, .png, .webp or .jpg", image),
  /** The color of buttons and links; unset: the console's. */
  portalColor: optional("LICENSING_PORTAL_COLOR", "a color as #4250d4", color),
  /** Where customers ask for help; unset: the page shows no contact. */
  portalContact: optional(
    "LICENSING_PORTAL_CONTACT",
    "an e-mail address, as help@example.com, or an http or https address",
    contact
  ),
  /** Sign-ins and requested links per address and minute. */
  ratePortal: rate("LICENSING_RATE_PORTAL", ratesDefault.portal)
}
