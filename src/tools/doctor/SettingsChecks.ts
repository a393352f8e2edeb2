/** Finds settings that are valid but probably unintended. */
import { Effect, Layer } from "effect"
import { IpNetwork } from "effect/net"
import { configuredLogo } from "../../edge/documents/publishing/PortalLogo.ts"
import { configuredFont } from "../../insight/reports/pdf/PdfPrinting.ts"
import { MailTemplates } from "../../ledger/mail/MailTemplates.ts"
import { Settings, unknownSettings } from "../../platform/config/Config.ts"
import { fail, findingsOf } from "./Check.ts"

export const checkSettings = Effect.gen(function* () {
  const settings = yield* Settings
  const { ok, warn } = findingsOf("settings")
  const findings = [
    ...(yield* unknownSettings).flatMap((line) =>
      warn(
        line.replace(/: .*/, ""),
        line.replace(/^.*?: /, "").replace(/^./, (letter) => letter.toUpperCase())
      )
    ),
    ...(settings.clockOffsetSeconds > 0
      ? warn(
          `The service's clock is ${settings.clockOffsetSeconds} s ahead`,
          "Unset LICENSING_CLOCK_OFFSET_SECONDS unless this is a rehearsal on a copy."
        )
      : []),
    ...(settings.webhookAllowLocal
      ? warn("Webhooks may use http and reach this machine", "Unset LICENSING_WEBHOOK_ALLOW_LOCAL in production.")
      : []),
    ...(!isLoopback(settings.host) && settings.metricsToken === undefined
      ? warn(
          "Everyone who reaches the port can read /metrics",
          "Set LICENSING_METRICS_TOKEN, or keep /metrics from the outside at the balancer."
        )
      : []),
    ...(yield* faultOf(configuredFont, "LICENSING_REPORTS_FONT")),
    ...(yield* faultOf(configuredLogo, "LICENSING_PORTAL_LOGO")),
    ...(yield* faultOf(Effect.scoped(Layer.build(Layer.fresh(MailTemplates.layer))), "LICENSING_MAIL_TEMPLATES"))
  ]
  return findings.length === 0 ? ok("All settings are valid") : findings
})

const faultOf = <A, E extends { readonly message: string }, R>(read: Effect.Effect<A, E, R>, setting: string) =>
  Effect.match(read, {
    onFailure: (error) => [fail("settings", error.message.replace(/\.$/, ""), `Correct or unset ${setting}.`)],
    onSuccess: () => []
  })

const isLoopback = (host: string): boolean => /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host)

export const checkClientAddress = Effect.gen(function* () {
  const { baseUrl, trustedProxies } = yield* Settings
  const { ok, warn } = findingsOf("client address")
  if (trustedProxies.length > 0) {
    const networks = trustedProxies.map(IpNetwork.format)
    const everyone = networks.filter((network) => network.endsWith("/0"))
    if (everyone.length > 0) {
      return warn(
        `Every caller may state its own address: ${everyone.join(", ")} is trusted`,
        "Put only the balancer's addresses into LICENSING_TRUSTED_PROXIES."
      )
    }
    return ok(`Read from X-Forwarded-For of ${networks.join(", ")}`)
  }
  if (baseUrl?.startsWith("https:") === true) {
    return warn(
      "LICENSING_BASE_URL is https, so a proxy is in front, and all callers have its address",
      "Put the proxy's address into LICENSING_TRUSTED_PROXIES: until then all callers share the limits of one."
    )
  }
  return ok("The peer of the connection: no proxy is trusted")
})
