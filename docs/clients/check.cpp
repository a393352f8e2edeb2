// Tests licensing.hpp and license_kit.hpp against the published test vectors, and calls a service with them. An
// application does not need it.
//   g++ -std=c++17 check.cpp -lcrypto -lcurl -o check && ./check vectors ../../schema/vectors
#include "license_kit.hpp"

#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

using namespace licensing;

static int differences = 0;

static void report(const std::string& file, const Json& vector, const std::string& given, const std::string& wanted) {
  bool same = given == wanted;
  if (!same) differences++;
  std::cout << file << ": " << *vector.text_of("name") << ": " << given << (same ? "" : ", but it should be " + wanted)
            << "\n";
}

static std::string verdict(const std::function<void()>& attempt) {
  try {
    attempt();
    return "believe";
  } catch (const Distrusted& distrusted) { return distrusted.rule; }
}

struct VectorFile {
  std::string text;
  Json json;
  Keys keys;
  VectorFile(const std::string& folder, const std::string& name) {
    std::ifstream in(folder + "/" + name + ".json");
    std::stringstream all;
    all << in.rdbuf();
    text = all.str();
    json = JsonReader::object(text);
    if (const Json* list = json.find("keys")) {
      for (const Json& key : list->items) keys[*key.text_of("kid")] = *key.text_of("public_key");
    }
  }
  const std::vector<Json>& list(const char* name) const { return json.find(name)->items; }
};

static Expected expected_of(const VectorFile& file, const Json& vector) {
  const Json *shared = file.json.find("expected"), *own = vector.find("expected");
  auto member = [&](const char* name) { return own && own->find(name) ? own->find(name) : shared->find(name); };
  auto text = [&](const char* name) {
    return member(name)->type == Json::text ? std::optional(member(name)->string) : std::nullopt;
  };
  auto time = [&](const char* name) {
    std::optional<std::string> written = member("clock")->text_of(name);
    return written ? std::optional(instant(written, name)) : std::nullopt;
  };
  Binding binding{*member("binding")->text_of("kind"), *member("binding")->text_of("key"), ""};
  return {text("kind"), text("license_id"), text("product_id"), text("product_code"),
          binding,      text("nonce"),      time("now"),        time("highest_issued_at")};
}

static std::string joined(const Json& chunks) {
  std::string out;
  for (const Json& chunk : chunks.items) {
    if (chunk.text_of("base64") == "") continue;
    std::string bytes = from_base64(chunk.text_of("base64"));
    for (double times = chunk.find("times")->value; times > 0; times--) out += bytes;
  }
  return out;
}

static std::string wanted_of(const Json& vector, const char* name) {
  return vector.text_of(name).value_or(*vector.text_of("verdict"));
}

static void check_answers(const std::string& folder) {
  VectorFile signatures(folder, "signatures"), responses(folder, "responses"), hostile(folder, "hostile");
  VectorFile offline(folder, "offline-envelopes");
  for (const char* group : {"valid", "invalid"}) {
    bool valid = std::strcmp(group, "valid") == 0;
    for (const Json& one : signatures.list(group)) {
      std::string body = "{\"data\":" + *one.text_of("canonical") +
                         ",\"signature\":" + std::string(one.find("signature")->raw(signatures.text)) + "}";
      report("signatures", one, verdict([&] { judge(signatures.keys, body, {}); }), valid ? "believe" : "signature");
    }
    for (const Json& one : offline.list(group)) {
      std::string given = verdict([&] {
        open_offline(offline.keys, *one.text_of("license_key"), one.find("envelope")->raw(offline.text), {});
      });
      report("offline-envelopes", one, given, valid ? "believe" : "envelope");
    }
  }
  for (const Json& one : responses.list("vectors")) {
    std::string given = verdict([&] { judge(responses.keys, *one.text_of("response"), expected_of(responses, one)); });
    report("responses", one, given, wanted_of(one, "rule"));
  }
  for (const Json& one : hostile.list("responses")) {
    std::string body = joined(*one.find("body"));
    std::string given = verdict([&] { judge(hostile.keys, body, expected_of(hostile, one)); });
    report("hostile responses", one, given, wanted_of(one, "rule"));
  }
  for (const std::string name : {"hostile", "air-gap"}) {
    VectorFile file(folder, name);
    for (const Json& one : file.list("envelopes")) {
      std::string body = joined(*one.find("envelope")), key = *file.json.text_of("license_key");
      std::string given = verdict([&] { open_offline(file.keys, key, body, expected_of(file, one)); });
      report(name + " envelopes", one, given, wanted_of(one, "rule"));
    }
  }
}

static Binding binding_of(const Json& request) {
  std::map<std::string, std::string> ids;
  for (const auto& [name, index] : request.names) {
    if (request.items[index].type == Json::text) ids[name] = request.items[index].string;
  }
  return ids.count("fingerprint") ? hardware(ids["fingerprint"]) : container(ids);
}

static void check_others(const std::string& folder) {
  VectorFile bindings(folder, "bindings"), webhooks(folder, "webhooks"), air_gap(folder, "air-gap");
  for (const Json& one : bindings.list("vectors")) {
    Binding binding = binding_of(*one.find("request"));
    report("bindings", one, binding.kind + " " + binding.hash(), *one.text_of("kind") + " " + *one.text_of("hash"));
  }
  for (const Json& one : air_gap.list("requests")) {
    std::string given = offline_request(binding_of(*one.find("binding")), *one.text_of("product_code"));
    report("air-gap requests", one, given, *one.text_of("request"));
  }
  for (const Json& one : webhooks.list("vectors")) {
    std::vector<std::string> secrets;
    for (const Json& secret : one.find("secrets")->items) secrets.push_back(secret.string);
    Headers headers;
    const Json& given_headers = *one.find("headers");
    for (const auto& [name, index] : given_headers.names) headers[name] = given_headers.items[index].string;
    std::string body = one.text_of("body") == "" ? "" : from_base64(one.text_of("body"));
    auto now = static_cast<std::int64_t>(one.find("now")->value);
    std::string given = "genuine";
    try {
      (one.text_of("scheme") == "service" ? verify_webhook : verify_standard_webhook)(secrets, headers, body, now);
    } catch (const WebhookRefused& refused) { given = refused.what(); }
    report("webhooks " + *one.text_of("scheme"), one, given, wanted_of(one, "reason"));
  }
}

static std::string post_with_kit(const std::string& url, const std::string& authorization, const std::string& body) {
  Reply reply = send_with_curl({url, authorization, body, 15'000});
  if (!reply.problem.empty()) throw Distrusted("signature", "the service was not reached");
  return reply.body;
}

// ---- Decisions ----

// A JSON value with sorted names, to compare.
static std::string shown(const Json& value) {
  std::string text;
  switch (value.type) {
    case Json::text:
      return json_text(value.string);
    case Json::number:
      return std::to_string(std::int64_t(value.value));
    case Json::boolean:
      return value.truth ? "true" : "false";
    case Json::array:
      for (const Json& item : value.items) text += (text.empty() ? "" : ",") + shown(item);
      return "[" + text + "]";
    case Json::object:
      for (const auto& [name, index] : value.names)
        text += (text.empty() ? "" : ",") + json_text(name) + ":" + shown(value.items[index]);
      return "{" + text + "}";
    case Json::null:
      break;
  }
  return "null";
}

using Shown = std::map<std::string, std::string>;

static std::string shown(const Shown& members) {
  std::string text;
  for (const auto& [name, value] : members) text += (text.empty() ? "" : ",") + json_text(name) + ":" + value;
  return "{" + text + "}";
}

static std::string shown(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) text += (text.empty() ? "" : ",") + json_text(one);
  return "[" + text + "]";
}

struct Memory : Store {
  std::optional<std::string> text;
  std::optional<std::string> read() override { return text; }
  void write(const std::string& written) override { text = written; }
};

static std::string iso_of(std::int64_t ms) {
  std::time_t seconds = std::time_t(ms / 1000);
  char text[40];
  std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", std::gmtime(&seconds));
  std::snprintf(text + length, sizeof text - length, ".%03dZ", int(ms % 1000));
  return text;
}

// A machine with the clock, the network, the store and the randomness that a scenario gives.
struct Machine {
  const Json& file;
  char random = 0;
  std::string product_code, fingerprint;
  double tolerance_hours = 72;
  std::vector<std::string> built_in, asked;
  bool trust = false;
  std::shared_ptr<Memory> store = std::make_shared<Memory>();
  std::int64_t now = 0;
  std::vector<Json> given;
  std::size_t used = 0;
  std::unique_ptr<LicenseKit> kit;

  Machine(const Json& file, const Json& scenario) : file(file) {
    if (const Json* byte = scenario.find("random")) random = char(int(byte->value));
    set(file.find("options"));
    set(scenario.find("options"));
  }

  void set(const Json* options) {
    if (!options) return;
    product_code = options->text_of("product_code").value_or(product_code);
    if (const Json* binding = options->find("binding")) fingerprint = *binding->text_of("fingerprint");
    if (const Json* hours = options->find("tolerance_hours")) tolerance_hours = hours->value;
    if (const Json* trusts = options->find("trust_published_keys")) trust = trusts->truth;
    if (const Json* kids = options->find("built_in")) {
      built_in.clear();
      for (const Json& kid : kids->items) built_in.push_back(kid.string);
    }
  }

  std::string response(const std::string& name) const { return file.find("responses")->text_of(name).value_or(""); }

  std::string take(const Json& step) {
    now = instant(step.text_of("at"), "at");
    given = step.find("given") ? step.find("given")->items : std::vector<Json>{};
    used = 0;
    asked.clear();
    std::string operation = *step.text_of("do");
    if (operation == "open") open(step);
    Shown found;
    if (std::optional<Outcome> outcome = operate(operation, step.find("with"))) {
      std::string word = outcome->granted ? "granted" : outcome->refusal ? "refused" : "missed";
      found["outcome"] = json_text(word + " " + outcome->words());
      if (!outcome->broken_rule.empty()) found["broken_rule"] = json_text(outcome->broken_rule);
      if (!outcome->problem.empty()) found["problem"] = json_text(outcome->problem);
    }
    Verdict verdict = kit->verdict();
    found["decision"] = json_text(name_of(verdict.decision));
    found["reason"] = json_text(verdict.reason);
    if (verdict.ends_at_ms) found["ends_at"] = json_text(iso_of(*verdict.ends_at_ms));
    std::vector<std::string> features;
    for (const Feature& one : kit->features()) {
      features.push_back(one.code + (one.is_usage_unknown ? " unknown"
                                     : one.remaining       ? " " + std::to_string(*one.remaining)
                                                           : ""));
    }
    if (!features.empty()) found["features"] = shown(features);
    if (!asked.empty()) found["asked"] = shown(asked);
    if (store->text) found["stored"] = summary(*store->text);
    return shown(found);
  }

  void open(const Json& step) {
    set(step.find("options"));
    if (auto text = step.text_of("store")) store->text = text;
    if (step.find("forget") || step.find("put")) edit(step);
    Keys keys;
    for (const Json& key : file.find("keys")->items) {
      std::string kid = *key.text_of("kid");
      if (std::count(built_in.begin(), built_in.end(), kid)) keys[kid] = *key.text_of("public_key");
    }
    Options options{"https://licenses.example.com", product_code, keys, hardware(fingerprint), store};
    options.tolerance_hours = tolerance_hours;
    options.trust_published_keys = trust;
    options.now_ms = [this] { return now; };
    options.random = [this](std::size_t count) { return std::string(count, count == 1 ? random : '\0'); };
    options.send = [this](const Request& request) { return send(request); };
    kit = std::make_unique<LicenseKit>(std::move(options));
  }

  void edit(const Json& step) {
    Json stored = JsonReader::object(*store->text);
    Shown all, texts;
    for (const auto& [name, index] : stored.names) all[name] = shown(stored.items[index]);
    const Json* kept = stored.find("responses");
    for (const auto& [slot, index] : kept->names) texts[slot] = shown(kept->items[index]);
    if (const Json* forget = step.find("forget"))
      for (const Json& slot : forget->items) texts.erase(slot.string);
    if (const Json* put = step.find("put"))
      for (const auto& [slot, index] : put->names) texts[slot] = json_text(response(put->items[index].string));
    all["responses"] = shown(texts);
    store->text = shown(all);
  }

  std::optional<Outcome> operate(const std::string& operation, const Json* with) {
    auto word = [&](const char* name) { return with ? with->text_of(name) : std::nullopt; };
    if (operation == "open" || operation == "look") return std::nullopt;
    if (operation == "wake") {
      kit->wake();
      return std::nullopt;
    }
    if (operation == "activate") return kit->activate(word("license_key"));
    if (operation == "checkout") {
      auto until = word("until");
      return kit->checkout(word("license_key"), until ? std::optional(instant(until, "until")) : std::nullopt);
    }
    if (operation == "validate") return kit->validate();
    if (operation == "check") return kit->check();
    if (operation == "consume") {
      const Json* amount = with->find("amount");
      return kit->consume(*word("feature_code"), amount ? std::optional(std::int64_t(amount->value)) : std::nullopt,
                          *word("event_id"));
    }
    if (operation == "reverse") return kit->reverse(*word("feature_code"), *word("event_id"));
    if (operation == "issue_offline") return kit->issue_offline();
    if (operation == "open_offline") return kit->open_offline(response(word("file").value_or("")), word("license_key"));
    if (operation == "start_trial") return kit->start_trial(*word("policy_code"));
    if (operation == "list_devices") return kit->list_devices(word("license_key"));
    if (operation == "deactivate_device") return kit->deactivate_device(*word("device_id"), word("license_key"));
    if (operation == "deactivate") return kit->deactivate();
    if (operation == "checkin") return kit->checkin();
    throw std::runtime_error("no operation " + operation);
  }

  Reply send(const Request& request) {
    std::string path = request.url.substr(request.url.find("/api/v1/") + 8);
    if (path.rfind("license/", 0) == 0) path = path.substr(8);
    path = path.substr(0, path.find('?'));
    Json sent = JsonReader::object(request.body.value_or("{}"));
    for (const char* name : {"event_id", "until", "policy_code"})
      if (auto value = sent.text_of(name)) path += " " + *value;
    asked.push_back(path);
    Reply reply;
    if (used == given.size()) {
      reply.problem = "refused";
      return reply;
    }
    const Json& next = given[used++];
    reply.problem = next.text_of("fails").value_or("");
    reply.body = response(next.text_of("response").value_or(""));
    reply.status = next.find("status") ? int(next.find("status")->value) : 200;
    if (const Json* seconds = next.find("retry_after")) reply.retry_after = std::to_string(int(seconds->value));
    return reply;
  }

  // The stored text with the names of the responses in place of their texts.
  std::string summary(const std::string& text) const {
    Json stored;
    try {
      stored = JsonReader::object(text);
    } catch (const Malformed&) { return "{\"malformed\":true}"; }
    Shown all, texts;
    for (const auto& [name, index] : stored.names) all[name] = shown(stored.items[index]);
    all.erase("published_keys");
    const Json *published = stored.find("published_keys"), *kept = stored.find("responses");
    std::vector<std::string> kids;
    if (published)
      for (const Json& key : published->items) kids.push_back(*key.text_of("kid"));
    if (!kids.empty()) all["published_keys"] = shown(kids);
    if (kept && kept->type == Json::object)
      for (const auto& [slot, index] : kept->names) texts[slot] = json_text(name_in(kept->items[index].string));
    all["responses"] = shown(texts);
    return shown(all);
  }

  std::string name_in(const std::string& text) const {
    const Json* responses = file.find("responses");
    for (const auto& [name, index] : responses->names)
      if (responses->items[index].string == text) return name;
    return "unknown";
  }
};

static void check_decisions(const std::string& folder) {
  VectorFile file(folder, "decisions"), keys(folder, "license-keys");
  for (const Json& scenario : file.list("scenarios")) {
    Machine machine(file.json, scenario);
    int number = 0;
    for (const Json& step : scenario.find("steps")->items) {
      std::string given = machine.take(step), wanted = shown(*step.find("expected"));
      bool same = given == wanted;
      if (!same) differences++;
      std::cout << "decisions: " << *scenario.text_of("name") << ", step " << ++number << ": "
                << (same ? "as expected" : given + ", but it should be " + wanted) << "\n";
    }
  }
  for (const Json& one : keys.list("valid")) {
    std::string key = license_key_of(*one.text_of("input")), wanted = *one.text_of("canonical");
    if (key != wanted) differences++;
    std::cout << "license-keys: " << *one.text_of("input") << ": " << key
              << (key == wanted ? "" : ", but it should be " + wanted) << "\n";
  }
}

// A life of an application at a running service, and with servers that are none.
static int live(char** arguments) {
  std::string url = arguments[2], hostile = arguments[3], license_key = arguments[4], path = arguments[9];
  auto store = std::make_shared<FileStore>(path);
  auto options = [&](const std::string& base_url, std::shared_ptr<Store> kept) {
    return Options{base_url, arguments[5], {{arguments[7], arguments[8]}}, hardware(arguments[6]), std::move(kept)};
  };
  auto say = [](const std::string& title, const Outcome& outcome) {
    std::cout << title << (outcome.granted ? ": granted, " : ": not granted, ") << outcome.words()
              << (outcome.problem.empty() ? "" : ", " + outcome.problem) << "\n";
  };
  LicenseKit kit(options(url, store));
  for (char& symbol : license_key) symbol = char(std::tolower(static_cast<unsigned char>(symbol)));
  say("activate", kit.activate(license_key));
  say("validate", kit.validate());
  Outcome counted = kit.consume("export", 2);
  say("consume", counted);
  say("consume again", kit.consume("export", 2, counted.event_id));
  std::cout << "remaining: " << *kit.feature("export")->remaining << "\n";
  say("consume too much", kit.consume("export", 1000));
  say("offline", kit.issue_offline());
  LicenseKit again(options(hostile + "/none", store));
  std::cout << "restart: " << again.verdict().words() << "\n";
  try {
    Options other = options(url, store);
    other.keys[arguments[7]] = std::string("-----BEGIN ") + arguments[8];
    LicenseKit opened(std::move(other));
    std::cout << "a key in another form: opened\n";
  } catch (const std::invalid_argument&) { std::cout << "a key in another form: not opened\n"; }
  for (const std::string name : {"redirect", "large", "page", "slow", "closed"}) {
    auto copy = std::make_shared<Memory>();
    copy->text = store->read();
    Options given = options(hostile + "/" + name, copy);
    if (name == "slow") given.timeout_ms = 500;
    say(name, LicenseKit(std::move(given)).validate());
  }
  say("devices", kit.list_devices(std::nullopt, "", 10));
  say("other device", kit.deactivate_device("none/of these"));
  say("deactivate", kit.deactivate());
  say("checkout", kit.checkout());
  kit.start();
  LicenseKit last(options(url, store));
  // After a start with a seat, a heartbeat is due at once.
  last.start();
  std::vector<std::thread> threads;
  for (int count = 0; count < 4; count++) {
    threads.emplace_back([&last] {
      for (int time = 0; time < 3; time++) {
        last.check();
        last.features();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  last.stop();
  kit.stop();
  std::cout << "threads: " << last.verdict().words() << ", " << *last.feature("export")->remaining << "\n";
  say("checkin", last.checkin());
  LicenseKit tried(options(url, std::make_shared<Memory>())), reset(options(url, std::make_shared<Memory>()));
  say("trial", tried.start_trial("trial"));
  say("trial again", reset.start_trial("trial"));
  std::cout << "devices: " << tried.list_devices().data->find("devices")->items.size() << "\n";
  return 0;
}

int main(int count, char** arguments) {
  std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "vectors" && count == 3) {
    check_answers(arguments[2]);
    check_others(arguments[2]);
    check_decisions(arguments[2]);
    std::cout << differences << " differences\n";
    return differences == 0 ? 0 : 1;
  }
  if (mode == "live" && count == 10) return live(arguments);
  if (mode != "call" || count < 8 || count > 9) {
    std::cout << "usage: vectors FOLDER | call URL LICENSE_KEY PRODUCT_CODE FINGERPRINT KID PUBLIC_KEY [ENVELOPE]\n";
    return 2;
  }
  Keys keys{{arguments[6], arguments[7]}};
  Client client{arguments[2], arguments[3], arguments[4], keys, hardware(arguments[5]), post_with_kit, {}, {}, {}};
  std::vector<std::pair<const char*, std::function<Answer()>>> calls{
      {"activate", [&] { return client.activate(); }},
      {"validate", [&] { return client.validate(); }},
  };
  if (count == 9) calls.emplace_back("open_offline", [&] { return client.open_offline(arguments[8]); });
  for (const auto& [operation, call] : calls) {
    try {
      Answer answer = call();
      std::cout << operation
                << (answer.is_refusal ? ": error " + answer.text("code") : ": data " + answer.text("status")) << "\n";
    } catch (const Distrusted& distrusted) { std::cout << operation << ": distrusted " << distrusted.rule << "\n"; }
  }
}
