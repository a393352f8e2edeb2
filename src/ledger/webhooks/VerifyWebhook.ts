/**
 * For receivers: verifies that a delivery is genuine. This file imports only `node:crypto`, so that it can be copied
 * into any project on Node, Deno or Bun.
 *
 * What must stay true: it verifies the raw bytes of the request, never re-serialized JSON; it compares signatures in
 * constant time; and it refuses timestamps outside the tolerance, so that an intercepted delivery cannot be replayed
 * later.
 */
import { createHmac, timingSafeEqual } from "node:crypto"

/** Seconds by which a delivery's timestamp may differ from the receiver's clock. */
export const toleranceSecondsDefault = 300

export interface WebhookRequest {
  /** The endpoint's secret; during a rotation, the old and the new one. */
  readonly secret: string | ReadonlyArray<string>
  /** The request's headers: names in any case, or an object with `get`, as `Request.headers` of fetch. */
  readonly headers:
    | { get(name: string): string | null }
    | { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /** The raw body, not parsed. */
  readonly body: Uint8Array | string
  readonly toleranceSeconds?: number
  /** Seconds since the Unix epoch; by default this machine's clock. */
  readonly nowSeconds?: number
}

/** A genuine delivery. The same `deliveryId` may arrive again: process each one once. */
export interface VerifiedWebhook {
  readonly valid: true
  readonly deliveryId: string
  readonly sequence: number
  readonly type: string
  /** The parsed body: `{id, type, sequence, created_at, data}`. */
  readonly event: {
    readonly id: string
    readonly type: string
    readonly sequence: number
    readonly created_at: string
    readonly data: { readonly [name: string]: unknown }
  }
}

export interface RefusedWebhook {
  readonly valid: false
  readonly reason: "headers_missing" | "signature_malformed" | "too_old_or_new" | "signature_wrong"
}

/** Verifies a delivery by its X-Service-Signature. */
export const verifyWebhook = (request: WebhookRequest): VerifiedWebhook | RefusedWebhook => {
  const header = headerOf(request.headers)
  const deliveryId = header("x-service-delivery-id")
  const signature = header("x-service-signature")
  if (deliveryId === undefined || signature === undefined) return { valid: false, reason: "headers_missing" }
  const parts = signature.split(",").map((part) => part.trim().split("=", 2) as [string, string?])
  const timestamp = parts.find(([name]) => name === "t")?.[1]
  const given = parts.flatMap(([name, value]) =>
    name === "v1" && value !== undefined ? [Buffer.from(value, "hex")] : []
  )
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp) || given.length === 0) {
    return { valid: false, reason: "signature_malformed" }
  }
  const { body, nowSeconds = Date.now() / 1_000, toleranceSeconds = toleranceSecondsDefault } = request
  if (Math.abs(nowSeconds - Number(timestamp)) > toleranceSeconds) return { valid: false, reason: "too_old_or_new" }
  const secrets = typeof request.secret === "string" ? [request.secret] : request.secret
  const wanted = secrets.map((secret) =>
    createHmac("sha256", secret).update(`${timestamp}.${deliveryId}.`).update(body).digest()
  )
  const matches = wanted.some((one) =>
    given.some((other) => one.length === other.length && timingSafeEqual(one, other))
  )
  if (!matches) return { valid: false, reason: "signature_wrong" }
  const event: VerifiedWebhook["event"] = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body))
  return { valid: true, deliveryId, sequence: event.sequence, type: event.type, event }
}

const headerOf =
  (headers: WebhookRequest["headers"]) =>
  (name: string): string | undefined => {
    if (typeof headers["get"] === "function")
      return (headers as { get(name: string): string | null }).get(name) ?? undefined
    for (const [key, value] of Object.entries(headers)) {
      if (key.toLowerCase() === name) return typeof value === "string" ? value : (value as ReadonlyArray<string>)?.[0]
    }
    return undefined
  }
