// A stand-in for a web view: its storage and events, and requests that apply CORS as browsers do. ORIGIN is the page's.
import process from "node:process"

const { ORIGIN } = process.env
const kept = new Map()
const storage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => kept.set(name, text) }
const page = {
  localStorage: storage,
  location: { origin: ORIGIN },
  document: Object.assign(new EventTarget(), { hidden: false }),
  window: new EventTarget()
}
for (const [name, value] of Object.entries(page)) Object.defineProperty(globalThis, name, { value })

const send = globalThis.fetch
const isAllowed = ({ headers }) => headers.get("access-control-allow-origin") === ORIGIN

globalThis.fetch = async (url, request) => {
  const names = Object.keys(request.headers).map((name) => name.toLowerCase())
  const asked = { "access-control-request-method": request.method, "access-control-request-headers": names.join() }
  const preflight = await send(url, { method: "OPTIONS", headers: { origin: ORIGIN, ...asked } })
  const allowed = (preflight.headers.get("access-control-allow-headers") ?? "").toLowerCase().split(/, */)
  const isPreflightAllowed = isAllowed(preflight) && names.every((name) => allowed.includes(name))
  const answer =
    isPreflightAllowed && (await send(url, { ...request, headers: { ...request.headers, origin: ORIGIN } }))
  if (!answer || !isAllowed(answer)) throw new TypeError("Failed to fetch")
  return answer
}
