/** The server half of the customer's page. Without LICENSING_PORTAL it has no routes. */
import { Effect, Layer } from "effect"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { Settings } from "../../platform/config/Config.ts"
import { PortalSession } from "./PortalAccess.ts"
import { PortalActions } from "./PortalActions.ts"
import { PortalApi } from "./PortalApi.ts"
import { PortalCookie } from "./PortalCookie.ts"
import { PortalLicenses } from "./PortalLicenses.ts"
import { PortalLinks } from "./PortalLinks.ts"
import { PortalSignIns } from "./PortalSignIns.ts"

const openHttp = operationGroup(
  PortalApi,
  "open",
  Effect.fn(function* (handlers) {
    const signIns = yield* PortalSignIns
    const cookie = yield* PortalCookie
    const links = yield* PortalLinks
    const { portalContact, portalLogo, portalTitle } = yield* Settings
    const facts = {
      has_logo: portalLogo !== undefined,
      has_mail: links.isOn,
      ...(portalTitle !== undefined && { title: portalTitle }),
      ...(portalContact !== undefined && { contact: portalContact })
    }
    const begin = ({ session, token }: { readonly session: Session; readonly token: string }) =>
      Effect.as(cookie.set(token), presented(session))
    return handlers.handleAll({
      page: () =>
        Effect.map(cookie.session, (session) => ({ ...facts, ...(isOn(session) && { session: presented(session) }) })),
      signInByKey: ({ payload }) => Effect.flatMap(signIns.byKey(payload.license_key), begin),
      requestLink: ({ payload }) => links.request(payload),
      signInByLink: ({ payload }) => Effect.flatMap(signIns.byLink(payload.token), begin)
    })
  })
)

const sessionsHttp = operationGroup(
  PortalApi,
  "sessions",
  Effect.fn(function* (handlers) {
    const cookie = yield* PortalCookie
    const licenses = yield* PortalLicenses
    const actions = yield* PortalActions
    return handlers.handleAll({
      signOut: () => cookie.clear,
      licenses: ({ query }) => Effect.flatMap(PortalSession, ({ owner }) => licenses.list(owner, query)),
      license: ({ params }) => Effect.flatMap(PortalSession, ({ owner }) => licenses.get(owner, params.license_id)),
      deactivate: ({ params }) =>
        Effect.flatMap(PortalSession, ({ owner }) => actions.deactivate(owner, params.license_id, params.device_id)),
      mailKey: ({ params }) => Effect.flatMap(PortalSession, ({ owner }) => actions.mailKey(owner, params.license_id)),
      offline: ({ params, payload }) =>
        Effect.flatMap(PortalSession, ({ owner }) => actions.exchange(owner, params.license_id, payload))
    })
  })
)

type Session = PortalSession["Service"]

const isOn = (session: Session | "ended" | undefined): session is Session => typeof session === "object"

const presented = ({ expiresAt, owner }: Session) => ({
  kind: owner.kind,
  expires_at: expiresAt,
  ...(owner.kind === "license" && { license_id: owner.licenseId })
})

export const PortalHttp = Layer.mergeAll(openHttp, sessionsHttp)
