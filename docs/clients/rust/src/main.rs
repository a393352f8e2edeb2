//! Checks licensing.rs against the published test vectors, and calls a service with it. An application does not need
//! it.

mod licensing;

use licensing::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};

type Members = BTreeMap<String, Json>;

struct VectorFile {
    members: Members,
    keys: Keys,
}

impl VectorFile {
    fn read(folder: &str, name: &str) -> Self {
        let json = std::fs::read_to_string(format!("{folder}/{name}.json")).expect("the file is there");
        let members: Members = licensing::members(&json)
            .expect("it is JSON")
            .into_iter()
            .map(|(name, (value, _))| (name, value))
            .collect();
        let keys = match members.get("keys") {
            Some(Json::Array(keys)) => keys
                .iter()
                .map(|key| (text(object(key), "kid").to_string(), text(object(key), "public_key").to_string()))
                .collect(),
            _ => Keys::new(),
        };
        Self { members, keys }
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &Members> {
        array(&self.members[name]).iter().map(object)
    }

    fn expected(&self, vector: &Members) -> Expected {
        let mut all = object(&self.members["expected"]).clone();
        if let Some(own) = vector.get("expected") {
            all.extend(object(own).clone());
        }
        let (binding, clock) = (object(&all["binding"]), object(&all["clock"]));
        let optional = |name: &str| match &all[name] {
            Json::Text(text) => Some(text.clone()),
            _ => None,
        };
        let time = |name: &str| match &clock[name] {
            Json::Text(text) => parse_instant(text),
            _ => None,
        };
        Expected {
            kind: optional("kind"),
            license_id: optional("license_id"),
            product_id: optional("product_id"),
            product_code: optional("product_code"),
            binding: Some(Binding {
                kind: text(binding, "kind").into(),
                key: text(binding, "key").into(),
                request: BTreeMap::new(),
            }),
            nonce: optional("nonce"),
            now_ms: time("now"),
            highest_issued_at_ms: time("highest_issued_at"),
        }
    }
}

fn object(value: &Json) -> &Members {
    if let Json::Object(members) = value {
        members
    } else {
        panic!("no object")
    }
}

fn array(value: &Json) -> &[Json] {
    if let Json::Array(items) = value {
        items
    } else {
        panic!("no array")
    }
}

fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    if let Some(Json::Text(text)) = members.get(name) {
        text
    } else {
        panic!("{name} is no text")
    }
}

fn wanted<'a>(vector: &'a Members, name: &str) -> &'a str {
    text(vector, if vector.contains_key(name) { name } else { "verdict" })
}

fn number(members: &Members, name: &str) -> i64 {
    if let Some(Json::Number(number)) = members.get(name) {
        *number as i64
    } else {
        panic!("{name} is no number")
    }
}

fn bytes(encoded: &str) -> Vec<u8> {
    if encoded.is_empty() {
        Vec::new()
    } else {
        from_base64(Some(encoded)).expect("base64")
    }
}

fn joined(chunks: &Json) -> Vec<u8> {
    let chunk = |chunk| bytes(text(object(chunk), "base64")).repeat(number(object(chunk), "times") as usize);
    array(chunks).iter().flat_map(chunk).collect()
}

/// An object of texts as JSON.
fn written(value: &Json) -> String {
    let member = |(name, _): (&String, &Json)| format!("{}:{}", quoted(name), quoted(text(object(value), name)));
    format!("{{{}}}", object(value).iter().map(member).collect::<Vec<_>>().join(","))
}

fn verdict(result: Result<Answer, Distrusted>) -> &'static str {
    result.map_or_else(|distrusted| distrusted.rule, |_| "believe")
}

struct Report {
    differences: u32,
}

impl Report {
    fn line(&mut self, file: &str, vector: &Members, given: &str, wanted: &str) {
        let note = if given == wanted { String::new() } else { format!(", but it should be {wanted}") };
        self.differences += u32::from(given != wanted);
        println!("{file}: {}: {given}{note}", text(vector, "name"));
    }
}

fn check_answers(folder: &str, report: &mut Report) {
    let file = VectorFile::read(folder, "signatures");
    for (group, wanted) in [("valid", "believe"), ("invalid", "signature")] {
        for one in file.list(group) {
            let signature = written(&one["signature"]);
            let body = format!(r#"{{"data":{},"signature":{signature}}}"#, text(one, "canonical"));
            report.line("signatures", one, verdict(judge(&file.keys, body.as_bytes(), &Expected::default())), wanted);
        }
    }
    let file = VectorFile::read(folder, "responses");
    for one in file.list("vectors") {
        let given = verdict(judge(&file.keys, text(one, "response").as_bytes(), &file.expected(one)));
        report.line("responses", one, given, wanted(one, "rule"));
    }
    let file = VectorFile::read(folder, "hostile");
    for one in file.list("responses") {
        let given = verdict(judge(&file.keys, &joined(&one["body"]), &file.expected(one)));
        report.line("hostile responses", one, given, wanted(one, "rule"));
    }
    for name in ["hostile", "air-gap"] {
        let file = VectorFile::read(folder, name);
        let key = text(&file.members, "license_key");
        for one in file.list("envelopes") {
            let given = verdict(open_offline(&file.keys, key, &joined(&one["envelope"]), &file.expected(one)));
            report.line(&format!("{name} envelopes"), one, given, wanted(one, "rule"));
        }
    }
    let file = VectorFile::read(folder, "offline-envelopes");
    for (group, wanted) in [("valid", "believe"), ("invalid", "envelope")] {
        for one in file.list(group) {
            let envelope = written(&one["envelope"]);
            let expected = Expected::default();
            let given = verdict(open_offline(&file.keys, text(one, "license_key"), envelope.as_bytes(), &expected));
            report.line("offline-envelopes", one, given, wanted);
        }
    }
}

fn binding_of(request: &Members) -> Binding {
    if request.contains_key("fingerprint") {
        return Binding::hardware(text(request, "fingerprint"));
    }
    let names = request.keys().filter(|name| *name != "is_container");
    Binding::container(&names.map(|name| (name.as_str(), text(request, name))).collect::<Vec<_>>())
}

fn check_others(folder: &str, report: &mut Report) {
    for one in VectorFile::read(folder, "bindings").list("vectors") {
        let binding = binding_of(object(&one["request"]));
        let given = format!("{} {}", binding.kind, binding.hash());
        report.line("bindings", one, &given, &format!("{} {}", text(one, "kind"), text(one, "hash")));
    }
    for one in VectorFile::read(folder, "air-gap").list("requests") {
        let given = offline_request(&binding_of(object(&one["binding"])), text(one, "product_code"));
        report.line("air-gap requests", one, &given, text(one, "request"));
    }
    for one in VectorFile::read(folder, "webhooks").list("vectors") {
        let secrets: Vec<&str> = array(&one["secrets"])
            .iter()
            .map(|secret| if let Json::Text(secret) = secret { secret.as_str() } else { panic!("no text") })
            .collect();
        let headers = object(&one["headers"]);
        let header = |name: &str| headers.get(name).map(|_| text(headers, name));
        let (body, now, scheme) = (bytes(text(one, "body")), number(one, "now"), text(one, "scheme"));
        let result = if scheme == "service" {
            verify_webhook(&secrets, header, &body, now)
        } else {
            verify_standard_webhook(&secrets, header, &body, now)
        };
        let given = match result {
            Ok(_) => "genuine",
            Err(WebhookRefused::HeadersMissing) => "headers_missing",
            Err(WebhookRefused::SignatureMalformed) => "signature_malformed",
            Err(WebhookRefused::TooOldOrNew) => "too_old_or_new",
            Err(WebhookRefused::SignatureWrong) => "signature_wrong",
        };
        report.line(&format!("webhooks {scheme}"), one, given, wanted(one, "reason"));
    }
}

/// For this check only: the program curl as HTTP client.
fn post_with_curl(url: &str, authorization: &str, body: &str) -> Result<Vec<u8>, String> {
    let mut curl = Command::new("curl")
        .args(["--silent", "--max-time", "15", "--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|problem| problem.to_string())?;
    let lines = [
        format!("url = {}", quoted(url)),
        format!("header = {}", quoted(&format!("Authorization: {authorization}"))),
        "header = \"Content-Type: application/json\"".to_string(),
        format!("data = {}", quoted(body)),
    ];
    let mut input = curl.stdin.take().ok_or("curl has no input")?;
    input.write_all(lines.join("\n").as_bytes()).map_err(|problem| problem.to_string())?;
    drop(input);
    curl.wait_with_output().map(|output| output.stdout).map_err(|problem| problem.to_string())
}

fn show(operation: &str, result: Result<Answer, Distrusted>) {
    match result {
        Ok(answer) if answer.is_refusal => println!("{operation}: error {}", answer.text("code").unwrap_or("")),
        Ok(answer) => println!("{operation}: data {}", answer.text("status").unwrap_or("")),
        Err(distrusted) => println!("{operation}: distrusted {}", distrusted.rule),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["vectors", folder] => {
            let mut report = Report { differences: 0 };
            check_answers(folder, &mut report);
            check_others(folder, &mut report);
            println!("{} differences", report.differences);
            if report.differences == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        ["call", url, license_key, product_code, fingerprint, kid, public_key, ref envelope @ ..]
            if envelope.len() < 2 =>
        {
            let keys = Keys::from([(kid.to_string(), public_key.to_string())]);
            let mut client = Client::new(url, license_key, product_code, keys, Binding::hardware(fingerprint));
            show("activate", client.activate(&post_with_curl));
            show("validate", client.validate(&post_with_curl));
            for one in envelope {
                show("open_offline", client.open_offline(one.as_bytes()));
            }
            ExitCode::SUCCESS
        }
        _ => {
            println!("usage: vectors FOLDER | call URL LICENSE_KEY PRODUCT_CODE FINGERPRINT KID PUBLIC_KEY [ENVELOPE]");
            ExitCode::from(2)
        }
    }
}
