// License checks for an application in C++17 with OpenSSL 1.1.1 or newer (libcrypto). Copy this file.
//
//   licensing::Client client{"https://licensing.example.com", license_key, "editor-pro", keys,
//                            licensing::hardware(fingerprint), post};
//   licensing::Answer answer = client.activate();
//   if (answer.is_refusal) ... answer.text("code") says what to do ...
//
// C++ has no HTTP client: `post` is the application's own (libcurl, Qt, WinHTTP). It throws if it reaches no service.
// Distrusted is thrown for every answer that breaks a rule of VERIFYING.md: treat both as "the service was not
// reached".
//
// license_kit.hpp decides with it what the application should do; check.cpp tests both against the published vectors.
#pragma once

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace licensing {

constexpr std::size_t body_bytes_max = 1 << 20;
constexpr std::int64_t clock_skew_ms_max = 300'000;
constexpr std::int64_t webhook_tolerance_seconds = 300;

// An answer that the application must not believe. `rule` is the first rule that it breaks.
struct Distrusted : std::runtime_error {
  std::string rule;
  Distrusted(std::string rule, const std::string& message) : std::runtime_error(message), rule(std::move(rule)) {}
};

// ---- JSON: a strict reader. A name that is there twice, deep nesting and bytes that are not UTF-8 are malformed. ----

struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Json {
  enum Type { null, boolean, number, text, array, object } type = null;
  bool truth = false;
  double value = 0;
  std::string string;                        // a text, in UTF-8
  std::vector<Json> items;                   // of an array, or an object's members
  std::map<std::string, std::size_t> names;  // of an object: the places in `items`
  std::size_t start = 0, length = 0;         // where the value stands in the body that was read

  const Json* find(const std::string& name) const {
    auto found = names.find(name);
    return found == names.end() ? nullptr : &items[found->second];
  }
  // The value's bytes exactly as received: the signature covers these.
  std::string_view raw(std::string_view body) const { return body.substr(start, length); }
  // The text of a member, if it is one.
  std::optional<std::string> text_of(const std::string& name) const {
    const Json* member = find(name);
    return member && member->type == text ? std::optional(member->string) : std::nullopt;
  }
};

class JsonReader {
 public:
  // The object that is the whole body.
  static Json object(std::string_view body, std::size_t bytes_max = body_bytes_max) {
    if (body.size() > bytes_max) throw Malformed("too large");
    check_utf8(body);
    JsonReader reader{body};
    reader.space();
    Json found = reader.value(0);
    reader.space();
    if (reader.at != body.size()) throw Malformed("something follows the object");
    if (found.type != Json::object) throw Malformed("not an object");
    return found;
  }

 private:
  static constexpr int depth_max = 32;  // levels of objects and arrays, the outermost included
  std::string_view body;
  std::size_t at = 0;

  explicit JsonReader(std::string_view body) : body(body) {}

  Json value(int depth) {
    Json found;
    found.start = at;
    char first = at < body.size() ? body[at] : '\0';
    if (depth >= depth_max && (first == '{' || first == '[')) throw Malformed("nested too deep");
    if (first == '{') members(depth, found);
    else if (first == '[') elements(depth, found);
    else if (first == '"') {
      found.type = Json::text;
      found.string = string();
    } else if (word("null")) found.type = Json::null;
    else if (word("true")) {
      found.type = Json::boolean;
      found.truth = true;
    } else if (word("false")) found.type = Json::boolean;
    else number(found);
    found.length = at - found.start;
    return found;
  }

  void members(int depth, Json& found) {
    found.type = Json::object;
    expect('{');
    space();
    if (next('}')) return;
    do {
      space();
      std::string name = string();
      // Parsers differ in which of two equal names counts: none does.
      if (!found.names.emplace(std::move(name), found.items.size()).second) throw Malformed("a name is there twice");
      space();
      expect(':');
      space();
      found.items.push_back(value(depth + 1));
      space();
    } while (next(','));
    expect('}');
  }

  void elements(int depth, Json& found) {
    found.type = Json::array;
    expect('[');
    space();
    if (next(']')) return;
    do {
      space();
      found.items.push_back(value(depth + 1));
      space();
    } while (next(','));
    expect(']');
  }

  void number(Json& found) {
    std::size_t start = at;
    next('-');
    if (!next('0')) digits();
    if (next('.')) digits();
    if (next('e') || next('E')) {
      if (!next('+')) next('-');
      digits();
    }
    found.type = Json::number;
    found.value = std::strtod(std::string(body.substr(start, at - start)).c_str(), nullptr);
  }

  void digits() {
    std::size_t start = at;
    while (at < body.size() && body[at] >= '0' && body[at] <= '9') at++;
    if (at == start) throw Malformed("no JSON value");
  }

  std::string string() {
    expect('"');
    std::string out;
    while (at < body.size()) {
      char character = body[at++];
      if (character == '"') return out;
      if (static_cast<unsigned char>(character) < 0x20) break;
      if (character == '\\') escaped(out);
      else out += character;
    }
    throw Malformed("a text is malformed or has no end");
  }

  void escaped(std::string& out) {
    char character = at < body.size() ? body[at++] : '\0';
    if (character == 'u') {
      std::uint32_t code = unit();
      if (code >= 0xdc00 && code < 0xe000) throw Malformed("a lone surrogate");
      if (code >= 0xd800 && code < 0xdc00) {
        if (!next('\\') || !next('u')) throw Malformed("a lone surrogate");
        std::uint32_t low = unit();
        if (low < 0xdc00 || low >= 0xe000) throw Malformed("a lone surrogate");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      }
      append_utf8(out, code);
      return;
    }
    constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    std::size_t known = names.find(character);
    if (known == names.npos) throw Malformed("an unknown escape");
    out += meanings[known];
  }

  std::uint32_t unit() {
    std::uint32_t code = 0;
    for (int count = 0; count < 4; count++) {
      char digit = at < body.size() ? body[at++] : '\0';
      if (digit >= '0' && digit <= '9') code = code * 16 + (digit - '0');
      else if (digit >= 'a' && digit <= 'f') code = code * 16 + (digit - 'a' + 10);
      else if (digit >= 'A' && digit <= 'F') code = code * 16 + (digit - 'A' + 10);
      else throw Malformed("an escape was cut off");
    }
    return code;
  }

  static void append_utf8(std::string& out, std::uint32_t code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
      return;
    }
    int rest = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out += static_cast<char>((0xf00 >> rest & 0xff) | code >> 6 * rest);
    while (rest-- > 0) out += static_cast<char>(0x80 | (code >> 6 * rest & 0x3f));
  }

  static void check_utf8(std::string_view bytes) {
    for (std::size_t index = 0; index < bytes.size();) {
      auto byte = [&](std::size_t offset) -> std::uint32_t {
        return index + offset < bytes.size() ? static_cast<unsigned char>(bytes[index + offset]) : 0;
      };
      std::uint32_t first = byte(0);
      int rest = first < 0x80 ? 0 : first >> 5 == 6 ? 1 : first >> 4 == 14 ? 2 : first >> 3 == 30 ? 3 : -1;
      if (rest < 0) throw Malformed("not UTF-8");
      std::uint32_t code = rest == 0 ? first : first & (0x3f >> rest);
      for (int offset = 1; offset <= rest; offset++) {
        if (byte(offset) >> 6 != 2) throw Malformed("not UTF-8");
        code = code << 6 | (byte(offset) & 0x3f);
      }
      constexpr std::uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
      if (code < smallest[rest] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) throw Malformed("not UTF-8");
      index += rest + 1;
    }
  }

  bool word(std::string_view wanted) {
    bool is = body.substr(at, wanted.size()) == wanted;
    if (is) at += wanted.size();
    return is;
  }
  bool next(char character) {
    bool is = at < body.size() && body[at] == character;
    if (is) at++;
    return is;
  }
  void expect(char character) {
    if (!next(character)) throw Malformed(std::string(1, character) + " is missing");
  }
  void space() {
    while (at < body.size() && std::string_view(" \t\n\r").find(body[at]) != std::string_view::npos) at++;
  }
};

// A JSON text as RFC 8785 writes it.
inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char character : text) {
    std::size_t known = std::string_view("\"\\\b\f\n\r\t").find(character);
    if (known != std::string_view::npos) {
      out += '\\';
      out += "\"\\bfnrt"[known];
    } else if (static_cast<unsigned char>(character) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", character);
      out += escape;
    } else {
      out += character;
    }
  }
  return out + '"';
}

// ---- Bytes ----

inline const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

inline std::string to_base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(bytes), int(bytes.size()));
  out.resize(length);
  return out;
}

// Standard base64 with padding, in its one right form.
inline std::string from_base64(const std::optional<std::string>& text) {
  if (!text || text->empty() || text->size() % 4 != 0) throw Malformed("base64 is missing or malformed");
  std::string out(text->size() / 4 * 3, '\0');
  int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(*text), int(text->size()));
  if (length < 0) throw Malformed("not base64");
  // EVP_DecodeBlock decodes the padding to zeros.
  out.resize(length - std::min<std::size_t>(length, std::count(text->end() - 2, text->end(), '=')));
  if (to_base64(out) != *text) throw Malformed("not written as standard base64");
  return out;
}

inline std::string hex(std::string_view bytes) {
  std::string out;
  for (unsigned char byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

inline std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[32];
  unsigned length = sizeof digest;
  if (!EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr)) throw std::bad_alloc();
  return hex({reinterpret_cast<char*>(digest), length});
}

inline std::string hmac(std::string_view key, std::string_view message) {
  unsigned char digest[32];
  unsigned length = sizeof digest;
  if (!HMAC(EVP_sha256(), key.data(), int(key.size()), bytes_of(message), message.size(), digest, &length)) {
    throw std::bad_alloc();
  }
  return {reinterpret_cast<char*>(digest), length};
}

// Milliseconds since the Unix epoch of an instant as the service writes it: 2030-01-31T12:00:00.000Z.
inline std::int64_t instant(const std::optional<std::string>& text, const std::string& name) {
  auto wrong = [&] { return Distrusted("times", name + " is no instant"); };
  std::string_view form = "dddd-dd-ddTdd:dd:dd.dddZ";
  if (!text || (text->size() != form.size() && text->size() != form.size() - 4)) throw wrong();
  std::string full = text->size() == form.size() ? *text : text->substr(0, form.size() - 5) + ".000" + text->back();
  for (std::size_t index = 0; index < form.size(); index++) {
    char character = full[index];
    if (form[index] == 'd' ? character < '0' || character > '9' : character != form[index]) throw wrong();
  }
  auto part = [&](int start, int length) -> std::int64_t { return std::stoi(full.substr(start, length)); };
  std::int64_t year = part(0, 4), month = part(5, 2), day = part(8, 2);
  if (month < 1 || month > 12 || day < 1 || day > 31 || part(11, 2) > 23 || part(14, 2) > 59) throw wrong();
  // Days of the civil calendar, counted from March so that the leap day is the last of its year.
  if (month <= 2) year--;
  std::int64_t days =
      365 * year + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 719469;
  return (((days * 24 + part(11, 2)) * 60 + part(14, 2)) * 60 + part(17, 2)) * 1000 + part(20, 3);
}

inline std::int64_t clock_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

// ---- Answers ----

// kid to public key in base64, as GET /api/v1/system/public-keys publishes them. Build them into the application.
using Keys = std::map<std::string, std::string>;

// This machine or container. `key` is hashed; `request` holds the members, in JSON, by which a request tells of it.
struct Binding {
  std::string kind, key, request;
  std::string hash() const { return sha256_hex(key); }
};

inline Binding hardware(const std::string& fingerprint) {
  return {"hardware", fingerprint, "\"fingerprint\":" + json_text(fingerprint)};
}

// At least one of cluster_id, namespace, pod_name and container_id.
inline Binding container(const std::map<std::string, std::string>& ids) {
  std::map<std::string, std::string> values;
  for (const auto& [name, id] : ids) values[name] = json_text(id);
  auto members = [&values] {
    std::string text;
    for (const auto& [name, value] : values) text += (text.empty() ? "" : ",") + json_text(name) + ":" + value;
    return text;
  };
  std::string key = sha256_hex("{" + members() + "}");
  values["is_container"] = "true";
  return {"container", key, members()};
}

// What the application knows. What is absent is not compared. Give `now_ms` always: without it the times are not
// checked.
struct Expected {
  std::optional<std::string> kind, license_id, product_id, product_code;
  std::optional<Binding> binding;
  std::optional<std::string> nonce;
  std::optional<std::int64_t> now_ms;
  std::optional<std::int64_t> highest_issued_at_ms;  // the highest that the application has seen and stored
};

// The signed part of an answer: `data` of a success, or `error` of a refusal.
struct Answer {
  bool is_refusal = false;
  std::string bytes;  // as signed
  Json content;
  std::string text(const std::string& name) const { return content.text_of(name).value_or(""); }
};

inline void check_signature(const Keys& keys, std::string_view bytes, const Json& signature) {
  if (signature.text_of("alg") != "Ed25519") throw Distrusted("signature", "the algorithm is not Ed25519");
  std::optional<std::string> kid = signature.text_of("kid");
  auto published = kid ? keys.find(*kid) : keys.end();
  if (published == keys.end()) throw Distrusted("kid", "the signing key is not one that the application trusts");
  std::string key, value;
  try {
    key = from_base64(published->second);
    value = from_base64(signature.text_of("value"));
  } catch (const Malformed&) { throw Distrusted("signature", "the signature is not base64"); }
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> public_key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(key), key.size()), EVP_PKEY_free);
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  // EVP_DigestVerify returns 0 or a negative number for a wrong signature.
  if (!public_key || !context ||
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, public_key.get()) != 1 ||
      EVP_DigestVerify(context.get(), bytes_of(value), value.size(), bytes_of(bytes), bytes.size()) != 1) {
    throw Distrusted("signature", "the signature is not valid");
  }
}

inline void check_times(const Json& content, std::int64_t now, std::optional<std::int64_t> highest_seen) {
  std::int64_t issued_at = instant(content.text_of("issued_at"), "issued_at");
  if (now < std::max(issued_at, highest_seen.value_or(issued_at)) - clock_skew_ms_max) {
    throw Distrusted("times", "the clock is more than five minutes behind an instant that the service has signed");
  }
  std::optional<std::string> kind = content.text_of("kind");
  const char* end = kind == "offline"             ? "offline_expires_at"
                    : kind == "floating_checkout" ? "lease_expires_at"
                                                  : nullptr;
  if (end && now >= instant(content.text_of(end), end)) throw Distrusted("times", std::string(end) + " has passed");
}

// The signed part of an answer that keeps all rules. Throws Distrusted for any other.
inline Answer judge(const Keys& keys, std::string_view body, const Expected& expected) {
  Answer answer;
  try {
    Json envelope = JsonReader::object(body);
    const Json *data = envelope.find("data"), *error = envelope.find("error"), *signature = envelope.find("signature");
    if (!data == !error) throw Malformed("an answer has either data or error");
    if (!signature || signature->type != Json::object) throw Malformed("there is no signature");
    const Json& member = data ? *data : *error;
    if (member.type != Json::object) throw Malformed("data or error is no object");
    answer = {error != nullptr, std::string(member.raw(body)), member};
    check_signature(keys, answer.bytes, *signature);
  } catch (const Malformed& problem) {
    throw Distrusted("signature", std::string("the answer has not the form of a signed answer: ") + problem.what());
  }
  auto check = [&](const char* rule, const char* name, const std::optional<std::string>& wanted) {
    if (wanted && answer.content.text_of(name) != wanted)
      throw Distrusted(rule, std::string(name) + " is not the expected one");
  };
  // A refusal grants nothing: it has no kind, no product_code and no binding.
  bool grants = !answer.is_refusal;
  if (grants) check("kind", "kind", expected.kind);
  check("license", "license_id", expected.license_id);
  check("product", "product_id", expected.product_id);
  if (grants) check("product", "product_code", expected.product_code);
  if (grants && expected.binding) {
    check("binding", "binding_kind", expected.binding->kind);
    check("binding", "binding_hash", expected.binding->hash());
  }
  check("nonce", "nonce", expected.nonce);
  if (expected.now_ms) check_times(answer.content, *expected.now_ms, expected.highest_issued_at_ms);
  return answer;
}

inline std::string decrypt(const std::string& license_key, std::string_view envelope) {
  Json parts = JsonReader::object(envelope);
  std::optional<std::string> kid = parts.text_of("kid");
  std::string salt = from_base64(parts.text_of("salt")), nonce = from_base64(parts.text_of("nonce"));
  std::string ciphertext = from_base64(parts.text_of("ciphertext"));
  if (!kid || nonce.size() != 12 || ciphertext.size() < 16) throw Malformed("a part is missing or malformed");
  // HKDF-SHA256 of RFC 5869, for the one block of 32 bytes that is needed.
  std::string key = hmac(hmac(salt, license_key), "licensing-service/offline/v1\x01");
  std::string tag = ciphertext.substr(ciphertext.size() - 16), plaintext(ciphertext.size() - 16, '\0');
  auto* out = reinterpret_cast<unsigned char*>(plaintext.data());
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  EVP_CIPHER_CTX* c = context.get();
  int length = 0;
  bool opened = c && EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), nullptr, bytes_of(key), bytes_of(nonce)) == 1 &&
                EVP_DecryptUpdate(c, nullptr, &length, bytes_of(*kid), int(kid->size())) == 1 &&
                EVP_DecryptUpdate(c, out, &length, bytes_of(ciphertext), int(plaintext.size())) == 1 &&
                EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, 16, tag.data()) == 1 &&
                EVP_DecryptFinal_ex(c, out + plaintext.size(), &length) == 1;
  if (!opened) throw Malformed("another license key, or changed bytes");
  return plaintext;
}

// The text of a file or QR code for a machine without a network: the body of POST /api/v1/license/offline, which a
// person with the license key sends. open_offline opens what comes back.
inline std::string offline_request(const Binding& binding, const std::string& product_code) {
  return "{\"activate\":true," + binding.request + ",\"product_code\":" + json_text(product_code) + "}";
}

// Opens an offline envelope, the JSON of {kid, salt, nonce, ciphertext}, and judges what is in it. The license key is
// the one as issued: LK-, capitals and dashes.
inline Answer open_offline(const Keys& keys, const std::string& license_key, std::string_view envelope,
                           const Expected& expected) {
  std::string plaintext;
  try {
    plaintext = decrypt(license_key, envelope);
  } catch (const Malformed& problem) {
    throw Distrusted("envelope", std::string("the offline envelope does not open: ") + problem.what());
  }
  return judge(keys, plaintext, expected);
}

// ---- Webhooks ----

// what() is headers_missing, signature_malformed, too_old_or_new or signature_wrong: answer 400.
struct WebhookRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Headers = std::map<std::string, std::string>;  // the names in lower case

inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (char character : text) {
    if (character == separator) parts.emplace_back();
    else parts.back() += character;
  }
  return parts;
}

inline std::string header(const Headers& headers, const std::string& name) {
  auto found = headers.find(name);
  if (found == headers.end()) throw WebhookRefused("headers_missing");
  return found->second;
}

inline std::string matching(const std::vector<std::string>& secrets, const std::string& timestamp,
                            const std::vector<std::string>& given, const std::string& id, std::int64_t now_seconds,
                            const std::function<std::string(const std::string&)>& wanted_with) {
  bool is_number =
      !timestamp.empty() && timestamp.size() <= 12 && timestamp.find_first_not_of("0123456789") == timestamp.npos;
  if (!is_number || given.empty()) throw WebhookRefused("signature_malformed");
  std::int64_t age = now_seconds - std::stoll(timestamp);
  if (age > webhook_tolerance_seconds || age < -webhook_tolerance_seconds) throw WebhookRefused("too_old_or_new");
  for (const std::string& secret : secrets) {
    std::string wanted = wanted_with(secret);
    for (const std::string& value : given) {
      if (value.size() == wanted.size() && CRYPTO_memcmp(value.data(), wanted.data(), wanted.size()) == 0) return id;
    }
  }
  throw WebhookRefused("signature_wrong");
}

// The id of a genuine delivery by X-Service-Signature. The same id may arrive again: process it once. `body` is the raw
// body; `secrets` holds the endpoint's secret, during a rotation the old and the new one.
inline std::string verify_webhook(const std::vector<std::string>& secrets, const Headers& headers,
                                  std::string_view body, std::int64_t now_seconds = clock_ms() / 1000) {
  std::string id = header(headers, "x-service-delivery-id"), timestamp;
  std::vector<std::string> given;
  for (std::string part : split(header(headers, "x-service-signature"), ',')) {
    part.erase(0, part.find_first_not_of(' '));
    if (part.rfind("t=", 0) == 0 && timestamp.empty()) timestamp = part.substr(2);
    if (part.rfind("v1=", 0) == 0) given.push_back(part.substr(3));
  }
  return matching(secrets, timestamp, given, id, now_seconds, [&](const std::string& secret) {
    return hex(hmac(secret, timestamp + "." + id + "." + std::string(body)));
  });
}

// The base64 after whsec_; the whole secret as UTF-8 where there is none.
inline std::string standard_key(const std::string& secret) {
  try {
    if (secret.rfind("whsec_", 0) == 0) return from_base64(secret.substr(6));
  } catch (const Malformed&) {
    // A custom secret that only begins as a generated one.
  }
  return secret;
}

// The same by the headers of Standard Webhooks.
inline std::string verify_standard_webhook(const std::vector<std::string>& secrets, const Headers& headers,
                                           std::string_view body, std::int64_t now_seconds = clock_ms() / 1000) {
  std::string id = header(headers, "webhook-id"), timestamp = header(headers, "webhook-timestamp");
  std::vector<std::string> given;
  for (const std::string& part : split(header(headers, "webhook-signature"), ' ')) {
    if (part.rfind("v1,", 0) == 0) given.push_back(part.substr(3));
  }
  return matching(secrets, timestamp, given, id, now_seconds, [&](const std::string& secret) {
    return to_base64(hmac(standard_key(secret), id + "." + timestamp + "." + std::string(body)));
  });
}

// ---- Calling the service ----

// Sends a POST with `Content-Type: application/json` and `Authorization: <authorization>`, and returns the response's
// body, whatever its status.
using Post =
    std::function<std::string(const std::string& url, const std::string& authorization, const std::string& body)>;

// Store license_id, product_id and highest_issued_at_ms, and set them again at the next start.
struct Client {
  std::string base_url, license_key, product_code;
  Keys keys;
  Binding binding;
  Post post;
  std::optional<std::string> license_id, product_id;
  std::optional<std::int64_t> highest_issued_at_ms;

  Answer activate() { return call("activate", "entitlement"); }
  Answer validate() { return call("validate", "entitlement"); }

  Answer call(const std::string& operation, const std::string& kind) {
    std::string random(16, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), int(random.size())) != 1) throw std::bad_alloc();
    std::string nonce = to_base64(random);
    std::string body =
        "{" + binding.request + ",\"product_code\":" + json_text(product_code) + ",\"nonce\":" + json_text(nonce) + "}";
    std::string received = post(base_url + "/api/v1/license/" + operation, "License " + license_key, body);
    return believed(judge(keys, received, expected(kind, nonce)));
  }

  Answer open_offline(std::string_view envelope) {
    return believed(licensing::open_offline(keys, license_key, envelope, expected("offline", std::nullopt)));
  }

 private:
  Expected expected(const std::string& kind, std::optional<std::string> nonce) const {
    return {kind, license_id, product_id, product_code, binding, std::move(nonce), clock_ms(), highest_issued_at_ms};
  }

  Answer believed(Answer answer) {
    if (!answer.is_refusal) {
      license_id = answer.text("license_id");
      product_id = answer.text("product_id");
    }
    std::int64_t issued_at = instant(answer.text("issued_at"), "issued_at");
    highest_issued_at_ms = std::max(issued_at, highest_issued_at_ms.value_or(issued_at));
    return answer;
  }
};

}  // namespace licensing
