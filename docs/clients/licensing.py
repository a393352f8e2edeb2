"""License checks for an application in Python 3.10 or newer. Copy this file into the application.

Needs one package: cryptography (Ed25519 and AES-GCM, which Python's library does not have).

    client = Client("https://licensing.example.com", license_key, "editor-pro", KEYS, hardware(fingerprint))
    answer = client.activate()
    if answer.member == "data":
        ...  # the license is good: answer.content has its features and next_check_at
    else:
        ...  # a signed refusal: answer.content["code"] says what to do
    # Distrusted is raised for everything else: treat it as "the service was not reached".

The rules and their order are those of VERIFYING.md. The main program checks this file against the published test
vectors: python3 licensing.py vectors schema/vectors
"""

import base64
import hashlib
import hmac
import http.client
import json
import re
import secrets as random
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import datetime, timezone

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

BODY_BYTES_MAX = 1024 * 1024
DEPTH_MAX = 32
"""Levels of objects and arrays, the outermost included."""
CLOCK_SKEW_SECONDS_MAX = 300
WEBHOOK_TOLERANCE_SECONDS = 300


class Distrusted(Exception):
    """An answer that the application must not believe. `rule` is the first rule that it breaks."""

    def __init__(self, rule: str, message: str):
        super().__init__(message)
        self.rule = rule


@dataclass(frozen=True)
class Binding:
    """This machine or container. `key` is hashed; `request` is what a request says of it."""

    kind: str
    key: str
    request: dict

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.key.encode()).hexdigest()


def hardware(fingerprint: str) -> Binding:
    return Binding("hardware", fingerprint, {"fingerprint": fingerprint})


def container(**ids: str) -> Binding:
    """At least one of cluster_id, namespace, pod_name and container_id."""
    # For texts alone, Python's JSON with these options is the canonical JSON of RFC 8785.
    canonical = json.dumps(ids, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Binding("container", hashlib.sha256(canonical.encode()).hexdigest(), {**ids, "is_container": True})


@dataclass(frozen=True)
class Expected:
    """What the application knows. None means that there is nothing to compare with, and skips the check."""

    kind: str | None = None
    license_id: str | None = None
    product_id: str | None = None
    product_code: str | None = None
    binding: Binding | None = None
    nonce: str | None = None
    now: float | None = None
    """Seconds since the Unix epoch. Give it always, except in tests: without it the times are not checked."""
    highest_issued_at: float | None = None
    """The highest issued_at that the application has seen and stored."""


@dataclass(frozen=True)
class Answer:
    """The signed part of an answer: `data` of a success, or `error` of a refusal."""

    member: str
    content: dict

    @property
    def issued_at(self) -> float:
        return _instant(self.content.get("issued_at"))


Keys = dict[str, str]
"""kid -> public key in base64, as GET /api/v1/system/public-keys publishes them. Build them into the application."""


def judge(keys: Keys, body: bytes, expected: Expected) -> Answer:
    """The signed part of an answer that keeps all rules. Raises Distrusted for any other."""
    try:
        envelope = members(body)
        member = "error" if "data" not in envelope else "data"
        if ("data" in envelope) == ("error" in envelope):
            raise ValueError("an answer has either data or error")
        signed, content = envelope[member]
        if not isinstance(content, dict):
            raise ValueError(f"{member} is no object")
        signature = {name: value for name, (_, value) in members(envelope["signature"][0]).items()}
    except (ValueError, KeyError, RecursionError) as problem:
        raise Distrusted("signature", f"the answer has not the form of a signed answer: {problem}") from None
    _check_signature(keys, signed, signature)

    # A refusal grants nothing: it has no kind, no product_code and no binding.
    grants = member == "data"

    def check(rule: str, name: str, wanted: str | None) -> None:
        if wanted is not None and content.get(name) != wanted:
            raise Distrusted(rule, f"{name} is not the expected one")

    if grants:
        check("kind", "kind", expected.kind)
    check("license", "license_id", expected.license_id)
    check("product", "product_id", expected.product_id)
    if grants:
        check("product", "product_code", expected.product_code)
        if expected.binding is not None:
            check("binding", "binding_kind", expected.binding.kind)
            check("binding", "binding_hash", expected.binding.hash)
    check("nonce", "nonce", expected.nonce)
    if expected.now is not None:
        _check_times(content, expected.now, expected.highest_issued_at)
    return Answer(member, content)


def _check_signature(keys: Keys, signed: bytes, signature: dict) -> None:
    if signature.get("alg") != "Ed25519":
        raise Distrusted("signature", "the algorithm is not Ed25519")
    kid = signature.get("kid")
    if not isinstance(kid, str) or kid not in keys:
        raise Distrusted("kid", "the signing key is not one that the application trusts")
    try:
        public_key = Ed25519PublicKey.from_public_bytes(_base64(keys[kid]))
        public_key.verify(_base64(signature.get("value")), signed)
    except (InvalidSignature, ValueError):
        raise Distrusted("signature", "the signature is not valid") from None


def _check_times(content: dict, now: float, highest_issued_at: float | None) -> None:
    issued_at = _instant(content.get("issued_at"))
    if now < max(issued_at, highest_issued_at or 0) - CLOCK_SKEW_SECONDS_MAX:
        raise Distrusted("times", "the clock is more than five minutes behind an instant that the service has signed")
    ends = {"offline": "offline_expires_at", "floating_checkout": "lease_expires_at"}
    name = ends.get(content["kind"]) if isinstance(content.get("kind"), str) else None
    if name is not None and now >= _instant(content.get(name)):
        raise Distrusted("times", f"{name} has passed")


def offline_request(binding: Binding, product_code: str) -> str:
    """The text of a file or QR code for a machine without a network: the body of POST /api/v1/license/offline.

    A person with the license key sends it, or opens it on the customer's page. `open_offline` opens what comes back.
    """
    request = {**binding.request, "product_code": product_code, "activate": True}
    return json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def open_offline(keys: Keys, license_key: str, envelope: bytes, expected: Expected) -> Answer:
    """Opens an offline envelope, the JSON of {kid, salt, nonce, ciphertext}, and judges what is in it.

    `license_key` is the key as it was issued: LK-, capitals and dashes.
    """
    return judge(keys, decrypt(license_key, envelope), expected)


def decrypt(license_key: str, envelope: bytes) -> bytes:
    """What is in an offline envelope: it must be judged. Raises Distrusted."""
    try:
        parts = {name: value for name, (_, value) in members(envelope).items()}
        kid, salt, nonce, ciphertext = (parts[name] for name in ("kid", "salt", "nonce", "ciphertext"))
        if not isinstance(kid, str) or len(_base64(nonce)) != 12 or _base64(salt) == b"":
            raise ValueError("a part has the wrong length")
        info = b"licensing-service/offline/v1"
        key = HKDF(algorithm=SHA256(), length=32, salt=_base64(salt), info=info).derive(license_key.encode())
        return AESGCM(key).decrypt(_base64(nonce), _base64(ciphertext), kid.encode())
    except (ValueError, KeyError, RecursionError, InvalidTag) as problem:
        raise Distrusted("envelope", f"the offline envelope does not open: {problem}") from None


class WebhookRefused(Exception):
    """`args[0]` is headers_missing, signature_malformed, too_old_or_new or signature_wrong: answer 400."""


def verify_webhook(secrets: list[str], headers: dict[str, str], body: bytes, now: float | None = None) -> str:
    """The id of a genuine delivery by X-Service-Signature; the same id may arrive again: process it once.

    `body` is the raw body. `secrets` holds the endpoint's secret; during a rotation the old and the new one.
    """
    given = {name.lower(): value for name, value in headers.items()}
    delivery_id, signature = given.get("x-service-delivery-id"), given.get("x-service-signature")
    if delivery_id is None or signature is None:
        raise WebhookRefused("headers_missing")
    parts = [part.strip().partition("=") for part in signature.split(",")]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    values = [value for name, separator, value in parts if name == "v1" and separator]
    _check_timestamp(timestamp, values, now)
    signed = f"{timestamp}.{delivery_id}.".encode() + body
    wanted = [hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets]
    return _matching(wanted, values, delivery_id)


def verify_standard_webhook(secrets: list[str], headers: dict[str, str], body: bytes, now: float | None = None) -> str:
    """The same by the headers of Standard Webhooks."""
    given = {name.lower(): value for name, value in headers.items()}
    delivery_id, timestamp, signature = (given.get(f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    if delivery_id is None or timestamp is None or signature is None:
        raise WebhookRefused("headers_missing")
    values = [part[3:] for part in signature.split(" ") if part.startswith("v1,")]
    _check_timestamp(timestamp, values, now)
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    wanted = [base64.b64encode(hmac.digest(_standard_key(one), signed, "sha256")).decode() for one in secrets]
    return _matching(wanted, values, delivery_id)


def _check_timestamp(timestamp: str, values: list[str], now: float | None) -> None:
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or not values:
        raise WebhookRefused("signature_malformed")
    if abs((time.time() if now is None else now) - int(timestamp)) > WEBHOOK_TOLERANCE_SECONDS:
        raise WebhookRefused("too_old_or_new")


def _matching(wanted: list[str], values: list[str], delivery_id: str) -> str:
    if not any(hmac.compare_digest(one.encode(), value.encode()) for one in wanted for value in values):
        raise WebhookRefused("signature_wrong")
    return delivery_id


def _standard_key(secret: str) -> bytes:
    """The base64 after whsec_; the whole secret as UTF-8 where there is none."""
    try:
        return (secret.startswith("whsec_") and _base64(secret[6:])) or secret.encode()
    except ValueError:
        return secret.encode()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect must not carry the license key to another host."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(_NoRedirects)


@dataclass
class Client:
    """Calls the service. Store license_id, product_id and highest_issued_at, and give them again at the next start."""

    base_url: str
    license_key: str
    product_code: str
    keys: Keys
    binding: Binding
    license_id: str | None = None
    product_id: str | None = None
    highest_issued_at: float | None = None
    timeout_seconds: float = field(default=15, repr=False)

    def activate(self) -> Answer:
        return self.call("activate", "entitlement")

    def validate(self) -> Answer:
        return self.call("validate", "entitlement")

    def call(self, operation: str, kind: str) -> Answer:
        nonce = random.token_urlsafe(16)
        body = {**self.binding.request, "product_code": self.product_code, "nonce": nonce}
        request = urllib.request.Request(
            f"{self.base_url}/api/v1/license/{operation}",
            json.dumps(body).encode(),
            {"Authorization": f"License {self.license_key}", "Content-Type": "application/json"},
        )
        try:
            try:
                response = opener.open(request, timeout=self.timeout_seconds)
            except urllib.error.HTTPError as refusal:
                response = refusal
            with response:
                received = response.read(BODY_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as problem:
            raise Distrusted("signature", f"the service was not reached: {problem}") from None
        return self._believed(judge(self.keys, received, self._expected(kind, nonce)))

    def open_offline(self, envelope: bytes) -> Answer:
        return self._believed(open_offline(self.keys, self.license_key, envelope, self._expected("offline", None)))

    def _expected(self, kind: str, nonce: str | None) -> Expected:
        return Expected(
            kind,
            self.license_id,
            self.product_id,
            self.product_code,
            self.binding,
            nonce,
            time.time(),
            self.highest_issued_at,
        )

    def _believed(self, answer: Answer) -> Answer:
        if answer.member == "data":
            self.license_id, self.product_id = answer.content["license_id"], answer.content["product_id"]
        self.highest_issued_at = max(self.highest_issued_at or 0, answer.issued_at)
        return answer


_decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: _distinct(pairs), parse_constant=lambda name: _refuse(name))
_space = re.compile(r"[ \t\n\r]*")


def members(body: bytes) -> dict[str, tuple[bytes, object]]:
    """The members of a JSON object: the bytes of each value exactly as received, and what they mean."""
    if len(body) > BODY_BYTES_MAX:
        raise ValueError("the body is too large")
    text = body.decode()  # refuses what is not UTF-8
    _check_depth(text)
    found: dict[str, tuple[bytes, object]] = {}
    at = _after(text, 0, "{")
    while text[at : at + 1] != "}":
        if found:
            at = _after(text, at, ",")
        if text[at : at + 1] != '"':
            raise ValueError("a member's name is missing")
        name, at = _decoder.raw_decode(text, at)
        start = _after(text, at, ":")
        value, end = _decoder.raw_decode(text, start)
        # Parsers differ in which of two equal names counts: none does.
        if name in found:
            raise ValueError("a name is there twice")
        found[name] = text[start:end].encode(), value
        at = _space.match(text, end).end()
    if _space.match(text, at + 1).end() != len(text):
        raise ValueError("something follows the object")
    return found


_texts_and_brackets = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def _check_depth(text: str) -> None:
    depth = 0
    for found in _texts_and_brackets.finditer(text):
        first = found[0][0]
        depth += (first in "[{") - (first in "]}")
        if depth > DEPTH_MAX:
            raise ValueError("nested too deep")


def _after(text: str, at: int, character: str) -> int:
    at = _space.match(text, at).end()
    if text[at : at + 1] != character:
        raise ValueError(f"{character} is missing")
    return _space.match(text, at + 1).end()


def _distinct(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _refuse(name: str):
    raise ValueError(f"{name} is not JSON")


def _base64(text: object) -> bytes:
    """Standard base64 with padding, in its one right form. Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError("base64 is missing")
    decoded = base64.b64decode(text, validate=True)
    if base64.b64encode(decoded).decode() != text:
        raise ValueError("not written as standard base64")
    return decoded


_instant_form = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


def _instant(text: object) -> float:
    try:
        if not isinstance(text, str) or not _instant_form.fullmatch(text):
            raise ValueError
        seconds, _, fraction = text[:-1].partition(".")
        moment = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
        return moment.timestamp() + float(f"0.{fraction or 0}")
    except ValueError:
        raise Distrusted("times", "an instant is missing or malformed") from None


# From here on: the check against the published test vectors. An application does not need it.


def vectors(folder: str):
    """Yields (file, name, verdict, wanted verdict)."""
    from pathlib import Path

    def read(name: str) -> dict:
        return json.loads((Path(folder) / f"{name}.json").read_bytes())

    def keys_of(file: dict) -> Keys:
        return {key["kid"]: key["public_key"] for key in file["keys"]}

    def expected_of(given: dict) -> Expected:
        clock, bound = given.get("clock") or {}, given.get("binding")
        now, highest = (
            None if clock.get(name) is None else _instant(clock[name]) for name in ("now", "highest_issued_at")
        )
        binding = bound and Binding(bound["kind"], bound["key"], {})
        texts = (given.get(name) for name in ("kind", "license_id", "product_id", "product_code"))
        return Expected(*texts, binding, given.get("nonce"), now, highest)

    def joined(chunks: list) -> bytes:
        return b"".join(base64.b64decode(chunk["base64"]) * chunk["times"] for chunk in chunks)

    def verdict(judged, *arguments) -> str:
        try:
            judged(*arguments)
            return "believe"
        except Distrusted as distrusted:
            return distrusted.rule

    file = read("signatures")
    for wanted, group in (("believe", "valid"), ("signature", "invalid")):
        for one in file[group]:
            body = f'{{"data":{one["canonical"]},"signature":{json.dumps(one["signature"])}}}'.encode()
            given = verdict(judge, keys_of(file), body, Expected())
            yield "signatures", one["name"], given, wanted

    file = read("responses")
    for one in file["vectors"]:
        expected = expected_of({**file["expected"], **one.get("expected", {})})
        given = verdict(judge, keys_of(file), one["response"].encode(), expected)
        yield "responses", one["name"], given, one.get("rule", one["verdict"])

    file = read("hostile")
    for one in file["responses"]:
        expected = expected_of({**file["expected"], **one.get("expected", {})})
        given = verdict(judge, keys_of(file), joined(one["body"]), expected)
        yield "hostile responses", one["name"], given, one.get("rule", one["verdict"])
    for name in ("hostile", "air-gap"):
        file = read(name)
        for one in file["envelopes"]:
            expected = expected_of({**file["expected"], **one.get("expected", {})})
            given = verdict(open_offline, keys_of(file), file["license_key"], joined(one["envelope"]), expected)
            yield f"{name} envelopes", one["name"], given, one.get("rule", one["verdict"])
    for one in file["requests"]:
        ids = {name: value for name, value in one["binding"].items() if name != "is_container"}
        binding = container(**ids) if one["binding"].get("is_container") else hardware(**ids)
        given = offline_request(binding, one["product_code"])
        yield "air-gap requests", one["name"], given, one["request"]

    file = read("offline-envelopes")
    for wanted, group in (("believe", "valid"), ("envelope", "invalid")):
        for one in file[group]:
            envelope = json.dumps(one["envelope"]).encode()
            given = verdict(open_offline, keys_of(file), one["license_key"], envelope, Expected())
            yield "offline-envelopes", one["name"], given, wanted

    for one in read("bindings")["vectors"]:
        request = {name: value for name, value in one["request"].items() if name != "is_container"}
        binding = hardware(**request) if one["kind"] == "hardware" else container(**request)
        yield "bindings", one["name"], f"{binding.kind} {binding.hash}", f"{one['kind']} {one['hash']}"

    for one in read("webhooks")["vectors"]:
        verify = verify_webhook if one["scheme"] == "service" else verify_standard_webhook
        try:
            verify(one["secrets"], one["headers"], base64.b64decode(one["body"]), one["now"])
            given = "genuine"
        except WebhookRefused as refused:
            given = refused.args[0]
        yield f"webhooks {one['scheme']}", one["name"], given, one.get("reason", one["verdict"])


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["vectors"] and len(arguments) == 2:
        differences = 0
        for file, name, given, wanted in vectors(arguments[1]):
            differences += given != wanted
            print(f"{file}: {name}: {given}" + ("" if given == wanted else f", but it should be {wanted}"))
        print(f"{differences} differences")
        return 1 if differences else 0
    if arguments[:1] == ["call"] and len(arguments) in (7, 8):
        base_url, license_key, product_code, fingerprint, kid, public_key, *envelopes = arguments[1:]
        client = Client(base_url, license_key, product_code, {kid: public_key}, hardware(fingerprint))
        calls = [(client.activate,), (client.validate,), *((client.open_offline, one.encode()) for one in envelopes)]
        for call, *given in calls:
            try:
                answer = call(*given)
                print(f"{call.__name__}: {answer.member} {answer.content.get('code', answer.content.get('status'))}")
            except Distrusted as distrusted:
                print(f"{call.__name__}: distrusted {distrusted.rule}")
        return 0
    print(
        "usage: licensing.py vectors FOLDER | call URL LICENSE_KEY PRODUCT_CODE FINGERPRINT KID PUBLIC_KEY [ENVELOPE]"
    )
    return 2


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
