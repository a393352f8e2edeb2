"""Checks licensing.py and license_kit.py against the published test vectors, and uses them with a service.

An application does not need it: python3 license_kit_check.py vectors schema/vectors
"""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import licensing
from license_kit import FileStore, LicenseKit, MemoryStore, Outcome, Platform, Reply, license_key_of
from licensing import hardware


class Machine:
    """A machine with the clock, the network and the store that a scenario gives."""

    def __init__(self, file: dict, scenario: dict):
        self.file, self.random = file, scenario.get("random", 0)
        self.options = {**file["options"], **scenario.get("options", {})}
        self.store, self.now, self.given, self.asked = MemoryStore(), 0.0, [], []

    def take(self, step: dict) -> dict:
        self.now = datetime.fromisoformat(step["at"].replace("Z", "+00:00")).timestamp() * 1000
        self.given, self.asked = list(step.get("given", [])), []
        if step["do"] == "open":
            self.open(step)
        outcome = self.operate(step["do"], step.get("with", {}))
        verdict, kit = self.kit.verdict, self.kit
        found = {"decision": verdict.decision, "reason": verdict.reason}
        if isinstance(outcome, Outcome):
            word = "granted" if outcome.granted else "refused" if outcome.refusal is not None else "missed"
            found["outcome"] = f"{word} {outcome.decision} {outcome.reason}"
            found |= {"broken_rule": outcome.broken_rule, "problem": outcome.problem}
        if verdict.ends_at is not None:
            found["ends_at"] = verdict.ends_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found["features"] = [self.words(one) for one in kit.features] or None
        found["asked"] = self.asked or None
        found["stored"] = None if self.store.text is None else self.summary(self.store.text)
        return {name: value for name, value in found.items() if value is not None}

    def open(self, step: dict) -> None:
        self.options |= step.get("options", {})
        if "store" in step:
            self.store.text = step["store"]
        if "forget" in step or "put" in step:
            stored = json.loads(self.store.text)
            for slot in step.get("forget", []):
                stored["responses"].pop(slot)
            stored["responses"] |= {slot: self.file["responses"][name] for slot, name in step.get("put", {}).items()}
            self.store.text = json.dumps(stored)
        options = self.options
        keys = {key["kid"]: key["public_key"] for key in self.file["keys"] if key["kid"] in options["built_in"]}
        self.kit = LicenseKit(
            "https://licenses.example.com",
            options["product_code"],
            keys,
            hardware(options["binding"]["fingerprint"]),
            self.store,
            tolerance_hours=options["tolerance_hours"],
            trust_published_keys=options["trust_published_keys"],
            platform=Platform(
                lambda: self.now,
                self.send,
                lambda count: bytes([self.random]) if count == 1 else bytes(count),
            ),
        )

    def operate(self, operation: str, given: dict) -> Outcome | None:
        kit, key = self.kit, given.get("license_key")
        match operation:
            case "open" | "look":
                return None
            case "activate":
                return kit.activate(key)
            case "checkout":
                until = given.get("until")
                return kit.checkout(key, until and datetime.fromisoformat(until.replace("Z", "+00:00")))
            case "open_offline":
                return kit.open_offline(self.file["responses"].get(given.get("file"), ""), key)
        return getattr(kit, operation)(**given)

    def send(self, url: str, _headers: dict, body: bytes | None, _timeout: float) -> Reply:
        path = url.partition("?")[0].partition("/api/v1/")[2].removeprefix("license/")
        sent, names = json.loads(body or b"{}"), ("event_id", "until", "policy_code")
        self.asked.append(" ".join([path, *(sent[name] for name in names if name in sent)]))
        given = self.given.pop(0) if self.given else {"fails": "refused"}
        if "fails" in given:
            return Reply(problem=given["fails"])
        text = self.file["responses"][given["response"]]
        return Reply(given.get("status", 200), text.encode(), str(given.get("retry_after", "")))

    @staticmethod
    def words(feature: dict) -> str:
        rest = "unknown" if feature.get("is_usage_unknown") else feature.get("remaining")
        return feature["code"] if rest is None else f"{feature['code']} {rest}"

    def summary(self, text: str) -> dict:
        names = {response: name for name, response in self.file["responses"].items()}
        try:
            stored = json.loads(text)
            published = sorted(key["kid"] for key in stored.pop("published_keys", []))
            texts = stored.get("responses")
            kept = {slot: names.get(one, "unknown") for slot, one in texts.items()} if isinstance(texts, dict) else {}
            return {**stored, **({"published_keys": published} if published else {}), "responses": kept}
        except (ValueError, AttributeError, TypeError):
            return {"malformed": True}


def check(folder: str) -> int:
    differences = 0

    def report(title: str, given: object, wanted: object, shown: str) -> None:
        nonlocal differences
        differences += given != wanted
        print(f"{title}: {shown}" if given == wanted else f"{title}: {given}, but it should be {wanted}")

    for name, title, given, wanted in licensing.vectors(folder):
        report(f"{name}: {title}", given, wanted, given)
    file = json.loads((Path(folder) / "decisions.json").read_bytes())
    for scenario in file["scenarios"]:
        machine = Machine(file, scenario)
        for number, step in enumerate(scenario["steps"], 1):
            title = f"decisions: {scenario['name']}, step {number}"
            report(title, machine.take(step), step["expected"], "as expected")
    for one in json.loads((Path(folder) / "license-keys.json").read_bytes())["valid"]:
        key = license_key_of(one["input"])
        report(f"license-keys: {one['input']}", key, one["canonical"], key)
    print(f"{differences} differences")
    return 1 if differences else 0


def live(arguments: list[str]) -> int:
    """A life of an application at a running service, and with servers that are none."""
    url, hostile, license_key, product_code, fingerprint, kid, public_key, path = arguments

    def opened(base_url: str, store=None, timeout: float = 15) -> LicenseKit:
        keys = {kid: public_key}
        given = store or FileStore(path)
        return LicenseKit(base_url, product_code, keys, hardware(fingerprint), given, timeout_seconds=timeout)

    def say(title: str, outcome: Outcome) -> None:
        granted = "granted" if outcome.granted else "not granted"
        print(f"{title}: {granted}, {outcome.decision} {outcome.reason}" + (f", {outcome.problem}" if outcome.problem else ""))

    kit = opened(url)
    say("activate", kit.activate(license_key.lower()))
    say("validate", kit.validate())
    used = kit.consume("export", 2)
    say("consume", used)
    say("consume again", kit.consume("export", 2, used.event_id))
    if kit.consume("export", 2, "").granted:
        raise SystemExit("a use without an id is counted")
    print(f"remaining: {kit.feature('export')['remaining']}")
    say("consume too much", kit.consume("export", 1000))
    say("offline", kit.issue_offline())
    again = opened(hostile + "/none")
    print(f"restart: {again.verdict.decision} {again.verdict.reason}")
    with contextlib.suppress(ValueError):
        LicenseKit(url, product_code, {kid: f"-----BEGIN {public_key}"}, hardware(fingerprint), MemoryStore())
        print("a key in another form: opened")
    print("a key in another form: not opened")
    for name in ("redirect", "large", "page", "slow", "closed"):
        timeout = 0.5 if name == "slow" else 15
        say(name, opened(f"{hostile}/{name}", MemoryStore(FileStore(path).read()), timeout).validate())
    for name in ("redirect", "closed"):
        with contextlib.suppress(licensing.Distrusted):
            known = {kid: public_key}
            licensing.Client(f"{hostile}/{name}", license_key, product_code, known, hardware(fingerprint)).validate()
    say("devices", kit.list_devices(limit=10))
    say("other device", kit.deactivate_device("none/of these"))
    say("deactivate", kit.deactivate())
    say("checkout", kit.checkout())
    kit.start()
    last = opened(url)
    # After a start with a seat, a heartbeat is due at once.
    last.start()
    threads = [threading.Thread(target=lambda: [last.check() and last.features for _ in range(3)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last.stop()
    kit.stop()
    print(f"threads: {last.verdict.decision} {last.verdict.reason}, {last.feature('export')['remaining']}")
    say("checkin", last.checkin())
    keys, store = {kid: public_key}, MemoryStore()
    check_fork(lambda given: LicenseKit(url, product_code, keys, hardware(fingerprint), store, platform=given))
    tried = opened(url, MemoryStore())
    say("trial", tried.start_trial("trial"))
    say("trial again", opened(url, MemoryStore()).start_trial("trial"))
    print(f"devices: {len(tried.list_devices().data['devices'])}")
    return 0


def check_fork(kit_of: Callable[[Platform], LicenseKit]) -> None:
    """A child of a process that is sending a request asks, too, and in the background if its parent does."""
    asked, never, parent = threading.Event(), threading.Event(), os.getpid()

    def send(*_: object) -> Reply:
        asked.set()
        if os.getpid() == parent:
            never.wait()
        return Reply(problem="refused")

    kit = kit_of(Platform(send=send))
    threading.Thread(target=kit.activate, args=("a license key",), daemon=True).start()
    asked.wait()
    kit.start()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        kit.activate("a license key")
        os._exit(0 if threading.active_count() == 2 else 1)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit("a forked process does not ask")


if __name__ == "__main__":
    if sys.argv[1:2] == ["vectors"] and len(sys.argv) == 3:
        sys.exit(check(sys.argv[2]))
    sys.exit(live(sys.argv[2:]) if sys.argv[1:2] == ["live"] else licensing.main(sys.argv[1:]))
