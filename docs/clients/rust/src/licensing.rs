//! License checks for an application in Rust 1.81 or newer, with one crate: ring. Copy this file into the application.
//!
//! ```ignore
//! let machine = Binding::hardware(fingerprint);
//! let mut client = Client::new("https://licensing.example.com", key, "editor-pro", keys, machine);
//! match client.activate(&post) {
//!     Ok(answer) if answer.is_refusal => { /* answer.text("code") says what to do */ }
//!     Ok(answer) => { /* the license is good: answer.content has its features and next_check_at */ }
//!     Err(_) => { /* the answer breaks a rule of VERIFYING.md: treat it as "the service was not reached" */ }
//! }
//! ```
//!
//! Rust's library has no HTTP client: `post` calls the application's own (ureq, reqwest). `cargo run -- vectors
//! ../../../schema/vectors` in this folder checks this file against the published test vectors.

use ring::rand::{SecureRandom, SystemRandom};
use ring::{aead, digest, hkdf, hmac, signature};
use std::collections::{BTreeMap, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

pub const BODY_BYTES_MAX: usize = 1 << 20;
const CLOCK_SKEW_MS_MAX: i64 = 300_000;
const WEBHOOK_TOLERANCE_SECONDS: i64 = 300;

/// An answer that the application must not believe.
#[derive(Debug)]
pub struct Distrusted {
    /// The first rule that the answer breaks.
    pub rule: &'static str,
    pub message: String,
}

impl std::fmt::Display for Distrusted {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "{}: {}", self.rule, self.message)
    }
}

impl std::error::Error for Distrusted {}

fn distrust<T>(rule: &'static str, message: impl Into<String>) -> Result<T, Distrusted> {
    Err(Distrusted { rule, message: message.into() })
}

/// kid to public key in base64, as GET /api/v1/system/public-keys publishes them. Build them into the application.
pub type Keys = HashMap<String, String>;

/// This machine or container. The key is hashed; the request is what a request says of it.
#[derive(Clone)]
pub struct Binding {
    pub kind: String,
    pub key: String,
    pub request: BTreeMap<String, Json>,
}

impl Binding {
    pub fn hardware(fingerprint: &str) -> Self {
        let request = BTreeMap::from([("fingerprint".into(), Json::Text(fingerprint.into()))]);
        Self { kind: "hardware".into(), key: fingerprint.into(), request }
    }

    /// By at least one of cluster_id, namespace, pod_name and container_id.
    pub fn container(ids: &[(&str, &str)]) -> Self {
        let mut request: BTreeMap<_, _> =
            ids.iter().map(|(name, id)| (name.to_string(), Json::Text(id.to_string()))).collect();
        let key = sha256_hex(write_object(&request).as_bytes());
        request.insert("is_container".into(), Json::Bool(true));
        Self { kind: "container".into(), key, request }
    }

    pub fn hash(&self) -> String {
        sha256_hex(self.key.as_bytes())
    }
}

/// What the application knows. None is not compared. Give `now_ms` always: without it the times are not checked.
#[derive(Default)]
pub struct Expected {
    pub kind: Option<String>,
    pub license_id: Option<String>,
    pub product_id: Option<String>,
    pub product_code: Option<String>,
    pub binding: Option<Binding>,
    pub nonce: Option<String>,
    pub now_ms: Option<i64>,
    /// The highest issued_at that the application has seen and stored.
    pub highest_issued_at_ms: Option<i64>,
}

/// The signed part of an answer: `data` of a success, or `error` of a refusal.
#[derive(Debug)]
pub struct Answer {
    pub is_refusal: bool,
    pub content: BTreeMap<String, Json>,
    /// The signed bytes of the content, to decode into a struct.
    pub bytes: String,
}

impl Answer {
    pub fn text(&self, name: &str) -> Option<&str> {
        text_of(self.content.get(name))
    }
}

/// The signed part of an answer that keeps all rules.
pub fn judge(keys: &Keys, body: &[u8], expected: &Expected) -> Result<Answer, Distrusted> {
    let (answer, signature) = read_answer(body).or_else(|problem| {
        distrust("signature", format!("the answer has not the form of a signed answer: {problem}"))
    })?;
    check_signature(keys, answer.bytes.as_bytes(), &signature)?;
    let check = |rule: &'static str, name: &str, wanted: Option<&str>| match wanted {
        Some(wanted) if answer.text(name) != Some(wanted) => distrust(rule, format!("{name} is not the expected one")),
        _ => Ok(()),
    };
    // A refusal grants nothing: it has no kind, no product_code and no binding.
    let grants = !answer.is_refusal;
    if grants {
        check("kind", "kind", expected.kind.as_deref())?;
    }
    check("license", "license_id", expected.license_id.as_deref())?;
    check("product", "product_id", expected.product_id.as_deref())?;
    if grants {
        check("product", "product_code", expected.product_code.as_deref())?;
        if let Some(binding) = &expected.binding {
            check("binding", "binding_kind", Some(&binding.kind))?;
            check("binding", "binding_hash", Some(&binding.hash()))?;
        }
    }
    check("nonce", "nonce", expected.nonce.as_deref())?;
    if let Some(now) = expected.now_ms {
        check_times(&answer, now, expected.highest_issued_at_ms)?;
    }
    Ok(answer)
}

type Members = BTreeMap<String, Json>;

fn read_answer(body: &[u8]) -> Result<(Answer, Members), Malformed> {
    let text = std::str::from_utf8(body).map_err(|_| "not UTF-8")?;
    let mut envelope = members(text)?;
    let (is_refusal, member) = match (envelope.remove("data"), envelope.remove("error")) {
        (Some(data), None) => (false, data),
        (None, Some(error)) => (true, error),
        _ => return Err("an answer has either data or error"),
    };
    let Some((Json::Object(signature), _)) = envelope.remove("signature") else { return Err("there is no signature") };
    let (Json::Object(content), (start, end)) = member else { return Err("data or error is no object") };
    Ok((Answer { is_refusal, content, bytes: text[start..end].to_string() }, signature))
}

fn check_signature(keys: &Keys, signed: &[u8], signature: &Members) -> Result<(), Distrusted> {
    if text_of(signature.get("alg")) != Some("Ed25519") {
        return distrust("signature", "the algorithm is not Ed25519");
    }
    let Some(published) = text_of(signature.get("kid")).and_then(|kid| keys.get(kid)) else {
        return distrust("kid", "the signing key is not one that the application trusts");
    };
    let is_valid = match (from_base64(Some(published)), from_base64(text_of(signature.get("value")))) {
        (Ok(key), Ok(value)) => {
            signature::UnparsedPublicKey::new(&signature::ED25519, key).verify(signed, &value).is_ok()
        }
        _ => false,
    };
    if is_valid {
        Ok(())
    } else {
        distrust("signature", "the signature is not valid")
    }
}

fn check_times(answer: &Answer, now: i64, highest_seen: Option<i64>) -> Result<(), Distrusted> {
    let issued_at = instant(answer, "issued_at")?;
    if now < issued_at.max(highest_seen.unwrap_or(issued_at)) - CLOCK_SKEW_MS_MAX {
        return distrust("times", "the clock is more than five minutes behind an instant that the service has signed");
    }
    let end = match answer.text("kind") {
        Some("offline") => "offline_expires_at",
        Some("floating_checkout") => "lease_expires_at",
        _ => return Ok(()),
    };
    if now >= instant(answer, end)? {
        distrust("times", format!("{end} has passed"))
    } else {
        Ok(())
    }
}

fn instant(answer: &Answer, name: &str) -> Result<i64, Distrusted> {
    match answer.text(name).and_then(parse_instant) {
        Some(instant) => Ok(instant),
        None => distrust("times", format!("{name} is no instant")),
    }
}

/// Milliseconds since the Unix epoch of an instant as the service writes it: 2030-01-31T12:00:00.000Z.
pub fn parse_instant(written: &str) -> Option<i64> {
    const FORM: &[u8] = b"dddd-dd-ddTdd:dd:dd.dddZ";
    let bytes = written.as_bytes();
    let fits = |(byte, form): (&u8, &u8)| if *form == b'd' { byte.is_ascii_digit() } else { byte == form };
    if bytes.len() != FORM.len() || !bytes.iter().zip(FORM).all(fits) {
        return None;
    }
    let part = |start: usize, end: usize| written[start..end].parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days of the civil calendar, counted from March so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 719_469;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + part(20, 23)?)
}

/// The text of a file or QR code for a machine without a network: the body of POST /api/v1/license/offline, which a
/// person with the license key sends. `open_offline` opens what comes back.
pub fn offline_request(binding: &Binding, product_code: &str) -> String {
    let mut request = binding.request.clone();
    request.insert("product_code".into(), Json::Text(product_code.into()));
    request.insert("activate".into(), Json::Bool(true));
    write_object(&request)
}

/// Opens an offline envelope, the JSON of {kid, salt, nonce, ciphertext}, and judges what is in it. The license key is
/// the one as issued: LK-, capitals and dashes.
pub fn open_offline(
    keys: &Keys,
    license_key: &str,
    envelope: &[u8],
    expected: &Expected,
) -> Result<Answer, Distrusted> {
    let plaintext = decrypt(license_key, envelope)
        .or_else(|problem| distrust("envelope", format!("the offline envelope does not open: {problem}")))?;
    judge(keys, &plaintext, expected)
}

fn decrypt(license_key: &str, envelope: &[u8]) -> Result<Vec<u8>, Malformed> {
    let parts = members(std::str::from_utf8(envelope).map_err(|_| "not UTF-8")?)?;
    let part = |name: &str| text_of(parts.get(name).map(|(value, _)| value));
    let kid = part("kid").ok_or("the kid is missing")?;
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &from_base64(part("salt"))?);
    let nonce =
        aead::Nonce::try_assume_unique_for_key(&from_base64(part("nonce"))?).map_err(|_| "the nonce is wrong")?;
    let mut sealed = from_base64(part("ciphertext"))?;
    let secret = salt.extract(license_key.as_bytes());
    let derived = secret.expand(&[b"licensing-service/offline/v1"], &aead::AES_256_GCM).map_err(|_| "no key")?;
    let key = aead::LessSafeKey::new(aead::UnboundKey::from(derived));
    let plaintext = key.open_in_place(nonce, aead::Aad::from(kid.as_bytes()), &mut sealed);
    Ok(plaintext.map_err(|_| "another license key, or changed bytes")?.to_vec())
}

/// Why a webhook is refused: answer 400.
#[derive(Debug, PartialEq)]
pub enum WebhookRefused {
    HeadersMissing,
    SignatureMalformed,
    TooOldOrNew,
    SignatureWrong,
}

/// The id of a genuine delivery by X-Service-Signature. The same id may arrive again: process it once. `header` gives
/// the value of a header by its lower-case name; `body` is the raw body; `secrets` holds the endpoint's secret, during
/// a rotation the old and the new one.
pub fn verify_webhook<'a>(
    secrets: &[&str],
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    now_seconds: i64,
) -> Result<String, WebhookRefused> {
    let (Some(id), Some(signature)) = (header("x-service-delivery-id"), header("x-service-signature")) else {
        return Err(WebhookRefused::HeadersMissing);
    };
    let parts = || signature.split(',').map(str::trim);
    let timestamp = parts().find_map(|part| part.strip_prefix("t=")).unwrap_or("");
    let given: Vec<&str> = parts().filter_map(|part| part.strip_prefix("v1=")).collect();
    check_timestamp(timestamp, &given, now_seconds)?;
    let signed = [format!("{timestamp}.{id}.").as_bytes(), body].concat();
    matching(id, &given, secrets.iter().map(|secret| hex(&hmac_of(secret.as_bytes(), &signed))))
}

/// The same by the headers of Standard Webhooks.
pub fn verify_standard_webhook<'a>(
    secrets: &[&str],
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    now_seconds: i64,
) -> Result<String, WebhookRefused> {
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let (Some(id), Some(timestamp), Some(signature)) = (id, timestamp, header("webhook-signature")) else {
        return Err(WebhookRefused::HeadersMissing);
    };
    let given: Vec<&str> = signature.split(' ').filter_map(|part| part.strip_prefix("v1,")).collect();
    check_timestamp(timestamp, &given, now_seconds)?;
    let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
    matching(id, &given, secrets.iter().map(|secret| to_base64(&hmac_of(&standard_key(secret), &signed))))
}

fn check_timestamp(timestamp: &str, given: &[&str], now_seconds: i64) -> Result<(), WebhookRefused> {
    let is_number = (1..=12).contains(&timestamp.len()) && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    match timestamp.parse::<i64>() {
        Ok(seconds) if is_number && !given.is_empty() => {
            let is_fresh = (now_seconds - seconds).abs() <= WEBHOOK_TOLERANCE_SECONDS;
            if is_fresh {
                Ok(())
            } else {
                Err(WebhookRefused::TooOldOrNew)
            }
        }
        _ => Err(WebhookRefused::SignatureMalformed),
    }
}

fn matching(id: &str, given: &[&str], mut wanted: impl Iterator<Item = String>) -> Result<String, WebhookRefused> {
    let is_genuine =
        wanted.any(|one| given.iter().any(|value| equal_in_constant_time(one.as_bytes(), value.as_bytes())));
    if is_genuine {
        Ok(id.to_string())
    } else {
        Err(WebhookRefused::SignatureWrong)
    }
}

fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

fn hmac_of(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

/// The base64 after whsec_; the whole secret as UTF-8 where there is none.
fn standard_key(secret: &str) -> Vec<u8> {
    from_base64(secret.strip_prefix("whsec_")).unwrap_or_else(|_| secret.as_bytes().to_vec())
}

/// Calls the service. Store `license_id`, `product_id` and `highest_issued_at_ms`, and set them again at the next
/// start.
pub struct Client {
    pub license_id: Option<String>,
    pub product_id: Option<String>,
    pub highest_issued_at_ms: Option<i64>,
    base_url: String,
    license_key: String,
    product_code: String,
    keys: Keys,
    binding: Binding,
}

/// Sends a POST of JSON to a URL with a value of `Authorization`, and returns the response's body, whatever its status.
pub type Post<'a> = &'a dyn Fn(&str, &str, &str) -> Result<Vec<u8>, String>;

impl Client {
    pub fn new(base_url: &str, license_key: &str, product_code: &str, keys: Keys, binding: Binding) -> Self {
        Self {
            license_id: None,
            product_id: None,
            highest_issued_at_ms: None,
            base_url: base_url.into(),
            license_key: license_key.into(),
            product_code: product_code.into(),
            keys,
            binding,
        }
    }

    pub fn activate(&mut self, post: Post) -> Result<Answer, Distrusted> {
        self.call("activate", "entitlement", post)
    }

    pub fn validate(&mut self, post: Post) -> Result<Answer, Distrusted> {
        self.call("validate", "entitlement", post)
    }

    pub fn call(&mut self, operation: &str, kind: &str, post: Post) -> Result<Answer, Distrusted> {
        let mut random = [0; 16];
        SystemRandom::new().fill(&mut random).expect("the operating system gives random bytes");
        let nonce = to_base64(&random);
        let mut body = self.binding.request.clone();
        body.insert("product_code".into(), Json::Text(self.product_code.clone()));
        body.insert("nonce".into(), Json::Text(nonce.clone()));
        let url = format!("{}/api/v1/license/{operation}", self.base_url);
        let received = post(&url, &format!("License {}", self.license_key), &write_object(&body))
            .or_else(|problem| distrust("signature", format!("the service was not reached: {problem}")))?;
        let answer = judge(&self.keys, &received, &self.expected(kind, Some(nonce)))?;
        self.believed(answer)
    }

    /// Opens an offline envelope that was issued for this machine.
    pub fn open_offline(&mut self, envelope: &[u8]) -> Result<Answer, Distrusted> {
        let answer = open_offline(&self.keys, &self.license_key, envelope, &self.expected("offline", None))?;
        self.believed(answer)
    }

    fn expected(&self, kind: &str, nonce: Option<String>) -> Expected {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).map(|time| time.as_millis() as i64);
        Expected {
            kind: Some(kind.into()),
            license_id: self.license_id.clone(),
            product_id: self.product_id.clone(),
            product_code: Some(self.product_code.clone()),
            binding: Some(self.binding.clone()),
            nonce,
            // A clock before 1970 is behind every issued_at.
            now_ms: Some(since_epoch.unwrap_or(0)),
            highest_issued_at_ms: self.highest_issued_at_ms,
        }
    }

    fn believed(&mut self, answer: Answer) -> Result<Answer, Distrusted> {
        if !answer.is_refusal {
            self.license_id = answer.text("license_id").map(String::from);
            self.product_id = answer.text("product_id").map(String::from);
        }
        self.highest_issued_at_ms = self.highest_issued_at_ms.max(Some(instant(&answer, "issued_at")?));
        Ok(answer)
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let is_padding = place > chunk.len();
            out.push(if is_padding { '=' } else { BASE64[(bits >> (18 - 6 * place) & 63) as usize] as char });
        }
    }
    out
}

/// Standard base64 with padding, in its one right form.
pub fn from_base64(text: Option<&str>) -> Result<Vec<u8>, Malformed> {
    let text = text.filter(|text| !text.is_empty() && text.len() % 4 == 0).ok_or("base64 is missing or malformed")?;
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            let value = match chunk.get(place) {
                Some(byte) => BASE64.iter().position(|one| one == byte).ok_or("not base64")? as u32,
                None => 0,
            };
            bits = bits << 6 | value;
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    if to_base64(&out) == text {
        Ok(out)
    } else {
        Err("not written as standard base64")
    }
}

/// Why something is not JSON, or not in the expected form.
pub type Malformed = &'static str;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Array(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

fn text_of(value: Option<&Json>) -> Option<&str> {
    match value {
        Some(Json::Text(text)) => Some(text),
        _ => None,
    }
}

/// The JSON of a map, as RFC 8785 writes it if its values are texts and booleans.
fn write_object(members: &BTreeMap<String, Json>) -> String {
    let written: Vec<String> =
        members.iter().map(|(name, value)| format!("{}:{}", quoted(name), write(value))).collect();
    format!("{{{}}}", written.join(","))
}

fn write(value: &Json) -> String {
    match value {
        Json::Null => "null".into(),
        Json::Bool(truth) => truth.to_string(),
        Json::Number(number) => number.to_string(),
        Json::Text(text) => quoted(text),
        Json::Array(items) => format!("[{}]", items.iter().map(write).collect::<Vec<_>>().join(",")),
        Json::Object(members) => write_object(members),
    }
}

pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// Levels of objects and arrays, the outermost included.
const DEPTH_MAX: usize = 32;

/// The members of the object that is the whole text, and where each value stands in it: the signature covers the bytes
/// as received. A strict reader: a name that is there twice and deep nesting are malformed.
pub fn members(text: &str) -> Result<BTreeMap<String, (Json, (usize, usize))>, Malformed> {
    if text.len() > BODY_BYTES_MAX {
        return Err("too large");
    }
    let mut reader = Reader { text, at: 0 };
    reader.space();
    let found = reader.members(0)?;
    reader.space();
    if reader.at == text.len() {
        Ok(found)
    } else {
        Err("something follows the object")
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn members(&mut self, depth: usize) -> Result<BTreeMap<String, (Json, (usize, usize))>, Malformed> {
        let mut found = BTreeMap::new();
        if depth >= DEPTH_MAX {
            return Err("nested too deep");
        }
        self.expect(b'{')?;
        self.space();
        if self.next(b'}') {
            return Ok(found);
        }
        loop {
            self.space();
            let name = self.string()?;
            self.space();
            self.expect(b':')?;
            self.space();
            let start = self.at;
            let value = self.value(depth + 1)?;
            // Parsers differ in which of two equal names counts: none does.
            if found.insert(name, (value, (start, self.at))).is_some() {
                return Err("a name is there twice");
            }
            self.space();
            if !self.next(b',') {
                self.expect(b'}')?;
                return Ok(found);
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json, Malformed> {
        match self.peek() {
            b'{' => {
                let members = self.members(depth)?;
                Ok(Json::Object(members.into_iter().map(|(name, (value, _))| (name, value)).collect()))
            }
            b'[' => self.array(depth),
            b'"' => self.string().map(Json::Text),
            b'-' | b'0'..=b'9' => self.number(),
            _ => [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
                .into_iter()
                .find(|(word, _)| self.text[self.at..].starts_with(word))
                .map(|(word, value)| {
                    self.at += word.len();
                    value
                })
                .ok_or("no JSON value"),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, Malformed> {
        let mut items = Vec::new();
        if depth >= DEPTH_MAX {
            return Err("nested too deep");
        }
        self.expect(b'[')?;
        self.space();
        if self.next(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            if !self.next(b',') {
                self.expect(b']')?;
                return Ok(Json::Array(items));
            }
        }
    }

    fn number(&mut self) -> Result<Json, Malformed> {
        let start = self.at;
        self.next(b'-');
        if !self.next(b'0') {
            self.digits()?;
        }
        if self.next(b'.') {
            self.digits()?;
        }
        if self.next(b'e') || self.next(b'E') {
            if !self.next(b'+') {
                self.next(b'-');
            }
            self.digits()?;
        }
        self.text[start..self.at].parse().map(Json::Number).map_err(|_| "no JSON number")
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err("a digit is missing")
        }
    }

    fn string(&mut self) -> Result<String, Malformed> {
        self.expect(b'"')?;
        let mut out = String::new();
        while let Some(character) = self.text[self.at..].chars().next() {
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(out),
                '\\' => out.push(self.escaped()?),
                '\0'..='\u{1f}' => break,
                _ => out.push(character),
            }
        }
        Err("a text is malformed or has no end")
    }

    fn escaped(&mut self) -> Result<char, Malformed> {
        let character = self.peek();
        // A multi-byte character is no known escape, so `at` stays on the boundary of one.
        match character {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u' => self.at += 1,
            _ => return Err("an unknown escape"),
        }
        Ok(match character {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.unit()?;
                let is_pair = (0xd800..0xdc00).contains(&first) && self.next(b'\\') && self.next(b'u');
                let units = if is_pair { vec![first, self.unit()?] } else { vec![first] };
                let mut decoded = char::decode_utf16(units);
                match (decoded.next(), decoded.next()) {
                    (Some(Ok(character)), None) => character,
                    _ => return Err("a lone surrogate"),
                }
            }
            other => other as char,
        })
    }

    fn unit(&mut self) -> Result<u16, Malformed> {
        let digits = self.text.get(self.at..self.at + 4).ok_or("an escape was cut off")?;
        self.at += 4;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("an escape was cut off");
        }
        u16::from_str_radix(digits, 16).map_err(|_| "an escape was cut off")
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// The next byte; 0, which is in no JSON outside of texts, at the end.
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn next(&mut self, wanted: u8) -> bool {
        let is = self.peek() == wanted;
        if is {
            self.at += 1;
        }
        is
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Malformed> {
        if self.next(wanted) {
            Ok(())
        } else {
            Err("JSON is malformed")
        }
    }
}
