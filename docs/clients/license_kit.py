"""The application kit in Python 3.10 or newer. Copy this file and licensing.py into the application.

    kit = LicenseKit("https://licenses.example.com", "editor-pro", KEYS, hardware(fingerprint), FileStore("license.json"))
    kit.start()                                   # validates and sends heartbeats in the background
    outcome = kit.activate(license_key)
    if kit.verdict.decision in ("run", "warn"):   # run, warn, ask, stop
        ...

It believes only responses that keep the rules of VERIFYING.md, and says what the application should do, as
docs/guides/kit.md explains. Methods that ask the service return an Outcome and raise nothing for the network. A kit may
be used by several threads: requests are sent one after another, and `verdict` and `features` never wait for one. Use
one kit for each machine and license.
"""

import base64
import http.client
import json
import logging
import math
import os
import re
import secrets
import socket
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from licensing import (
    BODY_BYTES_MAX,
    CLOCK_SKEW_SECONDS_MAX,
    Answer,
    Binding,
    Distrusted,
    Expected,
    Keys,
    decrypt,
    judge,
    members,
    offline_request,
    opener,
)

NAN, INF = math.nan, math.inf
HOUR = 3_600_000
"""Instants and waits are in milliseconds; a comparison with NaN, a missing instant, is false."""
INSTANT_MAX = 253_402_300_799_999
"""The end of the year 9999, which is the last one of a datetime and of a payload."""

# What a refusal ends: the license, the activation, the seat, or only the request; `again` is taken again once.
_RULES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("LICENSE_REVOKED", "LICENSE_SUSPENDED", "DEVICE_BLACKLISTED"), ("stop", "license")),
    **dict.fromkeys(("VM_NOT_ALLOWED", "CONTAINER_NOT_ALLOWED"), ("stop", "license")),
    **dict.fromkeys(("LICENSE_EXPIRED", "LICENSE_NOT_STARTED", "PRODUCT_MISMATCH"), ("ask", "license")),
    **dict.fromkeys(("VERSION_UNKNOWN", "VERSION_NOT_ENTITLED"), ("ask", "license")),
    **dict.fromkeys(("DEVICE_NOT_FOUND", "DEVICE_NOT_ACTIVE", "HEARTBEAT_OVERDUE"), ("stop", "activation")),
    **dict.fromkeys(("ACTIVATION_LIMIT_REACHED", "CONTAINER_LIMIT_REACHED"), ("ask", "activation")),
    **dict.fromkeys(("FLOATING_LIMIT_REACHED", "FLOATING_NOT_ENABLED"), ("ask", "seat")),
    **dict.fromkeys(("LEASE_EXPIRED", "LEASE_NOT_ACTIVE", "LEASE_NOT_FOUND"), ("stop", "seat")),
    "DEVICE_STATE_CONFLICT": ("run", "request"),
}
_AGAIN = {"DEVICE_NOT_FOUND", "DEVICE_NOT_ACTIVE", "HEARTBEAT_OVERDUE"}
_AGAIN |= {"LEASE_EXPIRED", "LEASE_NOT_ACTIVE", "LEASE_NOT_FOUND"}
_UNKNOWN = ("warn", "request")
"""A code that is not in the table, as FEATURE_DISABLED or one of a later service, ends nothing."""
_SEVERITY = {"run": 0, "warn": 1, "ask": 2, "stop": 3}

_KINDS = {
    **dict.fromkeys(("activate", "validate", "check", "consume"), "entitlement"),
    "deactivate": "deactivation",
    "offline": "offline",
    "floating/checkout": "floating_checkout",
    "floating/heartbeat": "floating_lease",
    "floating/checkin": "floating_lease",
}
_SLOTS = {"entitlement": "entitlement", "offline": "offline", "checkout": "floating_checkout", "lease": "floating_lease"}
_SLOT_OF = {kind: slot for slot, kind in _SLOTS.items()}
_KEEPING = {"activate", "validate", "floating/checkout", "floating/heartbeat"}
"""Operations that show until when the application may go on."""


@dataclass(frozen=True)
class Verdict:
    """What the application should do now: run, warn (and run), ask (the user must act first) or stop; and why."""

    decision: str
    reason: str
    refusal: dict | None = None
    """The signed refusal that decides, with what explains it."""
    ends_at: datetime | None = None
    """Until when the application may run if no further response comes."""


@dataclass(frozen=True)
class Outcome(Verdict):
    """What an operation came to. `decision` and `reason` hold for the application after it."""

    granted: bool = False
    data: dict | None = None
    """The signed payload."""
    broken_rule: str | None = None
    """The rule of VERIFYING.md that the response broke, if one came that was not believed."""
    problem: str | None = None
    """Why no believed response came: dns, refused, tls, timeout, response or network."""
    status: int | None = None
    """The HTTP status of a response that was not believed."""
    event_id: str | None = None
    """Of a consumption: pass it again to repeat the same one."""


@dataclass(frozen=True)
class Reply:
    """What a request got: a status and a body, or the problem that prevented it."""

    status: int | None = None
    body: bytes = b""
    retry_after: str = ""
    problem: str | None = None


class FileStore:
    """Keeps one text in a file that only the user can read: it has the license key."""

    def __init__(self, path: str):
        self.path = path

    def read(self) -> str | None:
        try:
            with open(self.path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        # A file of its own, because other processes of the application may be writing.
        folder, name = os.path.split(self.path)
        descriptor, new = tempfile.mkstemp(".new", f"{name}.", folder or ".")
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
        except BaseException:
            os.unlink(new)
            raise


class MemoryStore:
    """Forgets at the end of the process."""

    def __init__(self, text: str | None = None):
        self.text = text

    def read(self) -> str | None:
        return self.text

    def write(self, text: str) -> None:
        self.text = text


def send(url: str, headers: dict[str, str], body: bytes | None, timeout_seconds: float) -> Reply:
    """One request, with a limit of time and of size. TLS certificates are verified."""
    ends = time.monotonic() + timeout_seconds
    request = urllib.request.Request(url, body, headers)
    try:
        try:
            response = opener.open(request, timeout=timeout_seconds)
        except urllib.error.HTTPError as refused:
            response = refused
        with response:
            received = b""
            while len(received) <= BODY_BYTES_MAX and (chunk := response.read1(65_536)):
                if time.monotonic() > ends:
                    return Reply(problem="timeout")
                received += chunk
            if len(received) > BODY_BYTES_MAX:
                return Reply(response.status, problem="response")
            return Reply(response.status, received, response.headers.get("retry-after") or "")
    except (OSError, http.client.HTTPException, ValueError) as failure:
        return Reply(problem=_problem_of(failure))


def _problem_of(failure: Exception) -> str:
    reason = getattr(failure, "reason", failure)
    kinds = [(socket.gaierror, "dns"), (ConnectionRefusedError, "refused"), (ssl.SSLError, "tls")]
    kinds += [(TimeoutError, "timeout"), (ConnectionError, "network"), (http.client.HTTPException, "response")]
    return next((kind for types, kind in kinds if isinstance(reason, types)), "network")


@dataclass(frozen=True)
class Platform:
    """Replaces clock, network and randomness, for tests."""

    now: Callable[[], float] = lambda: time.time() * 1000
    send: Callable[[str, dict[str, str], bytes | None, float], Reply] = send
    random: Callable[[int], bytes] = secrets.token_bytes


_WHITE_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_WHITE_SPACE += "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What comes along with a text from the clipboard: the same in every kit."""


def license_key_of(typed: str) -> str:
    """A license key as a person types it, in the form as issued."""
    text = typed.strip(_WHITE_SPACE)
    symbols = re.sub("[- ]", "", text).upper()
    if len(text) > 64 or not re.fullmatch("[L1I]K[0-9A-TV-Z]{30}", symbols):
        return text
    body = symbols[2:].replace("O", "0").replace("I", "1").replace("L", "1")
    return "LK-" + "-".join(body[at : at + 5] for at in range(0, 30, 5))


@dataclass(frozen=True)
class _Believed:
    """A believed response, or why there is none."""

    answer: Answer | None = None
    text: str = ""
    reason: str | None = None
    rule: str | None = None
    problem: str | None = None
    status: int | None = None
    retry_after: float = 0

    @property
    def granted(self) -> bool:
        return self.answer is not None and self.answer.member == "data"

    @property
    def refusal(self) -> dict | None:
        return self.answer.content if self.answer is not None and self.answer.member == "error" else None

    @property
    def code(self) -> str:
        return str((self.refusal or {}).get("code"))

    @property
    def why(self) -> str | None:
        return self.reason if self.answer is None else self.code if self.refusal is not None else None


@dataclass(frozen=True)
class _Question:
    """What is asked, and what its answer must be."""

    path: str
    kind: str
    fields: dict
    binding: Binding | None = None
    """None where the answer has none, or that of another device."""
    device_id: str | None = None
    read: bool = False
    """Set for a GET, which has the fields in its query."""


class LicenseKit:
    """One machine's use of one license."""

    def __init__(
        self,
        base_url: str,
        product_code: str,
        keys: Keys,
        binding: Binding,
        store,
        *,
        app_version: str | None = None,
        tolerance_hours: float = 72,
        timeout_seconds: float = 15,
        trust_published_keys: bool = False,
        on_verdict: Callable[[Verdict], None] | None = None,
        platform: Platform = Platform(),
    ):
        """Reads the store, and believes of it what keeps the rules. Sends nothing."""
        if not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", base_url) or re.search(r"/api(/v\d+)?/*$", base_url):
            raise ValueError("base_url is the service's address, as https://licenses.example.com, before /api/v1")
        if not keys and not trust_published_keys:
            raise ValueError("keys needs the keys of GET /api/v1/system/public-keys")
        texts = keys.values() if isinstance(keys, Mapping) else [""]
        if not all(re.fullmatch("[A-Za-z0-9+/]{43}=", str(text)) for text in texts):
            raise ValueError(
                "keys has for each kid its public_key of GET /api/v1/system/public-keys: 32 bytes as base64"
            )
        if binding.kind == "hardware" and not binding.key:
            raise ValueError("binding needs a fingerprint, a text that stays the same on this machine")
        if not 0 < timeout_seconds <= 2_147_483:
            raise ValueError("timeout_seconds is more than 0 and at most 2147483")
        self._base_url = base_url.rstrip("/")
        self._product_code, self._built_in, self._binding, self._store = product_code, dict(keys), binding, store
        self._machine = {**binding.request, **({} if app_version is None else {"app_version": app_version})}
        self._tolerance, self._timeout, self._trusts = tolerance_hours * HOUR, timeout_seconds, trust_published_keys
        self._on_verdict, self._platform = on_verdict, platform
        self._thread: threading.Thread | None = None
        self._begin_process()
        if hasattr(os, "register_at_fork"):
            kit = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: (own := kit()) and own._begin_process())
        self._failures, self._keys_fetched_at = 0, -INF
        self._load()
        self._told = (self.verdict.decision, self.verdict.reason)

    def _begin_process(self) -> None:
        """A forked process has none of the threads of its parent, and the locks that they held."""
        self._asking, self._state, self._woken = threading.Lock(), threading.RLock(), threading.Condition()
        if self._thread is not None:
            self._thread = None
            self.start()

    # ---- What holds now ----

    @property
    def verdict(self) -> Verdict:
        with self._state:
            verdict = self._decide(self._platform.now())
            if verdict.decision == "run" and self._store_failed:
                return replace(verdict, decision="warn", reason="STORE_FAILED")
            return verdict

    @property
    def holding(self) -> str | None:
        """device, seat or None."""
        return self._holding

    @property
    def license(self) -> dict | None:
        """What the newest believed response says of the license, for an About box."""
        with self._state:
            return self._grant()

    @property
    def features(self) -> list[dict]:
        """The features that the application may use now: none if it must not run."""
        with self._state:
            if _SEVERITY[self.verdict.decision] > 1:
                return []
            now = self._platform.now()
            grant, checkout = self._grant() or {}, self._content("checkout") or {}
            found = grant.get("features", checkout.get("features", []))
            return [_of_period(one, now) for one in found if not now >= _millis(one.get("expires_at"))]

    def feature(self, code: str) -> dict | None:
        return next((one for one in self.features if one["code"] == code), None)

    # ---- Operations ----

    def activate(self, license_key: str | None = None) -> Outcome:
        """Activates this machine with the license key, or again with the stored one."""
        return self._alone(lambda: self._enter("activate", "device", license_key, {}))

    def start_trial(self, policy_code: str) -> Outcome:
        """Starts this machine's one trial of the product under this policy, without a license key."""
        return self._alone(lambda: self._begin_trial(policy_code))

    def checkout(self, license_key: str | None = None, until: datetime | None = None) -> Outcome:
        """Takes a floating seat; with `until`, a time with its zone, borrows it."""
        more = {} if until is None else {"until": _iso(_epoch_millis(until))}
        return self._alone(lambda: self._enter("floating/checkout", "seat", license_key, more))

    def validate(self) -> Outcome:
        """Asks whether the application may go on. It is the heartbeat of an activation."""
        return self._alone(lambda: self._use("validate", {}))

    def check(self) -> Outcome:
        """Asks the same, and writes nothing at the service."""
        return self._alone(lambda: self._use("check", {}))

    def consume(self, feature_code: str, amount: int | None = None, event_id: str | None = None) -> Outcome:
        """Counts use. Unless it is granted nothing is known to be counted: repeat it with the outcome's event_id."""
        event = str(uuid.uuid4()) if event_id is None else event_id
        more = {"feature_code": feature_code, "event_id": event, **({} if amount is None else {"amount": amount})}
        return replace(self._alone(lambda: self._use("consume", more)), event_id=event)

    def reverse(self, feature_code: str, event_id: str) -> Outcome:
        """Takes a whole consumption back. A repetition takes back nothing more."""
        event = f"{event_id}:reversed"
        more = {"feature_code": feature_code, "reverses": event_id, "event_id": event}
        return replace(self._alone(lambda: self._use("consume", more)), event_id=event)

    def issue_offline(self) -> Outcome:
        """Gets an offline envelope for this machine, and uses it from now on."""
        return self._alone(lambda: self._use("offline", {}))

    def offline_request(self) -> str:
        """The request of a machine without a network, as a text for a file or a QR code."""
        return offline_request(replace(self._binding, request=self._machine), self._product_code)

    def open_offline(self, envelope: str, license_key: str | None = None) -> Outcome:
        """Uses an offline envelope that was brought to this machine: alone, or in the whole response."""
        return self._alone(lambda: self._open(envelope, license_key))

    def list_devices(
        self, license_key: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> Outcome:
        """Lists the license's devices in `data`, the newest first. Needs no activation, and changes nothing."""
        page = {name: value for name, value in (("cursor", cursor), ("limit", limit)) if value is not None}
        question = _Question("devices", "devices", page, read=True)
        return self._alone(lambda: self._ask_aside(question, license_key))

    def deactivate_device(self, device_id: str, license_key: str | None = None) -> Outcome:
        """Deactivates another device of the license, which was lost: its slot becomes free."""
        path = f"devices/{urllib.parse.quote(device_id, safe='')}/deactivate"
        question = _Question(path, "deactivation", {}, device_id=device_id)
        return self._alone(lambda: self._ask_aside(question, license_key))

    def deactivate(self) -> Outcome:
        """Gives the activation back."""
        return self._alone(lambda: self._give_back("deactivate", {}))

    def checkin(self) -> Outcome:
        """Gives the seat back."""
        return self._alone(lambda: self._give_back("floating/checkin", {"lease_token": self._lease_token()}))

    # ---- In the background ----

    def start(self) -> None:
        """From now on validates at next_check_at and sends the seat's heartbeats, in a daemon thread, until `stop`."""
        with self._woken:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="license-kit", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        with self._woken:
            self._thread = None
            self._woken.notify_all()

    def wake(self) -> None:
        """Does at once what is due, and a retry that waits: after the machine slept, or when it is online again."""
        self._alone(lambda: self._keep(woken=True))

    def _run(self) -> None:
        me = threading.current_thread()
        while self._thread is me:
            self._alone(lambda: self._keep(woken=False))
            with self._woken:
                if self._thread is not me:
                    return
                # Timers stand still while a machine sleeps: the clock is read again at least each minute.
                wait = min(max(self._due_at - self._platform.now(), 1_000), 60_000)
                self._woken.wait(wait / 1000)

    # ---- Asking, one request after another ----

    def _alone(self, ask: Callable):
        with self._asking:
            outcome = ask()
        # Outside of the lock: the application may use the kit in its callback.
        self._tell()
        return outcome

    def _keep(self, woken: bool) -> None:
        """What is due: a heartbeat, or a validation."""
        now = self._platform.now()
        # A clock that was set back was ahead when the request was planned.
        due_at = min(self._due_at, self._wake_at) if woken else self._due_at
        if self._holding is None or self._planned_at <= now < due_at:
            return
        token = self._lease_token()
        if self._holding == "device":
            self._use("validate", {})
        elif token is None or "refusal" in self._responses:
            # A heartbeat is granted without a check of the version and the machine, so it lifts no refusal.
            self._enter("floating/checkout", "seat", None, {})
        else:
            self._use("floating/heartbeat", {"lease_token": token})

    def _enter(self, operation: str, holding: str, license_key: str | None, more: dict) -> Outcome:
        identity = self._identity_of(license_key)
        if identity is None:
            return self._outcome(_Believed(reason="NOT_ACTIVATED"))
        believed = self._ask(operation, more, identity)
        with self._state:
            if self._identity is None or identity[0] != self._identity[0]:
                return self._enter_with(operation, holding, identity[0], believed)
            return self._settle(operation, believed, holding if believed.granted else None)

    def _enter_with(self, operation: str, holding: str, license_key: str | None, believed: _Believed) -> Outcome:
        """Another license than before: until it is granted the one before stays."""
        with self._state:
            if believed.granted:
                self._begin(license_key)
                return self._settle(operation, believed, holding)
            if self._holding is None:
                self._missed = believed.why
            if believed.answer is not None:
                self._save()
            return self._outcome(believed)

    def _begin_trial(self, policy_code: str) -> Outcome:
        fields = {"policy_code": policy_code, "binding": self._machine}
        believed = self._send(_Question("trial", "entitlement", fields, self._binding), None)
        key = str(believed.answer.content.get("license_key")) if believed.granted else None
        return self._enter_with("activate", "device", key, believed)

    def _use(self, operation: str, more: dict) -> Outcome:
        """A request of what is held. What the service has forgotten is taken again, once."""
        if self._holding is None:
            return self._outcome(_Believed(reason="NOT_ACTIVATED"))
        believed = self._ask(operation, more, self._identity)
        if believed.refusal is None or believed.code not in _AGAIN:
            return self._settle(operation, believed)
        if operation == "offline" and self._holding == "seat":
            # Only an activation gets an envelope: its refusal is not about the seat.
            with self._state:
                self._settle(operation, believed)
                return self._outcome(believed, "warn")
        regaining = "floating/checkout" if self._holding == "seat" else "activate"
        regained = self._ask(regaining, {}, self._identity)
        outcome = self._settle(regaining, regained)
        if not regained.granted or operation not in ("consume", "offline"):
            return outcome
        return self._settle(operation, self._ask(operation, more, self._identity))

    def _open(self, envelope: str, license_key: str | None) -> Outcome:
        identity = self._identity_of(license_key)
        if identity is None:
            return self._outcome(_Believed(reason="NOT_ACTIVATED"))
        expected = self._expected("offline", identity, None, self._platform.now(), self._binding)
        believed = self._believing(lambda: self._opened(_envelope_in(envelope), identity[0], expected), None)
        with self._state:
            if believed.granted:
                if self._identity is None or identity[0] != self._identity[0]:
                    self._begin(identity[0])
                self._grant_from_file(believed)
                self._save()
            return self._outcome(believed)

    def _give_back(self, operation: str, more: dict) -> Outcome:
        if self._identity is None:
            return self._outcome(_Believed(reason="NOT_ACTIVATED"))
        # A seat that was lost has no token: nothing is left to give back.
        gone = operation == "floating/checkin" and more["lease_token"] is None
        believed = _Believed() if gone else self._ask(operation, more, self._identity)
        code = believed.code
        nothing = gone or code in ("DEVICE_STATE_CONFLICT", "DEVICE_NOT_FOUND") or code.startswith("LEASE_")
        with self._state:
            if believed.granted or nothing:
                self._release("device" if operation == "deactivate" else "seat")
            elif believed.refusal is not None:
                self._plan(operation, believed)
                self._refuse(believed)
            self._save()
            if not believed.granted and not nothing:
                return self._outcome(believed)
            data = believed.answer.content if believed.granted else None
            return Outcome(**vars(self.verdict), granted=True, data=data)

    def _ask_aside(self, question: _Question, license_key: str | None) -> Outcome:
        """A request about the license's other devices. Its refusal is not about this one, so it only warns."""
        identity = self._identity_of(license_key)
        if identity is None:
            return self._outcome(_Believed(reason="NOT_ACTIVATED"))
        believed = self._send(question, identity)
        with self._state:
            if believed.answer is not None:
                self._save()
            return self._outcome(believed, "warn")

    def _ask(self, operation: str, more: dict, identity: tuple) -> _Believed:
        machine = {} if operation in ("floating/heartbeat", "floating/checkin") else self._machine
        return self._send(_Question(operation, _KINDS[operation], {**machine, **more}, self._binding), identity)

    def _send(self, question: _Question, identity: tuple | None) -> _Believed:
        """Without an identity the request has no license key."""
        # No header and no license has another key, such as one with the dashes of a word processor.
        if identity is not None and re.fullmatch("[ -~]*", identity[0]) is None:
            return _Believed(reason="LICENSE_KEY_INVALID")
        nonce = base64.b64encode(self._platform.random(16)).decode()
        fields = {**question.fields, "nonce": nonce, "product_code": self._product_code}
        headers = {} if identity is None else {"Authorization": f"License {identity[0]}"}
        url, body = f"{self._base_url}/api/v1/license/{question.path}", None
        if question.read:
            url = f"{url}?{urllib.parse.urlencode(fields)}"
        else:
            headers["Content-Type"] = "application/json"
            body = json.dumps(fields).encode()
        reply = self._platform.send(url, headers, body, self._timeout)
        if reply.problem is not None:
            return _Believed(reason="NOT_REACHED", problem=reply.problem, status=reply.status)
        own = identity or (None, None, None)
        expected = self._expected(question.kind, own, nonce, self._platform.now(), question.binding)

        def judged() -> tuple[Answer, bytes]:
            # The envelope is signed, and so is what is in it.
            if question.kind == "offline" and judge(self._keys, reply.body, Expected()).member == "data":
                return self._opened(members(reply.body)["data"][0], own[0], expected)
            answer = judge(self._keys, reply.body, expected)
            other = answer.content.get("device_id") != question.device_id
            if question.device_id is not None and answer.member == "data" and other:
                raise Distrusted("binding", "another device answered")
            return answer, reply.body

        return self._believing(judged, reply, identity is None)

    def _opened(self, envelope: bytes, license_key: str, expected: Expected) -> tuple[Answer, bytes]:
        text = decrypt(license_key, envelope)
        return judge(self._keys, text, expected), text

    def _expected(
        self, kind: str, identity: tuple, nonce: str | None, now: float, binding: Binding | None
    ) -> Expected:
        _, license_id, product_id = identity
        highest = None if self._highest == -INF else self._highest / 1000
        return Expected(kind, license_id, product_id, self._product_code, binding, nonce, now / 1000, highest)

    def _believing(
        self, judged: Callable[[], tuple[Answer, bytes]], reply: Reply | None, trial: bool = False
    ) -> _Believed:
        try:
            try:
                answer, text = judged()
            except Distrusted as distrusted:
                if distrusted.rule != "kid" or not self._fetch_keys():
                    raise
                answer, text = judged()
            with self._state:
                self._see(answer.content.get("issued_at"))
            return _Believed(answer, text.decode())
        except Distrusted as distrusted:
            rule, status = distrusted.rule, None if reply is None else reply.status
        if rule == "times":
            return _Believed(reason="CLOCK_WRONG", rule=rule)
        seconds = "" if reply is None else reply.retry_after
        wait = min(int(seconds) * 1000, HOUR) if re.fullmatch("[0-9]{1,9}", seconds) else 0
        code = _code_in(reply.body) if reply is not None and rule == "signature" else None
        # Only these unsigned codes ask the user for something. A trial that is refused takes nothing away.
        of_key = status == 401 and code in ("LICENSE_KEY_INVALID", "LICENSE_KEY_MISSING")
        if code is not None and (status == 403 if trial else of_key):
            return _Believed(reason=code, retry_after=wait)
        return _Believed(
            reason="NOT_REACHED",
            rule=rule,
            problem=None if reply is None else "response",
            status=status,
            retry_after=wait,
        )

    def _fetch_keys(self) -> bool:
        """Only over TLS, or on this machine, does the connection vouch for the keys. At most once in ten minutes."""
        safe = re.match(r"https:|http://(localhost|127\.0\.0\.1|\[::1\])([:/]|$)", self._base_url)
        now = self._platform.now()
        if not self._trusts or not safe or abs(now - self._keys_fetched_at) < 600_000:
            return False
        self._keys_fetched_at = now
        reply = self._platform.send(f"{self._base_url}/api/v1/system/public-keys", {}, None, self._timeout)
        if reply.problem is not None or reply.status != 200:
            return False
        try:
            published = _keys_in(members(reply.body)["data"][1])
        except (ValueError, KeyError, RecursionError):
            return False
        with self._state:
            self._published = published
        return True

    @property
    def _keys(self) -> Keys:
        """A key that is built in is never replaced."""
        return {**self._published, **self._built_in} if self._trusts else self._built_in

    # ---- Memory: what is believed ----

    def _load(self) -> None:
        try:
            text, self._store_failed = self._store.read(), False
        except Exception:
            text, self._store_failed = None, True
        stored = _object_in(text)
        texts = stored["responses"] if isinstance(stored.get("responses"), dict) else {}
        key, license_id, product_id = (_text(stored.get(name)) for name in ("license_key", "license_id", "product_id"))
        self._identity = None if key is None else (key, license_id, product_id)
        holding = _text(stored.get("holding"))
        self._holding = holding if key is not None and holding in ("device", "seat") else None
        self._published = _keys_in(stored.get("published_keys")) if self._trusts else {}
        self._highest, self._missed, self._clock_ahead, self._used = -INF, None, False, None
        self._see(stored.get("highest_issued_at"))
        self._responses: dict[str, tuple[str, dict]] = {}
        for slot in (*_SLOTS, "refusal"):
            if _text(texts.get(slot)) is None:
                continue
            expected = Expected(_SLOTS.get(slot), license_id, product_id, self._product_code, self._binding)
            try:
                answer = judge(self._keys, texts[slot].encode(errors="replace"), expected)
            except Distrusted:
                continue
            if (answer.member == "error") == (slot == "refusal"):
                self._responses[slot] = texts[slot], answer.content
                self._see(answer.content.get("issued_at"))
        # The service is asked at once if nothing stored is believed, and for a seat, unless it is borrowed.
        seat = self._seat() or {}
        entitlement = self._content("entitlement") or {}
        waiting = bool(self._responses) if self._holding == "device" else "borrowed_until" in seat
        # A plan that is later than the service's own, and than any retry, was made while the clock was ahead.
        due = _millis(stored.get("due_at"))
        following = _millis(entitlement.get("next_check_at", seat.get("lease_expires_at")))
        plausible = due <= self._platform.now() + HOUR or due <= following + CLOCK_SKEW_SECONDS_MAX * 1000
        # What ended the use has perhaps ended since: the license was renewed, or the network is back.
        runs = _SEVERITY[self.verdict.decision] <= 1
        self._due_at = INF if self._holding is None else due if waiting and plausible and runs else 0
        self._planned_at, self._wake_at = -INF, INF

    def _content(self, slot: str) -> dict | None:
        return self._responses[slot][1] if slot in self._responses else None

    def _seat(self) -> dict | None:
        """The seat that is held."""
        return (self._content("lease") or self._content("checkout")) if self._holding == "seat" else None

    def _lease_token(self) -> str | None:
        return (self._content("checkout") or {}).get("lease_token")

    def _identity_of(self, license_key: str | None) -> tuple | None:
        if license_key is None:
            return self._identity
        key = license_key_of(license_key)
        return self._identity if self._identity is not None and self._identity[0] == key else (key, None, None)

    def _settle(self, operation: str, believed: _Believed, holding: str | None = None) -> Outcome:
        with self._state:
            self._plan(operation, believed)
            if believed.granted:
                self._take(believed, self._platform.now(), holding)
            elif believed.refusal is not None:
                self._refuse(believed)
            self._missed = believed.why if self._holding is None or believed.answer is None else None
            self._save()
            return self._outcome(believed)

    def _take(self, believed: _Believed, now: float, holding: str | None) -> None:
        """Believes a grant. `holding` is what it gives; if absent, the response only updates what is held."""
        content = believed.answer.content
        if self._identity is not None:
            self._identity = self._identity[0], str(content.get("license_id")), str(content.get("product_id"))
        self._responses.pop("refusal", None)
        self._clock_ahead = now - _millis(content.get("issued_at")) > CLOCK_SKEW_SECONDS_MAX * 1000
        slot = _SLOT_OF.get(content.get("kind"))
        if slot == "offline":
            # Only an activation gets an envelope: also beside a seat the machine has one.
            holding = "device"
        if self._holding is None:
            # Why nothing was held until now.
            self._missed = None
        if holding is not None and holding != self._holding:
            self._forget(keeps_token=holding == "device")
        self._holding = holding or self._holding
        # An entitlement to the holder of a seat outlasts the seat: the seat alone decides.
        of_seat = slot in ("checkout", "lease")
        if slot == "entitlement" and self._holding == "seat":
            self._used = content
        if slot is None or of_seat != (self._holding == "seat"):
            return
        if slot == "checkout":
            self._responses.pop("lease", None)
        self._responses[slot] = believed.text, content
        check_at = _millis(content.get("next_check_at"))
        if slot == "offline" and check_at < self._due_at:
            self._due_at = check_at

    def _grant_from_file(self, believed: _Believed) -> None:
        """A file was issued before: it changes neither the clock nor a newer refusal."""
        ahead, refusal = self._clock_ahead, self._responses.get("refusal")
        self._take(believed, 0, None)
        self._clock_ahead = ahead
        issued_at = _millis(believed.answer.content.get("issued_at"))
        if refusal is not None and _millis(refusal[1].get("issued_at")) > issued_at:
            self._forget(keeps_token=True)
            self._responses["refusal"] = refusal

    def _refuse(self, believed: _Believed) -> None:
        """What a refusal ends is forgotten, so that removing the refusal from the store gives nothing back."""
        refusal = believed.refusal
        reach = _RULES.get(believed.code, _UNKNOWN)[1]
        held = {"activation": "device", "seat": "seat"}.get(reach)
        if reach == "request" or (reach != "license" and held != self._holding):
            return
        checkout = self._content("checkout") or {}
        borrowed = _millis(checkout.get("borrowed_until")) > _millis(refusal.get("issued_at"))
        # Only a revocation ends a borrowed seat: after any other refusal it can still be given back.
        self._forget(keeps_token=borrowed and believed.code != "LICENSE_REVOKED")
        self._responses["refusal"] = believed.text, refusal

    def _release(self, given: str | None) -> None:
        """The activation or the seat was given back; the other one stays."""
        if given == "seat":
            self._responses.pop("checkout", None)
        if given == self._holding:
            self._forget(keeps_token=True)
            self._holding, self._missed, self._due_at = None, None, INF

    def _begin(self, license_key: str) -> None:
        self._release(self._holding)
        self._responses.clear()
        self._identity = license_key, None, None

    def _forget(self, keeps_token: bool) -> None:
        """Only the token in the checkout gives a seat back, also beside an activation."""
        self._used = None
        for slot in _SLOTS:
            if slot != "checkout" or not keeps_token:
                self._responses.pop(slot, None)

    def _see(self, issued_at: object) -> None:
        """Of every believed answer, also one that changes nothing else: the clock must not fall behind it."""
        if _millis(issued_at) > self._highest:
            self._highest = _millis(issued_at)

    def _save(self) -> None:
        key, license_id, product_id = self._identity or (None, None, None)
        stored = {
            "license_key": key,
            "license_id": license_id,
            "product_id": product_id,
            "holding": self._holding,
            "highest_issued_at": _iso(self._highest),
            "due_at": _iso(self._due_at),
        }
        kept = {name: value for name, value in stored.items() if value is not None}
        kept["published_keys"] = [{"kid": kid, "public_key": key} for kid, key in self._published.items()]
        kept["responses"] = {slot: text for slot, (text, _) in self._responses.items()}
        try:
            self._store.write(json.dumps(kept, ensure_ascii=False))
            self._store_failed = False
        except Exception:
            self._store_failed = True

    # ---- Deciding: a function of what is believed and the time ----

    def _decide(self, now: float) -> Verdict:
        if now < self._highest - CLOCK_SKEW_SECONDS_MAX * 1000:
            return Verdict("ask", "CLOCK_WRONG")
        refusal = self._content("refusal")
        if refusal is not None:
            code = str(refusal.get("code"))
            return Verdict(_RULES.get(code, _UNKNOWN)[0], code, refusal)
        if self._holding is None:
            return Verdict("ask", self._missed or "NOT_ACTIVATED")
        return self._seat_verdict(now) if self._holding == "seat" else self._device_verdict(now)

    def _seat_verdict(self, now: float) -> Verdict:
        seat = self._seat() or {}
        ends_at = _millis(seat.get("lease_expires_at"))
        if not now < ends_at:
            return self._ended("SEAT_ENDED")
        # A heartbeat is due after a third of the term: after two thirds at least one was missed. A borrowed seat needs none.
        term = ends_at - _millis(seat.get("issued_at"))
        return self._living(seat, now, ends_at, max(ends_at - term / 3, _finite(_millis(seat.get("borrowed_until")))))

    def _device_verdict(self, now: float) -> Verdict:
        grant = self._newest_grant()
        if grant is None:
            return self._ended("NOT_REACHED")
        end = grant.get("access_ends_at", grant.get("expires_at"))
        access_end = INF if end is None else _millis(end)
        if now >= access_end:
            return Verdict("ask", "CLOCK_WRONG" if self._clock_ahead else "LICENSE_EXPIRED")
        check_at = _millis((self._content("entitlement") or {}).get("next_check_at"))
        offline_end = _millis((self._content("offline") or {}).get("offline_expires_at"))
        ends_at = min(max(_finite(check_at) + self._tolerance, _finite(offline_end)), access_end, INSTANT_MAX)
        if not now < ends_at:
            return self._ended("NOT_REACHED")
        verdict = self._living(grant, now, ends_at, max(_finite(check_at), _finite(offline_end)))
        offline = not now < check_at and now < offline_end
        return replace(verdict, reason="OFFLINE") if offline and verdict.reason == "LICENSED" else verdict

    def _living(self, content: dict, now: float, ends_at: float, warn_at: float) -> Verdict:
        """Runs until `warn_at`, then warns."""
        end = _datetime(ends_at)
        if content.get("status") == "grace_period" or now >= _millis(content.get("expires_at")):
            return Verdict("warn", "GRACE_PERIOD", None, end)
        if self._clock_ahead:
            return Verdict("warn", "CLOCK_WRONG", None, end)
        if self._missed not in (None, "NOT_REACHED"):
            return Verdict("warn", self._missed, None, end)
        return Verdict("run", "LICENSED", None, end) if now < warn_at else Verdict("warn", "NOT_REACHED", None, end)

    def _ended(self, reason: str) -> Verdict:
        """Nothing believed allows the use any more: stops, unless the user can do something about it."""
        if self._clock_ahead:
            return Verdict("ask", "CLOCK_WRONG")
        return Verdict("stop", reason) if self._missed in (None, "NOT_REACHED") else Verdict("ask", self._missed)

    def _newest_grant(self) -> dict | None:
        entitlement, offline = self._content("entitlement"), self._content("offline")
        if offline is None:
            return entitlement
        newer = _millis((entitlement or {}).get("issued_at")) >= _millis(offline.get("issued_at"))
        return entitlement if newer else offline

    def _grant(self) -> dict | None:
        """The newest believed response that grants something."""
        if self._holding != "seat":
            return self._newest_grant()
        newest = self._used
        for one in (self._content("lease"), self._content("checkout")):
            if newest is None or _millis((one or {}).get("issued_at")) > _millis(newest.get("issued_at")):
                newest = one
        return newest

    # ---- When to ask next ----

    def _plan(self, operation: str, believed: _Believed) -> None:
        # With a seat only its lease counts: a validation does not put off the next heartbeat, unless it is refused.
        of_seat = operation == "validate" and self._holding == "seat"
        # What refuses the license may be lifted: it is asked again soon, whatever was refused.
        is_end = believed.refusal is not None and _RULES.get(believed.code, _UNKNOWN)[1] == "license"
        if not is_end and (operation not in _KEEPING or (of_seat and believed.refusal is None)):
            return
        self._failures = 0 if believed.granted else self._failures + 1
        wait = _wait_of(believed.answer.content) if believed.granted else self._retry_wait(believed)
        self._planned_at = self._platform.now()
        self._due_at = self._planned_at + wait
        # The application that calls wake knows that the machine is online: a retry need not wait as long.
        self._wake_at = self._planned_at + max(believed.retry_after, 10_000) if believed.answer is None else INF
        with self._woken:
            self._woken.notify_all()

    def _retry_wait(self, believed: _Believed) -> float:
        if believed.code == "LICENSE_REVOKED":
            return INF
        seat = self._seat()
        most = HOUR if seat is None else min(_wait_of(seat), HOUR)
        backoff = min(10_000 * 2 ** min(self._failures - 1, 20), most)
        spread = 0.2 * self._platform.random(1)[0] / 255
        seconds = (believed.refusal or {}).get("retry_after_seconds")
        # A refusal perhaps asks for days: a vendor may lift it before, and a seat needs its heartbeats.
        asked = seconds * 1000 if isinstance(seconds, (int, float)) else believed.retry_after
        return max(min(asked, most), backoff * (1 - spread))

    # ---- Telling ----

    def _outcome(self, believed: _Believed, given: str | None = None) -> Outcome:
        """The stricter of the refusal's own or the given decision, and the verdict after it."""
        verdict = self.verdict
        if believed.granted:
            return Outcome(**vars(verdict), granted=True, data=believed.answer.content)
        if believed.refusal is not None:
            decision = given or _RULES.get(believed.code, _UNKNOWN)[0]
            if _SEVERITY[verdict.decision] <= _SEVERITY[decision]:
                verdict = replace(verdict, decision=decision, reason=believed.code)
            return Outcome(**{**vars(verdict), "refusal": believed.refusal})
        reason = believed.reason if _SEVERITY[verdict.decision] <= 1 else verdict.reason
        found = {"broken_rule": believed.rule, "problem": believed.problem, "status": believed.status}
        return Outcome(**{**vars(verdict), "reason": reason}, **found)

    def _tell(self) -> None:
        with self._state:
            verdict = self.verdict
            words = verdict.decision, verdict.reason
            changed, self._told = words != self._told, words
        if changed and self._on_verdict is not None:
            try:
                self._on_verdict(verdict)
            except Exception:
                # The application's own error: the kit goes on.
                logging.getLogger(__name__).exception("on_verdict failed")


def _wait_of(content: dict) -> float:
    """By the service's own instants, because this machine's clock may differ."""
    issued, lease_end = _millis(content.get("issued_at")), _millis(content.get("lease_expires_at"))
    if math.isnan(lease_end):
        # Perhaps a renewal has moved the expiry, and no grace period begins.
        check_at, expiry = _millis(content.get("next_check_at")), _millis(content.get("expires_at"))
        wait = (expiry if issued < expiry < check_at else check_at) - issued
    elif lease_end <= _millis(content.get("borrowed_until")):
        # Shortly before its end a heartbeat makes a borrowed seat an ordinary one without a gap.
        wait = lease_end - issued - 30_000
    else:
        wait = (lease_end - issued) / 3
    return max(HOUR if math.isnan(wait) else wait, 5_000)


def _of_period(feature: dict, now: float) -> dict:
    """In a new period of the quota nothing is known of its use until the next response."""
    if not now >= _millis(feature.get("resets_at")):
        return feature
    kept = {name: value for name, value in feature.items() if name not in ("consumed", "remaining", "overage")}
    return {**kept, "is_usage_unknown": True}


def _envelope_in(text: str) -> bytes:
    """The envelope in a text: alone, or as the `data` of a whole response. Editors add white space and byte order marks."""
    trimmed = text.strip(_WHITE_SPACE).encode(errors="replace")
    try:
        found = members(trimmed)
        return trimmed if "ciphertext" in found or "data" not in found else found["data"][0]
    except (ValueError, RecursionError):
        return trimmed


def _code_in(body: bytes) -> str | None:
    try:
        return _text(members(body)["error"][1].get("code"))
    except (ValueError, KeyError, AttributeError, RecursionError):
        return None


def _object_in(text: str | None) -> dict:
    try:
        found = json.loads(text) if isinstance(text, str) and len(text) <= 16_777_216 else {}
        return found if isinstance(found, dict) else {}
    except (ValueError, RecursionError):
        return {}


def _keys_in(listed: object) -> Keys:
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    pairs = [(_text(one.get("kid")), _text(one.get("public_key"))) for one in entries]
    return dict([pair for pair in pairs if None not in pair][:64])


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_instant_form = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,6})?Z", re.ASCII)
_epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _millis(text: object) -> float:
    """Milliseconds of an instant as the service writes it, or NaN."""
    found = _instant_form.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return NAN
    try:
        moment = datetime(*(int(part) for part in found.groups()[:6]), tzinfo=timezone.utc)
    except ValueError:
        return NAN
    return _epoch_millis(moment) + int((found[7] or ".0")[1:].ljust(3, "0")[:3])


def _epoch_millis(moment: datetime) -> float:
    return (moment - _epoch) // timedelta(milliseconds=1)


def _datetime(millis: float) -> datetime:
    return _epoch + timedelta(milliseconds=math.trunc(millis))


def _iso(millis: float) -> str | None:
    if not math.isfinite(millis):
        return None
    return _datetime(min(millis, INSTANT_MAX)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _finite(millis: float) -> float:
    return -INF if math.isnan(millis) else millis
