// License checks for an application in Swift 5.7 or newer. Copy this file into the application.
//
// Apple's platforms have CryptoKit (macOS 11, iOS 14). Elsewhere it needs one package: apple/swift-crypto.
//
//   let client = Client(baseURL: url, licenseKey: key, productCode: "editor-pro", keys: keys,
//                       binding: .hardware(fingerprint))
//   let answer = try await client.activate()
//   if answer.isRefusal { ... answer.text("code") says what to do ... }
//
// Distrusted is thrown for every answer that breaks a rule of VERIFYING.md, and URLError where there is none: treat
// both as "the service was not reached".
//
// Everything below LICENSING_CHECK checks this file against the published test vectors:
//   swiftc -DLICENSING_CHECK -parse-as-library Licensing.swift -o check && ./check vectors schema/vectors
import Foundation

#if canImport(CryptoKit)
import CryptoKit
#else
import Crypto
#endif
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

private let bodyBytesMax = 1 << 20
private let clockSkewSecondsMax = 300.0
private let webhookToleranceSeconds: Int64 = 300

/// An answer that the application must not believe.
public struct Distrusted: Error {
  /// The first rule that the answer breaks.
  public let rule: String
  public let message: String
}

/// kid to public key in base64, as GET /api/v1/system/public-keys publishes them. Build them into the application.
public typealias Keys = [String: String]

/// This machine or container. The key is hashed; the request is what a request says of it.
public struct DeviceBinding: Sendable {
  public let kind: String
  public let key: String
  public let request: [String: JSON]

  public var hash: String { sha256Hex(key) }

  public static func hardware(_ fingerprint: String) -> DeviceBinding {
    DeviceBinding(kind: "hardware", key: fingerprint, request: ["fingerprint": .text(fingerprint)])
  }

  /// By at least one of cluster_id, namespace, pod_name and container_id.
  public static func container(_ ids: [String: String]) -> DeviceBinding {
    var request = ids.mapValues { JSON.text($0) }
    let key = sha256Hex(JSON.object(request).written)
    request["is_container"] = .bool(true)
    return DeviceBinding(kind: "container", key: key, request: request)
  }
}

/// What the application knows. nil is not compared.
public struct Expected: Sendable {
  public var kind: String?
  public var licenseID: String?
  public var productID: String?
  public var productCode: String?
  public var binding: DeviceBinding?
  public var nonce: String?
  /// The application's clock. Give it always: without it the times are not checked.
  public var now: Date?
  /// The highest issued_at that the application has seen and stored.
  public var highestIssuedAt: Date?

  public init() {}
}

/// The signed part of an answer: `data` of a success, or `error` of a refusal.
public struct Answer: Sendable {
  public let isRefusal: Bool
  public let content: [String: JSON]
  /// The signed bytes of the content, to decode with JSONDecoder.
  public let bytes: Data

  public func text(_ name: String) -> String? { content[name]?.text }
}

/// Returns the signed part of an answer that keeps all rules; throws Distrusted for any other.
public func judge(keys: Keys, body: Data, expected: Expected) throws -> Answer {
  let (answer, signature) = try readAnswer(body)
  try checkSignature(keys: keys, signed: answer.bytes, signature: signature)
  func check(_ rule: String, _ name: String, _ wanted: String?) throws {
    // Swift takes texts for equal that differ in their Unicode form; their bytes are not.
    guard let wanted = wanted, answer.text(name).map({ Array($0.utf8) }) != Array(wanted.utf8) else { return }
    throw Distrusted(rule: rule, message: "\(name) is not the expected one")
  }
  // A refusal grants nothing: it has no kind, no product_code and no binding.
  let grants = !answer.isRefusal
  if grants { try check("kind", "kind", expected.kind) }
  try check("license", "license_id", expected.licenseID)
  try check("product", "product_id", expected.productID)
  if grants {
    try check("product", "product_code", expected.productCode)
    try check("binding", "binding_kind", expected.binding?.kind)
    try check("binding", "binding_hash", expected.binding?.hash)
  }
  try check("nonce", "nonce", expected.nonce)
  if let now = expected.now { try checkTimes(answer, now: now, highestSeen: expected.highestIssuedAt) }
  return answer
}

private func readAnswer(_ body: Data) throws -> (Answer, [String: JSON]) {
  do {
    return try parseAnswer(body)
  } catch let problem as Malformed {
    throw Distrusted(rule: "signature", message: "the answer has not the form of a signed answer: \(problem.message)")
  }
}

private func parseAnswer(_ body: Data) throws -> (Answer, [String: JSON]) {
  let envelope = try JSONReader.members(body)
  let isRefusal = envelope["data"] == nil
  guard isRefusal == (envelope["error"] != nil), let member = envelope["data"] ?? envelope["error"] else {
    throw Malformed("an answer has either data or error")
  }
  guard case .object(let signature)? = envelope["signature"]?.value else { throw Malformed("there is no signature") }
  guard case .object(let content) = member.value else { throw Malformed("data or error is no object") }
  return (Answer(isRefusal: isRefusal, content: content, bytes: Data(member.bytes)), signature)
}

private func checkSignature(keys: Keys, signed: Data, signature: [String: JSON]) throws {
  guard signature["alg"]?.text == "Ed25519" else {
    throw Distrusted(rule: "signature", message: "the algorithm is not Ed25519")
  }
  guard let kid = signature["kid"]?.text, let published = keys[kid] else {
    throw Distrusted(rule: "kid", message: "the signing key is not one that the application trusts")
  }
  guard let value = strictBase64(signature["value"]?.text),
    let bytes = strictBase64(published),
    let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes),
    key.isValidSignature(value, for: signed)
  else {
    throw Distrusted(rule: "signature", message: "the signature is not valid")
  }
}

private func checkTimes(_ answer: Answer, now: Date, highestSeen: Date?) throws {
  let issuedAt = try instant(answer, "issued_at")
  if now < max(issuedAt, highestSeen ?? issuedAt) - clockSkewSecondsMax {
    let message = "the clock is more than five minutes behind an instant that the service has signed"
    throw Distrusted(rule: "times", message: message)
  }
  let ends = ["offline": "offline_expires_at", "floating_checkout": "lease_expires_at"]
  if let end = ends[answer.text("kind") ?? ""], try now >= instant(answer, end) {
    throw Distrusted(rule: "times", message: "\(end) has passed")
  }
}

private func instant(_ answer: Answer, _ name: String) throws -> Date {
  guard let instant = answer.text(name).flatMap(parseInstant) else {
    throw Distrusted(rule: "times", message: "\(name) is no instant")
  }
  return instant
}

/// An instant as the service writes it: 2030-01-31T12:00:00.000Z.
func parseInstant(_ written: String) -> Date? {
  let form = Array("dddd-dd-ddTdd:dd:dd.dddZ".utf8)
  let bytes = Array(written.utf8)
  let isDigit = { (byte: UInt8) in byte >= 0x30 && byte <= 0x39 }
  let digit = UInt8(ascii: "d")
  guard bytes.count == form.count, zip(bytes, form).allSatisfy({ $1 == digit ? isDigit($0) : $0 == $1 }) else {
    return nil
  }
  let part = { (range: Range<Int>) -> Int64 in bytes[range].reduce(0) { $0 * 10 + Int64($1 - 0x30) } }
  let (month, day, hour, minute, second) = (part(5..<7), part(8..<10), part(11..<13), part(14..<16), part(17..<19))
  guard (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second <= 60 else { return nil }
  // Days of the civil calendar, counted from March so that the leap day is the last of its year.
  let year = month <= 2 ? part(0..<4) - 1 : part(0..<4)
  let leapDays = year / 4 - year / 100 + year / 400
  let days = 365 * year + leapDays + (153 * ((month + 9) % 12) + 2) / 5 + day - 719_469
  let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
  return Date(timeIntervalSince1970: Double(seconds) + Double(part(20..<23)) / 1000)
}

/// The text of a file or QR code for a machine without a network: the body of POST /api/v1/license/offline, which a person
/// with the license key sends. `openOfflineEnvelope` opens what comes back.
public func offlineRequest(binding: DeviceBinding, productCode: String) -> String {
  var request = binding.request
  request["product_code"] = .text(productCode)
  request["activate"] = .bool(true)
  return JSON.object(request).written
}

/// Opens an offline envelope, the JSON of {kid, salt, nonce, ciphertext}, and judges what is in it. The license key is
/// the one as issued: LK-, capitals and dashes.
public func openOfflineEnvelope(keys: Keys, licenseKey: String, envelope: Data, expected: Expected) throws -> Answer {
  let plaintext: Data
  do {
    plaintext = try decrypt(licenseKey: licenseKey, envelope: envelope)
  } catch {
    throw Distrusted(rule: "envelope", message: "the offline envelope does not open: \(error)")
  }
  return try judge(keys: keys, body: plaintext, expected: expected)
}

private func decrypt(licenseKey: String, envelope: Data) throws -> Data {
  let parts = try JSONReader.members(envelope)
  guard let kid = parts["kid"]?.value.text,
    let salt = strictBase64(parts["salt"]?.value.text),
    let nonce = strictBase64(parts["nonce"]?.value.text), nonce.count == 12,
    let sealed = strictBase64(parts["ciphertext"]?.value.text), sealed.count >= 16
  else {
    throw Malformed("a part is missing or malformed")
  }
  let key = HKDF<SHA256>.deriveKey(
    inputKeyMaterial: SymmetricKey(data: Data(licenseKey.utf8)), salt: salt,
    info: Data("licensing-service/offline/v1".utf8), outputByteCount: 32)
  let box = try AES.GCM.SealedBox(
    nonce: AES.GCM.Nonce(data: nonce), ciphertext: sealed.dropLast(16), tag: sealed.suffix(16))
  return try AES.GCM.open(box, using: key, authenticating: Data(kid.utf8))
}

/// Why a webhook is refused: answer 400.
public enum WebhookRefused: String, Error {
  case headersMissing = "headers_missing"
  case signatureMalformed = "signature_malformed"
  case tooOldOrNew = "too_old_or_new"
  case signatureWrong = "signature_wrong"
}

/// Returns the id of a genuine delivery by X-Service-Signature. The same id may arrive again: process it once. The
/// names of the headers are in lower case; `body` is the raw body; `secrets` holds the endpoint's secret, during a
/// rotation the old and the new one.
public func verifyWebhook(
  secrets: [String], headers: [String: String], body: Data, nowSeconds: Int64 = Int64(Date().timeIntervalSince1970)
) throws -> String {
  guard let id = headers["x-service-delivery-id"], let signature = headers["x-service-signature"] else {
    throw WebhookRefused.headersMissing
  }
  let parts = signature.components(separatedBy: ",").map { $0.trimmingCharacters(in: .whitespaces) }
  let timestamp = parts.first { $0.hasPrefix("t=") }.map { String($0.dropFirst(2)) } ?? ""
  let given = parts.filter { $0.hasPrefix("v1=") }.map { String($0.dropFirst(3)) }
  try checkTimestamp(timestamp, given, nowSeconds)
  let signed = Data("\(timestamp).\(id).".utf8) + body
  return try matching(id, given, secrets.map { hex(hmac(Data($0.utf8), signed)) })
}

/// The same by the headers of Standard Webhooks.
public func verifyStandardWebhook(
  secrets: [String], headers: [String: String], body: Data, nowSeconds: Int64 = Int64(Date().timeIntervalSince1970)
) throws -> String {
  guard let id = headers["webhook-id"], let timestamp = headers["webhook-timestamp"],
    let signature = headers["webhook-signature"]
  else {
    throw WebhookRefused.headersMissing
  }
  let given = signature.components(separatedBy: " ").filter { $0.hasPrefix("v1,") }.map { String($0.dropFirst(3)) }
  try checkTimestamp(timestamp, given, nowSeconds)
  let signed = Data("\(id).\(timestamp).".utf8) + body
  return try matching(id, given, secrets.map { hmac(standardKey($0), signed).base64EncodedString() })
}

private func checkTimestamp(_ timestamp: String, _ given: [String], _ nowSeconds: Int64) throws {
  let digits = Array(timestamp.utf8)
  guard (1...12).contains(digits.count), digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
    let seconds = Int64(timestamp), !given.isEmpty
  else {
    throw WebhookRefused.signatureMalformed
  }
  if abs(nowSeconds - seconds) > webhookToleranceSeconds { throw WebhookRefused.tooOldOrNew }
}

private func matching(_ id: String, _ given: [String], _ wanted: [String]) throws -> String {
  for one in wanted {
    for value in given where equalInConstantTime(Array(one.utf8), Array(value.utf8)) { return id }
  }
  throw WebhookRefused.signatureWrong
}

private func equalInConstantTime(_ one: [UInt8], _ other: [UInt8]) -> Bool {
  one.count == other.count && zip(one, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
}

private func hmac(_ key: Data, _ message: Data) -> Data {
  Data(HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key)))
}

/// The base64 after whsec_; the whole secret as UTF-8 where there is none.
private func standardKey(_ secret: String) -> Data {
  let encoded = secret.hasPrefix("whsec_") ? String(secret.dropFirst(6)) : nil
  return strictBase64(encoded) ?? Data(secret.utf8)
}

/// Calls the service. Store licenseID, productID and highestIssuedAt, and set them again at the next start.
public final class Client {
  public var licenseID: String?
  public var productID: String?
  public var highestIssuedAt: Date?
  private let baseURL: String
  private let licenseKey: String
  private let productCode: String
  private let keys: Keys
  private let binding: DeviceBinding

  public init(baseURL: String, licenseKey: String, productCode: String, keys: Keys, binding: DeviceBinding) {
    self.baseURL = baseURL
    self.licenseKey = licenseKey
    self.productCode = productCode
    self.keys = keys
    self.binding = binding
  }

  public func activate() async throws -> Answer { try await call("activate", kind: "entitlement") }

  public func validate() async throws -> Answer { try await call("validate", kind: "entitlement") }

  public func call(_ operation: String, kind: String) async throws -> Answer {
    // A UUID of version 4 has 122 random bits.
    let nonce = UUID().uuidString
    var body = binding.request
    body["product_code"] = .text(productCode)
    body["nonce"] = .text(nonce)
    guard let url = URL(string: "\(baseURL)/api/v1/license/\(operation)") else { throw URLError(.badURL) }
    var request = URLRequest(url: url, timeoutInterval: 15)
    request.httpMethod = "POST"
    request.setValue("License \(licenseKey)", forHTTPHeaderField: "Authorization")
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.httpBody = Data(JSON.object(body).written.utf8)
    let received = try await Receiver.received(request)
    return try believed(judge(keys: keys, body: received, expected: expected(kind, nonce)))
  }

  /// Opens an offline envelope that was issued for this machine.
  public func openOffline(_ envelope: Data) throws -> Answer {
    let expectation = expected("offline", nil)
    return try believed(
      openOfflineEnvelope(keys: keys, licenseKey: licenseKey, envelope: envelope, expected: expectation))
  }

  private func expected(_ kind: String, _ nonce: String?) -> Expected {
    var expected = Expected()
    expected.kind = kind
    expected.licenseID = licenseID
    expected.productID = productID
    expected.productCode = productCode
    expected.binding = binding
    expected.nonce = nonce
    expected.now = Date()
    expected.highestIssuedAt = highestIssuedAt
    return expected
  }

  private func believed(_ answer: Answer) throws -> Answer {
    if !answer.isRefusal {
      licenseID = answer.text("license_id")
      productID = answer.text("product_id")
    }
    let issuedAt = try instant(answer, "issued_at")
    highestIssuedAt = max(issuedAt, highestIssuedAt ?? issuedAt)
    return answer
  }
}

/// Receives one response of at most 1 MiB. It follows no redirect, which would carry the license key to another host.
/// The session calls its delegate on one serial queue.
private final class Receiver: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private let continuation: CheckedContinuation<Data, Error>
  private var body = Data()

  private init(_ continuation: CheckedContinuation<Data, Error>) { self.continuation = continuation }

  static func received(_ request: URLRequest) async throws -> Data {
    try await withCheckedThrowingContinuation { continuation in
      let configuration = URLSessionConfiguration.ephemeral
      configuration.timeoutIntervalForResource = request.timeoutInterval
      let session = URLSession(configuration: configuration, delegate: Receiver(continuation), delegateQueue: nil)
      session.dataTask(with: request).resume()
      session.finishTasksAndInvalidate()
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    body.append(data)
    if body.count > bodyBytesMax { dataTask.cancel() }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError problem: Error?) {
    if let problem = problem {
      continuation.resume(throwing: problem)
    } else {
      continuation.resume(returning: body)
    }
  }
}

private func hex(_ bytes: Data) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

private func sha256Hex(_ text: String) -> String { hex(Data(SHA256.hash(data: Data(text.utf8)))) }

/// Standard base64 with padding, in its one right form.
private func strictBase64(_ text: String?) -> Data? {
  guard let text = text, !text.isEmpty, let data = Data(base64Encoded: text), data.base64EncodedString() == text else {
    return nil
  }
  return data
}

/// Why something is not JSON, or not in the expected form.
struct Malformed: Error {
  let message: String
  init(_ message: String) { self.message = message }
}

public enum JSON: Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case text(String)
  case array([JSON])
  case object([String: JSON])

  public var text: String? {
    if case .text(let text) = self { return text }
    return nil
  }

  /// As RFC 8785 writes it, if it has texts and booleans alone.
  var written: String {
    switch self {
    case .null: return "null"
    case .bool(let truth): return truth ? "true" : "false"
    case .number(let number): return String(number)
    case .text(let text): return JSON.quoted(text)
    case .array(let items): return "[" + items.map(\.written).joined(separator: ",") + "]"
    case .object(let members):
      // The names are ASCII, for which the order of bytes is that of RFC 8785.
      let sorted = members.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }
      return "{" + sorted.map { JSON.quoted($0.key) + ":" + $0.value.written }.joined(separator: ",") + "}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var out = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": out += "\\\""
      case "\\": out += "\\\\"
      case "\u{8}": out += "\\b"
      case "\t": out += "\\t"
      case "\n": out += "\\n"
      case "\u{c}": out += "\\f"
      case "\r": out += "\\r"
      case _ where scalar.value < 0x20: out += String(format: "\\u%04x", scalar.value)
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out + "\""
  }
}

/// A strict reader of JSON: a name that is there twice, deep nesting and bytes that are not UTF-8 are malformed. It
/// keeps the bytes of each member of the outermost object, because the signature covers the bytes as received.
struct JSONReader {
  struct Member {
    let value: JSON
    let bytes: ArraySlice<UInt8>
  }

  /// Levels of objects and arrays, the outermost included.
  private static let depthMax = 32
  private let body: [UInt8]
  private var at = 0

  private init(_ body: [UInt8]) { self.body = body }

  static func members(_ body: Data) throws -> [String: Member] {
    // Swift compares names in their Unicode forms: two that differ only in these count as the same, and are refused.
    guard body.count <= bodyBytesMax, String(data: body, encoding: .utf8) != nil else {
      throw Malformed("too large, or not UTF-8")
    }
    var reader = JSONReader(Array(body))
    reader.space()
    let found = try reader.members(depth: 0)
    reader.space()
    guard reader.at == reader.body.count else { throw Malformed("something follows the object") }
    return found
  }

  private mutating func members(depth: Int) throws -> [String: Member] {
    guard depth < JSONReader.depthMax else { throw Malformed("nested too deep") }
    var found: [String: Member] = [:]
    try expect("{")
    space()
    if next("}") { return found }
    repeat {
      space()
      let name = try string()
      space()
      try expect(":")
      space()
      let start = at
      let value = try self.value(depth: depth + 1)
      // Parsers differ in which of two equal names counts: none does.
      guard found.updateValue(Member(value: value, bytes: body[start..<at]), forKey: name) == nil else {
        throw Malformed("a name is there twice")
      }
      space()
    } while next(",")
    try expect("}")
    return found
  }

  private mutating func value(depth: Int) throws -> JSON {
    switch peek {
    case UInt8(ascii: "{"): return .object(try members(depth: depth).mapValues(\.value))
    case UInt8(ascii: "["): return .array(try elements(depth: depth))
    case UInt8(ascii: "\""): return .text(try string())
    default: return try literal()
    }
  }

  private mutating func elements(depth: Int) throws -> [JSON] {
    guard depth < JSONReader.depthMax else { throw Malformed("nested too deep") }
    var items: [JSON] = []
    try expect("[")
    space()
    if next("]") { return items }
    repeat {
      space()
      items.append(try self.value(depth: depth + 1))
      space()
    } while next(",")
    try expect("]")
    return items
  }

  private mutating func literal() throws -> JSON {
    for (word, value) in [("null", JSON.null), ("true", .bool(true)), ("false", .bool(false))]
    where body[at...].starts(with: word.utf8) {
      at += word.utf8.count
      return value
    }
    let start = at
    _ = next("-")
    if !next("0") { try digits() }
    if next(".") { try digits() }
    if next("e") || next("E") {
      if !next("+") { _ = next("-") }
      try digits()
    }
    guard let number = Double(String(decoding: body[start..<at], as: UTF8.self)) else { throw Malformed("no number") }
    return .number(number)
  }

  private mutating func digits() throws {
    let start = at
    while peek >= 0x30 && peek <= 0x39 { at += 1 }
    if at == start { throw Malformed("no JSON value") }
  }

  private mutating func string() throws -> String {
    try expect("\"")
    var bytes: [UInt8] = []
    while at < body.count {
      let byte = body[at]
      at += 1
      if byte == UInt8(ascii: "\"") { return String(decoding: bytes, as: UTF8.self) }
      if byte < 0x20 { break }
      if byte == UInt8(ascii: "\\") { bytes += try Array(String(escaped()).utf8) } else { bytes.append(byte) }
    }
    throw Malformed("a text is malformed or has no end")
  }

  private mutating func escaped() throws -> Character {
    let byte = peek
    at += 1
    if byte == UInt8(ascii: "u") {
      var code = try unit()
      if code >= 0xd800 && code < 0xdc00 && next("\\") && next("u") {
        let low = try unit()
        guard low >= 0xdc00 && low < 0xe000 else { throw Malformed("a lone surrogate") }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
      }
      guard let scalar = Unicode.Scalar(code) else { throw Malformed("a lone surrogate") }
      return Character(scalar)
    }
    let meanings: [UInt8: Character] = [
      UInt8(ascii: "\""): "\"", UInt8(ascii: "\\"): "\\", UInt8(ascii: "/"): "/", UInt8(ascii: "b"): "\u{8}",
      UInt8(ascii: "f"): "\u{c}", UInt8(ascii: "n"): "\n", UInt8(ascii: "r"): "\r", UInt8(ascii: "t"): "\t",
    ]
    guard let meaning = meanings[byte] else { throw Malformed("an unknown escape") }
    return meaning
  }

  private mutating func unit() throws -> UInt32 {
    guard at + 4 <= body.count else { throw Malformed("an escape was cut off") }
    var code: UInt32 = 0
    for byte in body[at..<at + 4] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw Malformed("an escape was cut off") }
      code = code * 16 + UInt32(digit)
    }
    at += 4
    return code
  }

  private mutating func space() {
    while peek == 0x20 || peek == 0x09 || peek == 0x0a || peek == 0x0d { at += 1 }
  }

  /// The next byte; 0, which is in no JSON outside of texts, at the end.
  private var peek: UInt8 { at < body.count ? body[at] : 0 }

  private mutating func next(_ wanted: Unicode.Scalar) -> Bool {
    guard peek == UInt8(ascii: wanted) else { return false }
    at += 1
    return true
  }

  private mutating func expect(_ wanted: Unicode.Scalar) throws {
    if !next(wanted) { throw Malformed("\(wanted) is missing") }
  }
}

#if LICENSING_CHECK
private typealias Members = [String: JSON]

extension JSON {
  fileprivate var members: Members {
    if case .object(let members) = self { return members }
    return [:]
  }
  fileprivate var items: [JSON] {
    if case .array(let items) = self { return items }
    return []
  }
  fileprivate var integer: Int {
    if case .number(let number) = self { return Int(number) }
    return 0
  }
}

@main
struct Check {
  private var differences = 0
  private let folder: String

  private init(folder: String) { self.folder = folder }

  private mutating func report(_ file: String, _ vector: Members, _ given: String, _ wanted: String) {
    if given != wanted { differences += 1 }
    let note = given == wanted ? "" : ", but it should be \(wanted)"
    print("\(file): \(vector["name"]!.text!): \(given)\(note)")
  }

  private func read(_ name: String) throws -> Members {
    let data = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name).json"))
    return try JSONReader.members(data).mapValues(\.value)
  }

  private func keys(_ file: Members) -> Keys {
    let pairs = file["keys"]!.items.map { ($0.members["kid"]!.text!, $0.members["public_key"]!.text!) }
    return Dictionary(uniqueKeysWithValues: pairs)
  }

  private func expected(_ file: Members, _ vector: Members) -> Expected {
    let all = file["expected"]!.members.merging(vector["expected"]?.members ?? [:]) { $1 }
    var expected = Expected()
    expected.kind = all["kind"]?.text
    expected.licenseID = all["license_id"]?.text
    expected.productID = all["product_id"]?.text
    expected.productCode = all["product_code"]?.text
    let bound = all["binding"]!.members
    expected.binding = DeviceBinding(kind: bound["kind"]!.text!, key: bound["key"]!.text!, request: [:])
    expected.nonce = all["nonce"]?.text
    expected.now = all["clock"]!.members["now"]?.text.flatMap(parseInstant)
    expected.highestIssuedAt = all["clock"]!.members["highest_issued_at"]?.text.flatMap(parseInstant)
    return expected
  }

  private func joined(_ chunks: JSON) -> Data {
    var out = Data()
    for chunk in chunks.items.map(\.members) {
      let bytes = Data(base64Encoded: chunk["base64"]!.text!)!
      for _ in 0..<chunk["times"]!.integer { out.append(bytes) }
    }
    return out
  }

  private func verdict(_ attempt: () throws -> Answer) throws -> String {
    do {
      _ = try attempt()
      return "believe"
    } catch let distrusted as Distrusted {
      return distrusted.rule
    }
  }

  private func wanted(_ vector: Members, _ name: String) -> String { (vector[name] ?? vector["verdict"]!).text! }

  private mutating func checkAnswers() throws {
    let (signatures, offline) = (try read("signatures"), try read("offline-envelopes"))
    for (group, signature, envelope) in [("valid", "believe", "believe"), ("invalid", "signature", "envelope")] {
      for one in signatures[group]!.items.map(\.members) {
        let body = "{\"data\":\(one["canonical"]!.text!),\"signature\":\(one["signature"]!.written)}"
        let given = try verdict { try judge(keys: keys(signatures), body: Data(body.utf8), expected: Expected()) }
        report("signatures", one, given, signature)
      }
      for one in offline[group]!.items.map(\.members) {
        let (key, bytes) = (one["license_key"]!.text!, Data(one["envelope"]!.written.utf8))
        let given = try verdict {
          try openOfflineEnvelope(keys: keys(offline), licenseKey: key, envelope: bytes, expected: Expected())
        }
        report("offline-envelopes", one, given, envelope)
      }
    }
    let (responses, hostile) = (try read("responses"), try read("hostile"))
    for one in responses["vectors"]!.items.map(\.members) {
      let body = Data(one["response"]!.text!.utf8)
      let given = try verdict { try judge(keys: keys(responses), body: body, expected: expected(responses, one)) }
      report("responses", one, given, wanted(one, "rule"))
    }
    for one in hostile["responses"]!.items.map(\.members) {
      let body = joined(one["body"]!)
      let given = try verdict { try judge(keys: keys(hostile), body: body, expected: expected(hostile, one)) }
      report("hostile responses", one, given, wanted(one, "rule"))
    }
    for (name, file) in [("hostile", hostile), ("air-gap", try read("air-gap"))] {
      for one in file["envelopes"]!.items.map(\.members) {
        let (key, bytes) = (file["license_key"]!.text!, joined(one["envelope"]!))
        let given = try verdict {
          try openOfflineEnvelope(keys: keys(file), licenseKey: key, envelope: bytes, expected: expected(file, one))
        }
        report("\(name) envelopes", one, given, wanted(one, "rule"))
      }
    }
  }

  private func binding(_ request: Members) -> DeviceBinding {
    let ids = request.compactMapValues(\.text)
    return ids["fingerprint"].map(DeviceBinding.hardware) ?? .container(ids)
  }

  private mutating func checkOthers() throws {
    for one in try read("bindings")["vectors"]!.items.map(\.members) {
      let bound = binding(one["request"]!.members)
      report("bindings", one, "\(bound.kind) \(bound.hash)", "\(one["kind"]!.text!) \(one["hash"]!.text!)")
    }
    for one in try read("air-gap")["requests"]!.items.map(\.members) {
      let given = offlineRequest(binding: binding(one["binding"]!.members), productCode: one["product_code"]!.text!)
      report("air-gap requests", one, given, one["request"]!.text!)
    }
    for one in try read("webhooks")["vectors"]!.items.map(\.members) {
      let secrets = one["secrets"]!.items.compactMap(\.text)
      let headers = one["headers"]!.members.compactMapValues(\.text)
      let (body, now) = (Data(base64Encoded: one["body"]!.text!)!, Int64(one["now"]!.integer))
      let scheme = one["scheme"]!.text!
      let verify = scheme == "service" ? verifyWebhook : verifyStandardWebhook
      var given = "genuine"
      do {
        _ = try verify(secrets, headers, body, now)
      } catch let refused as WebhookRefused {
        given = refused.rawValue
      }
      report("webhooks \(scheme)", one, given, wanted(one, "reason"))
    }
  }

  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.count == 2 && arguments[0] == "vectors" {
      var check = Check(folder: arguments[1])
      try check.checkAnswers()
      try check.checkOthers()
      print("\(check.differences) differences")
      exit(check.differences == 0 ? 0 : 1)
    }
    guard (7...8).contains(arguments.count) && arguments[0] == "call" else {
      print("usage: vectors FOLDER | call URL LICENSE_KEY PRODUCT_CODE FINGERPRINT KID PUBLIC_KEY [ENVELOPE]")
      exit(2)
    }
    let client = Client(
      baseURL: arguments[1], licenseKey: arguments[2], productCode: arguments[3],
      keys: [arguments[5]: arguments[6]], binding: .hardware(arguments[4]))
    for operation in ["activate", "validate", "open_offline"].prefix(arguments.count - 5) {
      do {
        let answer: Answer
        switch operation {
        case "activate": answer = try await client.activate()
        case "validate": answer = try await client.validate()
        default: answer = try client.openOffline(Data(arguments[7].utf8))
        }
        let says = answer.isRefusal ? "error \(answer.text("code") ?? "")" : "data \(answer.text("status") ?? "")"
        print("\(operation): \(says)")
      } catch let distrusted as Distrusted {
        print("\(operation): distrusted \(distrusted.rule)")
      } catch let problem as URLError {
        print("\(operation): not reached \(problem.code.rawValue)")
      }
    }
  }
}
#endif
