/**
 * What validate costs at least on Node: node:http reads a body and parses it, and a response of 700 bytes gets one Ed25519
 * signature. Nothing is checked, stored or counted. The management operations answer what the driver needs.
 *
 *   PORT=8090 node test/bench/baseline/bare.ts
 */
import { createHash, generateKeyPairSync, sign } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"

const { privateKey, publicKey } = generateKeyPairSync("ed25519")
const rawKey = publicKey.export({ type: "spki", format: "der" }).subarray(-32)
const kid = createHash("sha256").update(rawKey).digest("hex").slice(0, 16)

/** An entitlement with three metered features, in canonical form. */
const signed = (issued: string) =>
  `{"device_id":"dev_01M8C3DZ3EM0Z80626AESC5FJN","entitlement_version":1,"features":[${["export", "render", "sync"]
    .map((code) => `{"code":"${code}","consumed":0,"enabled":true,"quota":1000000000,"remaining":1000000000}`)
    .join(
      ","
    )}],"issued_at":"${issued}","license_id":"lic_01M8C3DZ3EM0Z80626AESC5FJN","license_type":"perpetual","next_check_at":"${issued}","status":"active"}`

const meta = (timestamp: string) => `"meta":{"request_id":"req_01M8C3DZ3EM0Z80626AESC5FJN","timestamp":"${timestamp}"}`

const send = (response: ServerResponse, body: string) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
}

const answerSigned = (response: ServerResponse) => {
  const timestamp = new Date().toISOString()
  const data = signed(timestamp)
  const value = sign(null, Buffer.from(data), privateKey).toString("base64")
  send(response, `{"data":${data},"signature":{"alg":"Ed25519","kid":"${kid}","value":"${value}"},${meta(timestamp)}}`)
}

const keys = [{ kid, algorithm: "Ed25519", public_key: rawKey.toString("base64"), status: "active" }]
const counters = { total_consumptions: 0, active_device_count: 1, times_activated: 1 }
const record = { id: "one", license: { id: "one" }, license_key: "LK-BARE", ...counters }

const answer = (request: IncomingMessage, response: ServerResponse, body: string) => {
  if (body !== "") JSON.parse(body)
  if (request.url?.startsWith("/api/v1/license/") === true) return answerSigned(response)
  const data = request.url?.endsWith("/public-keys") === true ? keys : record
  send(response, `{"data":${JSON.stringify(data)},${meta(new Date().toISOString())}}`)
}

createServer((request, response) => {
  let body = ""
  request.setEncoding("utf8")
  request.on("data", (chunk: string) => {
    body += chunk
  })
  request.on("end", () => answer(request, response, body))
}).listen(Number(process.env["PORT"] ?? 8090), "127.0.0.1")
