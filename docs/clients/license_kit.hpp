// The application kit in C++17, over OpenSSL and libcurl. Copy this file and licensing.hpp.
//
//   licensing::LicenseKit kit({"https://licenses.example.com", "editor-pro", keys, licensing::hardware(fingerprint),
//                              std::make_shared<licensing::FileStore>("license.json")});
//   kit.start();
//   licensing::Outcome outcome = kit.activate(license_key);
//   if (kit.verdict().may_run()) ...
//
// It believes only responses that keep the rules of VERIFYING.md, and says what the application should do, as
// docs/guides/kit.md explains. Methods that ask the service return an outcome and throw nothing for the network. A kit may
// be used by several threads: requests are sent one after another, and `verdict` and `features` never wait for one. Use one
// kit for each machine and license.
#pragma once

#include <cctype>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "licensing.hpp"

#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
#endif

namespace licensing {

// Run: continue. Warn: continue, and tell the user. Ask: the user has to act first. Stop: end the licensed use.
enum class Decision { run, warn, ask, stop };

inline const char* name_of(Decision decision) {
  constexpr const char* names[] = {"run", "warn", "ask", "stop"};
  return names[static_cast<int>(decision)];
}

// What the application should do now, and why.
struct Verdict {
  Decision decision = Decision::ask;
  std::string reason;
  std::optional<Json> refusal = std::nullopt;            // the signed refusal that decides
  std::optional<std::int64_t> ends_at_ms = std::nullopt;  // until when without a further response
  bool may_run() const { return decision <= Decision::warn; }
  std::string words() const { return std::string(name_of(decision)) + " " + reason; }
};

// What an operation came to. Decision and reason hold for the application after it.
struct Outcome : Verdict {
  bool granted = false;
  std::optional<Json> data = std::nullopt;  // the signed payload
  std::string broken_rule = {};             // the rule of VERIFYING.md that the response broke
  std::string problem = {};                 // dns, refused, tls, timeout, response or network
  int status = 0;                           // of a response that was not believed
  std::string event_id = {};                // of a consumption: give it again to repeat the same one
};

struct Feature {
  std::string code;
  bool enabled = false;
  std::optional<std::int64_t> quota, consumed, remaining, extra_credits, overage;
  bool is_usage_unknown = false;  // a new period of the quota has begun since the response
};

// Keeps one text, which has the license key: store it where only the user can read it. Both may throw.
struct Store {
  virtual ~Store() = default;
  virtual std::optional<std::string> read() = 0;
  virtual void write(const std::string& text) = 0;
};

class FileStore : public Store {
 public:
  explicit FileStore(std::filesystem::path path) : path(std::move(path)) {}

  std::optional<std::string> read() override {
    if (!std::filesystem::exists(path)) return std::nullopt;
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    if (!in) throw std::runtime_error("the store cannot be read");
    return all.str();
  }

  void write(const std::string& text) override {
    // A file of its own, because other processes of the application may be writing.
    std::string random(8, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), int(random.size())) != 1) throw std::bad_alloc();
    std::filesystem::path written = path;
    written += "." + hex(random) + ".new";
    try {
      std::ofstream out(written, std::ios::binary | std::ios::trunc);
      using std::filesystem::perms;
      std::filesystem::permissions(written, perms::owner_read | perms::owner_write);
      out << text;
      out.close();
      if (!out) throw std::runtime_error("the store cannot be written");
      std::filesystem::rename(written, path);
    } catch (...) {
      std::error_code ignored;
      std::filesystem::remove(written, ignored);
      throw;
    }
  }

 private:
  std::filesystem::path path;
};

// A POST, or a GET without a body.
struct Request {
  std::string url, authorization;
  std::optional<std::string> body;
  long timeout_ms;
};

// What a request got: a status and a body, or the problem that prevented it.
struct Reply {
  int status = 0;
  std::string body = {}, retry_after = {}, problem = {};
};

#if __has_include(<curl/curl.h>)
// One request with libcurl: no redirect, which would carry the license key to another host; certificates are verified.
inline Reply send_with_curl(const Request& request) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  Reply reply;
  const std::string& key = request.authorization;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(curl_easy_init(), curl_easy_cleanup);
  if (initialized != CURLE_OK || !handle) {
    reply.problem = "network";
    return reply;
  }
  curl_slist* listed = nullptr;
  if (request.body) listed = curl_slist_append(listed, "Content-Type: application/json");
  if (!key.empty()) listed = curl_slist_append(listed, ("Authorization: " + key).c_str());
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(listed, curl_slist_free_all);
  using Write = std::size_t (*)(char*, std::size_t, std::size_t, void*);
  Write write = [](char* bytes, std::size_t size, std::size_t count, void* into) -> std::size_t {
    auto& body = *static_cast<std::string*>(into);
    if (body.size() + size * count > body_bytes_max) return 0;
    body.append(bytes, size * count);
    return size * count;
  };
  Write header = [](char* bytes, std::size_t size, std::size_t count, void* into) -> std::size_t {
    std::string line(bytes, size * count), name = "retry-after:";
    if (line.size() > name.size() && std::equal(name.begin(), name.end(), line.begin(), [](char one, char other) {
          return one == std::tolower(static_cast<unsigned char>(other));
        })) {
      std::size_t start = line.find_first_not_of(" \t", name.size()), end = line.find_last_not_of(" \t\r\n");
      *static_cast<std::string*>(into) = start <= end && end != line.npos ? line.substr(start, end - start + 1) : "";
    }
    return size * count;
  };
  CURL* curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, listed);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request.timeout_ms);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply.body);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &reply.retry_after);
  if (request.body) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body->size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body->c_str());
  }
  CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int>(status);
  switch (code) {
    case CURLE_OK:
      break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      reply.problem = "dns";
      break;
    case CURLE_COULDNT_CONNECT:
      reply.problem = "refused";
      break;
    case CURLE_OPERATION_TIMEDOUT:
      reply.problem = "timeout";
      break;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
      reply.problem = "tls";
      break;
    case CURLE_WRITE_ERROR:
      reply.problem = "response";
      break;
    default:
      reply.problem = "network";
  }
  return reply;
}
#endif

// What the application gives the kit. The first five are required.
struct Options {
  std::string base_url, product_code;
  Keys keys;
  Binding binding;
  std::shared_ptr<Store> store;
  std::string app_version = {};
  double tolerance_hours = 72;  // how long the application may go on after next_check_at without the service
  long timeout_ms = 15'000;
  bool trust_published_keys = false;                       // also keys that the service publishes later, over TLS
  std::function<void(const Verdict&)> on_verdict = nullptr;  // may use the kit, but not stop or destroy it
  // They replace network, clock and randomness.
  std::function<Reply(const Request&)> send =
#if __has_include(<curl/curl.h>)
      send_with_curl;
#else
      nullptr;
#endif
  std::function<std::int64_t()> now_ms = clock_ms;
  std::function<std::string(std::size_t)> random = [](std::size_t count) {
    std::string bytes(count, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), int(count)) != 1) throw std::bad_alloc();
    return bytes;
  };
};

// What comes along with a text from the clipboard, in UTF-8: the same in every kit.
inline constexpr std::string_view white_space[] = {
    "\t", "\n", "\v", "\f", "\r", " ", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
    "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89",
    "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf"};

inline std::string without_outer_space(std::string_view text) {
  for (bool is_trimmed = true; is_trimmed;) {
    is_trimmed = false;
    for (std::string_view space : white_space) {
      bool is_first = text.substr(0, space.size()) == space;
      bool is_last = !is_first && text.size() >= space.size() && text.substr(text.size() - space.size()) == space;
      if (is_first) text.remove_prefix(space.size());
      if (is_last) text.remove_suffix(space.size());
      is_trimmed = is_trimmed || is_first || is_last;
    }
  }
  return std::string(text);
}

// A license key as a person types it, in the form as issued.
inline std::string license_key_of(const std::string& typed) {
  std::string text = without_outer_space(typed), symbols;
  for (char symbol : text) {
    if (symbol != '-' && symbol != ' ') symbols += char(std::toupper(static_cast<unsigned char>(symbol)));
  }
  if (text.size() > 64 || symbols.size() != 32 || std::string("L1I").find(symbols[0]) == std::string::npos ||
      symbols[1] != 'K') {
    return text;
  }
  std::string key = "LK";
  for (std::size_t at = 2; at < symbols.size(); at++) {
    char symbol = symbols[at];
    if (!(symbol >= '0' && symbol <= '9') && !(symbol >= 'A' && symbol <= 'Z' && symbol != 'U')) return text;
    if ((at - 2) % 5 == 0) key += '-';
    key += symbol == 'O' ? '0' : symbol == 'I' || symbol == 'L' ? '1' : symbol;
  }
  return key;
}

class LicenseKit {
 public:
  // Reads the store, and believes of it what keeps the rules. Sends nothing. Throws std::invalid_argument if an option is
  // wrong.
  explicit LicenseKit(Options given) : options(std::move(given)) {
    std::string& url = options.base_url;
    while (!url.empty() && url.back() == '/') url.pop_back();
    bool is_http = url.rfind("https://", 0) == 0 || url.rfind("http://", 0) == 0;
    if (!is_http || url.find_first_of("?#@ \t\r\n") != url.npos || url.find("/api/v1") != url.npos) {
      throw std::invalid_argument("base_url is the service's address, as https://licenses.example.com, before /api/v1");
    }
    if (options.keys.empty() && !options.trust_published_keys) {
      throw std::invalid_argument("keys needs the keys of GET /api/v1/system/public-keys");
    }
    for (const auto& [kid, key] : options.keys) {
      if (!is_public_key(key)) {
        throw std::invalid_argument(
            "keys has for each kid its public_key of GET /api/v1/system/public-keys: 32 bytes as base64");
      }
    }
    if (options.binding.key.empty() || !options.store || !options.send) {
      throw std::invalid_argument("binding, store and send are required");
    }
    load();
    told = verdict().words();
  }
  ~LicenseKit() { stop(); }
  LicenseKit(const LicenseKit&) = delete;
  LicenseKit& operator=(const LicenseKit&) = delete;

  // ---- What holds now ----

  Verdict verdict() const {
    Lock lock(state);
    Verdict found = decide(now());
    if (found.decision == Decision::run && is_store_failed) {
      found.decision = Decision::warn;
      found.reason = "STORE_FAILED";
    }
    return found;
  }

  // "device", "seat" or "".
  std::string holding() const {
    Lock lock(state);
    return held;
  }

  // What the newest believed response says of the license, for an About box.
  std::optional<Json> license() const {
    Lock lock(state);
    const Json* found = grant();
    return found ? std::optional(*found) : std::nullopt;
  }

  // The features that the application may use now: none if it must not run.
  std::vector<Feature> features() const {
    Lock lock(state);
    std::vector<Feature> current;
    if (!verdict().may_run()) return current;
    const Json *newest = grant(), *listed = newest ? newest->find("features") : nullptr;
    if (!listed && content("checkout")) listed = content("checkout")->find("features");
    if (!listed || listed->type != Json::array) return current;
    for (const Json& one : listed->items) {
      if (now() >= millis(&one, "expires_at")) continue;
      auto amount = [&](const char* name) {
        const Json* found = one.find(name);
        return found && found->type == Json::number ? std::optional(std::int64_t(found->value)) : std::nullopt;
      };
      const Json* enabled = one.find("enabled");
      Feature feature{one.text_of("code").value_or(""), enabled && enabled->truth, amount("quota"), amount("consumed"),
                      amount("remaining"), amount("extra_credits"), amount("overage")};
      if (now() >= millis(&one, "resets_at")) {
        feature.consumed = feature.remaining = feature.overage = std::nullopt;
        feature.is_usage_unknown = true;
      }
      current.push_back(std::move(feature));
    }
    return current;
  }

  std::optional<Feature> feature(const std::string& code) const {
    for (Feature& one : features())
      if (one.code == code) return std::move(one);
    return std::nullopt;
  }

  // ---- Operations ----

  // Activates this machine with the license key; without one again with the stored one.
  Outcome activate(const std::optional<std::string>& license_key = std::nullopt) {
    return alone([&] { return enter("activate", "device", license_key, ""); });
  }

  // Starts this machine's one trial of the product under this policy, without a license key. It is refused with
  // TRIAL_ALREADY_USED or TRIAL_NOT_ALLOWED.
  Outcome start_trial(const std::string& policy_code) {
    return alone([&] {
      std::string fields = member("policy_code", policy_code) + ",\"binding\":{" + machine() + "}";
      Believed got = ask({"trial", "entitlement", fields, options.binding}, nullptr);
      return enter_with("activate", "device", got.granted() ? got.answer->text("license_key") : "", got);
    });
  }

  // Takes a floating seat, or borrows it until an instant in milliseconds since the epoch.
  Outcome checkout(const std::optional<std::string>& license_key = std::nullopt,
                   std::optional<std::int64_t> until_ms = std::nullopt) {
    std::string more = until_ms ? member("until", iso(double(*until_ms))) : "";
    return alone([&] { return enter("floating/checkout", "seat", license_key, more); });
  }

  // Asks whether the application may go on. It is the heartbeat of an activation.
  Outcome validate() {
    return alone([&] { return use("validate", ""); });
  }

  // Asks the same, and writes nothing at the service.
  Outcome check() {
    return alone([&] { return use("check", ""); });
  }

  // Counts use. Unless it is granted nothing is known to be counted: repeat it with the outcome's event_id.
  Outcome consume(const std::string& feature_code, std::optional<std::int64_t> amount = std::nullopt,
                  std::string event_id = "") {
    if (event_id.empty()) event_id = hex(options.random(16));
    std::string more = member("feature_code", feature_code) + "," + member("event_id", event_id);
    if (amount) more += ",\"amount\":" + std::to_string(*amount);
    return counted(more, event_id);
  }

  // Takes a whole consumption back. A repetition takes back nothing more.
  Outcome reverse(const std::string& feature_code, const std::string& event_id) {
    std::string own = event_id + ":reversed";
    return counted(member("feature_code", feature_code) + "," + member("reverses", event_id) + "," +
                       member("event_id", own),
                   own);
  }

  // Gets an offline envelope for this machine, and uses it from now on.
  Outcome issue_offline() {
    return alone([&] { return use("offline", ""); });
  }

  // The request of a machine without a network, as a text for a file or a QR code.
  std::string offline_request() const {
    Binding binding = options.binding;
    binding.request = machine();
    return licensing::offline_request(binding, options.product_code);
  }

  // Uses an offline envelope that was brought to this machine: alone, or in the whole response.
  Outcome open_offline(const std::string& envelope, const std::optional<std::string>& license_key = std::nullopt) {
    return alone([&] { return open(envelope, license_key); });
  }

  // Lists the license's devices in the outcome's data, the newest first: at most limit unless it is 0, after the
  // next_cursor of the page before unless that is empty. Needs no activation, and changes nothing.
  Outcome list_devices(const std::optional<std::string>& license_key = std::nullopt, const std::string& cursor = "",
                       int limit = 0) {
    std::string query;
    if (!cursor.empty()) query += "cursor=" + encoded(cursor) + "&";
    if (limit != 0) query += "limit=" + std::to_string(limit) + "&";
    return ask_aside(license_key, {"devices", "devices", query, std::nullopt, "", true});
  }

  // Deactivates another device of the license, which was lost: its slot becomes free.
  Outcome deactivate_device(const std::string& device_id,
                            const std::optional<std::string>& license_key = std::nullopt) {
    std::string path = "devices/" + encoded(device_id) + "/deactivate";
    return ask_aside(license_key, {path, "deactivation", "", std::nullopt, device_id});
  }

  // Gives the activation back.
  Outcome deactivate() {
    return alone([&] { return give_back("deactivate", ""); });
  }

  // Gives the seat back.
  Outcome checkin() {
    return alone([&] {
      std::string token = lease_token();
      return give_back("floating/checkin", token.empty() ? "" : member("lease_token", token));
    });
  }

  // ---- In the background ----

  // From now on validates at next_check_at and sends the seat's heartbeats, in a thread, until stop.
  void start() {
    Lock lock(state);
    if (keeper.joinable()) return;
    is_keeping = true;
    keeper = std::thread([this] { keep(); });
  }

  // Ends what start began, after a request that is being sent. It gives nothing back.
  void stop() {
    {
      Lock lock(state);
      is_keeping = false;
    }
    planned.notify_all();
    if (keeper.joinable()) keeper.join();
  }

  // Does at once what is due, and a retry that waits: after the machine slept, or when it is online again.
  void wake() { ask_due(true); }

 private:
  using Lock = std::lock_guard<std::recursive_mutex>;
  static constexpr double hour = 3'600'000, skew = double(clock_skew_ms_max);
  static constexpr double instant_max = 253'402'300'799'999;  // the end of the year 9999, the last one of a payload
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  static bool is_public_key(const std::string& text) {
    constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return text.size() == 44 && text.find_first_not_of(alphabet) == 43 && text.back() == '=';
  }

  struct Rule {
    Decision decision;
    std::string_view reach;  // what a refusal ends: license, activation, seat, or only the request
    bool again = false;      // what is taken again once
  };

  // A code that is not in the table, as FEATURE_DISABLED or one of a later service, ends nothing.
  static Rule rule_of(const std::string& code) {
    using D = Decision;
    static const std::map<std::string, Rule> rules{
        {"LICENSE_REVOKED", {D::stop, "license"}},         {"LICENSE_SUSPENDED", {D::stop, "license"}},
        {"DEVICE_BLACKLISTED", {D::stop, "license"}},      {"VM_NOT_ALLOWED", {D::stop, "license"}},
        {"CONTAINER_NOT_ALLOWED", {D::stop, "license"}},   {"LICENSE_EXPIRED", {D::ask, "license"}},
        {"LICENSE_NOT_STARTED", {D::ask, "license"}},      {"PRODUCT_MISMATCH", {D::ask, "license"}},
        {"VERSION_UNKNOWN", {D::ask, "license"}},          {"VERSION_NOT_ENTITLED", {D::ask, "license"}},
        {"DEVICE_NOT_FOUND", {D::stop, "activation", true}}, {"DEVICE_NOT_ACTIVE", {D::stop, "activation", true}},
        {"HEARTBEAT_OVERDUE", {D::stop, "activation", true}}, {"ACTIVATION_LIMIT_REACHED", {D::ask, "activation"}},
        {"CONTAINER_LIMIT_REACHED", {D::ask, "activation"}}, {"FLOATING_LIMIT_REACHED", {D::ask, "seat"}},
        {"FLOATING_NOT_ENABLED", {D::ask, "seat"}},        {"LEASE_EXPIRED", {D::stop, "seat", true}},
        {"LEASE_NOT_ACTIVE", {D::stop, "seat", true}},     {"LEASE_NOT_FOUND", {D::stop, "seat", true}},
        {"DEVICE_STATE_CONFLICT", {D::run, "request"}}};
    auto found = rules.find(code);
    return found == rules.end() ? Rule{D::warn, "request"} : found->second;
  }

  struct Identity {
    std::string license_key;
    std::optional<std::string> license_id = std::nullopt, product_id = std::nullopt;
  };

  struct Kept {
    std::string text;
    Json content;
  };

  // A believed response, or why there is none.
  struct Believed {
    std::optional<Answer> answer = std::nullopt;
    std::string text = {}, reason = {}, rule = {}, problem = {};
    int status = 0;
    double retry_after = 0;
    bool granted() const { return answer && !answer->is_refusal; }
    bool refused() const { return answer && answer->is_refusal; }
    std::string code() const { return refused() ? answer->text("code") : ""; }
    std::string why() const { return answer ? code() : reason; }
    const Json& content() const { return answer->content; }
  };

  Options options;
  std::mutex asking;                   // held during an operation
  mutable std::recursive_mutex state;  // held while what follows is read or changed
  std::optional<Identity> identity;
  std::string held, missed, told;
  double highest = -infinity, due = infinity, planned_at = -infinity, wake_at = infinity, keys_fetched_at = -infinity;
  Keys published;
  bool is_clock_ahead = false, is_store_failed = false, is_keeping = false;
  std::optional<Json> used;
  std::map<std::string, Kept> responses;
  int failures = 0;
  std::thread keeper;
  std::condition_variable_any planned;

  void ask_due(bool is_woken) {
    alone([&] {
      std::string own = holding(), token = lease_token();
      bool is_refused = false;
      {
        Lock lock(state);
        is_refused = content("refusal") != nullptr;
        // A clock that was set back was ahead when the request was planned.
        double due_now = is_woken ? std::min(due, wake_at) : due;
        if (own.empty() || (planned_at <= now() && now() < due_now)) return Outcome{};
      }
      if (own == "device") return use("validate", "");
      // A heartbeat is granted without a check of the version and the machine, so it lifts no refusal.
      if (token.empty() || is_refused) return enter("floating/checkout", "seat", std::nullopt, "");
      return use("floating/heartbeat", member("lease_token", token));
    });
  }

  void keep() {
    std::unique_lock<std::recursive_mutex> lock(state);
    while (is_keeping) {
      lock.unlock();
      ask_due(false);
      lock.lock();
      if (!is_keeping) return;
      // Timers stand still while a machine sleeps: the clock is read again at least each minute.
      double wait = std::min(std::max(due - now(), 1'000.0), 60'000.0);
      planned.wait_for(lock, std::chrono::milliseconds(std::int64_t(wait)));
    }
  }

  // ---- Asking, one request after another ----

  template <typename Ask>
  Outcome alone(Ask ask) {
    Outcome outcome;
    {
      std::lock_guard<std::mutex> lock(asking);
      outcome = ask();
    }
    // Outside of the locks: the application may use the kit in its callback.
    Verdict current;
    bool is_new;
    {
      Lock lock(state);
      current = verdict();
      is_new = current.words() != told;
      told = current.words();
    }
    if (is_new && options.on_verdict) options.on_verdict(current);
    return outcome;
  }

  Outcome enter(const std::string& operation, const std::string& gives,
                const std::optional<std::string>& license_key, const std::string& more) {
    std::optional<Identity> own = identity_of(license_key);
    if (!own) return not_activated();
    Believed got = ask(operation, more, *own);
    Lock lock(state);
    if (!identity || identity->license_key != own->license_key) {
      return enter_with(operation, gives, own->license_key, got);
    }
    return settle(operation, got, got.granted() ? gives : "");
  }

  // Another license than before: until it is granted the one before stays.
  Outcome enter_with(const std::string& operation, const std::string& gives, const std::string& license_key,
                     const Believed& got) {
    Lock lock(state);
    if (got.granted()) {
      begin(license_key);
      return settle(operation, got, gives);
    }
    if (held.empty()) missed = got.why();
    if (got.refused()) save();
    return outcome_of(got);
  }

  // What is asked, and what its answer must be.
  struct Question {
    std::string path, kind, fields;                    // of an object; of a query, each with & behind it, if is_read
    std::optional<Binding> binding = std::nullopt;     // none where the answer has none, or that of another device
    std::string device_id = {};
    bool is_read = false;
  };

  // A request about the license's other devices. Its refusal is not about this one, so it only warns.
  Outcome ask_aside(const std::optional<std::string>& license_key, const Question& question) {
    return alone([&] {
      std::optional<Identity> own = identity_of(license_key);
      if (!own) return not_activated();
      Believed got = ask(question, &*own);
      Lock lock(state);
      if (got.answer) save();
      return outcome_of(got, Decision::warn);
    });
  }

  // A request of what is held. What the service has forgotten is taken again, once.
  Outcome use(const std::string& operation, const std::string& more) {
    std::optional<Identity> own = identity_of(std::nullopt);
    std::string holds = holding();
    if (holds.empty() || !own) return not_activated();
    Believed got = ask(operation, more, *own);
    if (!got.refused() || !rule_of(got.code()).again) return settle(operation, got, "");
    if (operation == "offline" && holds == "seat") {
      // Only an activation gets an envelope: its refusal is not about the seat.
      Lock lock(state);
      settle(operation, got, "");
      return outcome_of(got, Decision::warn);
    }
    std::string regaining = holds == "seat" ? "floating/checkout" : "activate";
    Believed regained = ask(regaining, "", *own);
    Outcome outcome = settle(regaining, regained, "");
    if (!regained.granted() || (operation != "consume" && operation != "offline")) return outcome;
    return settle(operation, ask(operation, more, *identity_of(std::nullopt)), "");
  }

  Outcome counted(const std::string& more, const std::string& event_id) {
    Outcome outcome = alone([&] { return use("consume", more); });
    outcome.event_id = event_id;
    return outcome;
  }

  Outcome open(const std::string& envelope, const std::optional<std::string>& license_key) {
    std::optional<Identity> own = identity_of(license_key);
    if (!own) return not_activated();
    Expected wanted = expected("offline", &*own, std::nullopt, options.binding);
    Believed got = believing(nullptr, false, [&] { return opened(envelope_in(envelope), own->license_key, wanted); });
    Lock lock(state);
    if (got.granted()) {
      if (!identity || identity->license_key != own->license_key) begin(own->license_key);
      grant_from_file(got);
      save();
    }
    return outcome_of(got);
  }

  Outcome give_back(const std::string& operation, const std::string& more) {
    std::optional<Identity> own = identity_of(std::nullopt);
    if (!own) return not_activated();
    // A seat that was lost has no token: nothing is left to give back.
    bool is_gone = operation == "floating/checkin" && more.empty();
    Believed got = is_gone ? Believed{} : ask(operation, more, *own);
    std::string code = got.code();
    bool is_nothing = is_gone || code == "DEVICE_STATE_CONFLICT" || code == "DEVICE_NOT_FOUND" ||
                      code.rfind("LEASE_", 0) == 0;
    Lock lock(state);
    if (got.granted() || is_nothing) release(operation == "deactivate" ? "device" : "seat");
    else if (got.refused()) {
      plan(operation, got);
      refuse(got);
    }
    save();
    if (!got.granted() && !is_nothing) return outcome_of(got);
    Outcome outcome{verdict()};
    outcome.granted = true;
    if (got.granted()) outcome.data = got.content();
    return outcome;
  }

  static std::string member(const std::string& name, const std::string& text) {
    return json_text(name) + ":" + json_text(text);
  }

  // What requests say of this machine, in the order of canonical JSON.
  std::string machine() const {
    const std::string& version = options.app_version;
    return (version.empty() ? "" : member("app_version", version) + ",") + options.binding.request;
  }

  Believed ask(const std::string& operation, const std::string& more, const Identity& own) {
    static const std::map<std::string, std::string> kinds{
        {"activate", "entitlement"}, {"validate", "entitlement"},   {"check", "entitlement"},
        {"consume", "entitlement"},  {"deactivate", "deactivation"}, {"offline", "offline"},
        {"floating/checkout", "floating_checkout"}, {"floating/heartbeat", "floating_lease"},
        {"floating/checkin", "floating_lease"}};
    bool is_of_lease = operation == "floating/heartbeat" || operation == "floating/checkin";
    std::string fields = is_of_lease ? more : machine() + (more.empty() ? "" : "," + more);
    return ask({operation, kinds.at(operation), fields, options.binding}, &own);
  }

  // Without an identity the request has no license key.
  Believed ask(const Question& question, const Identity* own) {
    // No header and no license has another key, such as one with the dashes of a word processor or a line break, which
    // libcurl would send.
    auto is_unsendable = [](char byte) { return byte < ' ' || byte > '~'; };
    if (own && std::any_of(own->license_key.begin(), own->license_key.end(), is_unsendable)) {
      return {std::nullopt, "", "LICENSE_KEY_INVALID"};
    }
    std::string nonce = to_base64(options.random(16)), url = options.base_url + "/api/v1/license/" + question.path;
    std::optional<std::string> body;
    if (question.is_read) {
      url += "?" + question.fields + "nonce=" + encoded(nonce) + "&product_code=" + encoded(options.product_code);
    } else {
      body = "{" + question.fields + (question.fields.empty() ? "" : ",") + member("nonce", nonce) + "," +
             member("product_code", options.product_code) + "}";
    }
    Reply reply = options.send({url, own ? "License " + own->license_key : "", body, options.timeout_ms});
    if (!reply.problem.empty()) return {std::nullopt, "", "NOT_REACHED", "", reply.problem, reply.status};
    Expected wanted = expected(question.kind, own, nonce, question.binding);
    return believing(&reply, own == nullptr, [&]() -> std::pair<Answer, std::string> {
      // The envelope is signed, and so is what is in it.
      if (question.kind == "offline") {
        Answer outer = judge(keys(), reply.body, {});
        if (!outer.is_refusal) return opened(outer.bytes, own->license_key, wanted);
      }
      Answer answer = judge(keys(), reply.body, wanted);
      bool is_deactivation = !question.device_id.empty() && !answer.is_refusal;
      if (is_deactivation && answer.text("device_id") != question.device_id) {
        throw Distrusted("binding", "another device answered");
      }
      return {answer, reply.body};
    });
  }

  // For a segment of a path or a query.
  static std::string encoded(const std::string& text) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string found;
    for (unsigned char byte : text) {
      bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
                      byte == '-' || byte == '.' || byte == '_' || byte == '~';
      found += is_plain ? std::string(1, char(byte)) : std::string{'%', digits[byte >> 4], digits[byte & 15]};
    }
    return found;
  }

  std::pair<Answer, std::string> opened(const std::string& envelope, const std::string& license_key,
                                        const Expected& wanted) const {
    std::string text;
    try {
      text = decrypt(license_key, envelope);
    } catch (const Malformed& problem) {
      throw Distrusted("envelope", std::string("the offline envelope does not open: ") + problem.what());
    }
    return {judge(keys(), text, wanted), text};
  }

  Expected expected(const std::string& kind, const Identity* own, std::optional<std::string> nonce,
                    const std::optional<Binding>& binding) const {
    Lock lock(state);
    Identity known = own ? *own : Identity{};
    std::optional<std::int64_t> seen;
    if (std::isfinite(highest)) seen = std::int64_t(highest);
    return {kind, known.license_id, known.product_id, options.product_code, binding, std::move(nonce),
            options.now_ms(), seen};
  }

  template <typename Judged>
  Believed believing(const Reply* reply, bool is_trial, Judged judged) {
    try {
      try {
        return believed(judged());
      } catch (const Distrusted& distrusted) {
        if (distrusted.rule != "kid" || !fetch_keys()) throw;
      }
      return believed(judged());
    } catch (const Distrusted& distrusted) { return missed_by(distrusted.rule, reply, is_trial); }
  }

  Believed believed(std::pair<Answer, std::string> found) {
    Lock lock(state);
    see(found.first.text("issued_at"));
    Believed got;
    got.answer = std::move(found.first);
    got.text = std::move(found.second);
    return got;
  }

  static Believed missed_by(const std::string& rule, const Reply* reply, bool is_trial) {
    Believed got;
    got.rule = rule;
    got.reason = rule == "times" ? "CLOCK_WRONG" : "NOT_REACHED";
    if (rule == "times" || !reply) return got;
    const std::string& wait = reply->retry_after;
    if (!wait.empty() && wait.size() <= 9 && wait.find_first_not_of("0123456789") == wait.npos) {
      got.retry_after = std::min(double(std::stol(wait)) * 1000, hour);
    }
    std::string code = code_in(reply->body);
    // Only these unsigned codes ask the user for something. A trial that is refused takes nothing away.
    bool is_of_key = reply->status == 401 && (code == "LICENSE_KEY_INVALID" || code == "LICENSE_KEY_MISSING");
    if (rule == "signature" && (is_trial ? reply->status == 403 && !code.empty() : is_of_key)) {
      got.reason = code;
      got.rule = "";
      return got;
    }
    got.problem = "response";
    got.status = reply->status;
    return got;
  }

  // Only over TLS, or on this machine, does the connection vouch for the keys. At most once in ten minutes.
  bool fetch_keys() {
    const std::string& url = options.base_url;
    bool is_safe = url.rfind("https:", 0) == 0;
    for (const char* host : {"http://localhost", "http://127.0.0.1", "http://[::1]"}) {
      char after = url.size() > std::string_view(host).size() ? url[std::string_view(host).size()] : '/';
      is_safe = is_safe || (url.rfind(host, 0) == 0 && (after == ':' || after == '/'));
    }
    if (!options.trust_published_keys || !is_safe || std::abs(now() - keys_fetched_at) < 600'000) return false;
    keys_fetched_at = now();
    Reply reply = options.send({url + "/api/v1/system/public-keys", "", std::nullopt, options.timeout_ms});
    if (!reply.problem.empty() || reply.status != 200) return false;
    try {
      Json found = JsonReader::object(reply.body);
      Lock lock(state);
      published = keys_in(found.find("data"));
      return true;
    } catch (const Malformed&) { return false; }
  }

  // A key that is built in is never replaced.
  Keys keys() const {
    Lock lock(state);
    Keys all = options.keys;
    if (options.trust_published_keys) all.insert(published.begin(), published.end());
    return all;
  }

  // ---- Memory: what is believed ----

  void load() {
    std::optional<std::string> text;
    try {
      text = options.store->read();
    } catch (const std::exception&) { is_store_failed = true; }
    Json stored;
    try {
      if (text) stored = JsonReader::object(*text, 1 << 24);
    } catch (const Malformed&) {
      // As if there were nothing.
    }
    if (std::optional<std::string> key = stored.text_of("license_key")) {
      identity = Identity{*key, stored.text_of("license_id"), stored.text_of("product_id")};
      std::string kept = stored.text_of("holding").value_or("");
      if (kept == "device" || kept == "seat") held = kept;
    }
    published = keys_in(stored.find("published_keys"));
    see(stored.text_of("highest_issued_at"));
    const Json* texts = stored.find("responses");
    for (const char* slot : {"entitlement", "offline", "checkout", "lease", "refusal"}) {
      std::optional<std::string> response = texts ? texts->text_of(slot) : std::nullopt;
      if (response) load_slot(slot, *response);
    }
    if (held.empty()) return;
    // The service is asked at once if nothing stored is believed, and for a seat, unless it is borrowed.
    bool is_waiting = held == "device" ? !responses.empty() : seat() && seat()->find("borrowed_until");
    const Json* entitlement = content("entitlement");
    double next = entitlement ? millis(entitlement, "next_check_at") : millis(seat(), "lease_expires_at");
    // A plan that is later than the service's own, and than any retry, was made while the clock was ahead.
    double stands = millis(&stored, "due_at");
    bool is_plausible = stands <= now() + hour || stands <= next + skew;
    // What ended the use has perhaps ended since: the license was renewed, or the network is back.
    due = is_waiting && is_plausible && verdict().may_run() ? stands : 0;
  }

  void load_slot(const std::string& slot, const std::string& text) {
    Expected wanted;
    for (const auto& [kind, name] : slots())
      if (name == slot) wanted.kind = kind;
    if (identity) {
      wanted.license_id = identity->license_id;
      wanted.product_id = identity->product_id;
    }
    wanted.product_code = options.product_code;
    wanted.binding = options.binding;
    try {
      Answer answer = judge(keys(), text, wanted);
      if (answer.is_refusal != (slot == "refusal")) return;
      see(answer.text("issued_at"));
      responses[slot] = {text, std::move(answer.content)};
    } catch (const Distrusted&) {
      // As if it were not there.
    }
  }

  static const std::map<std::string, std::string>& slots() {
    static const std::map<std::string, std::string> all{{"entitlement", "entitlement"}, {"offline", "offline"},
                                                        {"floating_checkout", "checkout"}, {"floating_lease", "lease"}};
    return all;
  }

  const Json* content(const std::string& slot) const {
    auto found = responses.find(slot);
    return found == responses.end() ? nullptr : &found->second.content;
  }

  // The seat that is held.
  const Json* seat() const {
    if (held != "seat") return nullptr;
    return content("lease") ? content("lease") : content("checkout");
  }

  std::string lease_token() const {
    Lock lock(state);
    return content("checkout") ? content("checkout")->text_of("lease_token").value_or("") : "";
  }

  std::optional<Identity> identity_of(const std::optional<std::string>& license_key) const {
    Lock lock(state);
    if (!license_key) return identity;
    std::string key = license_key_of(*license_key);
    return identity && identity->license_key == key ? *identity : Identity{key};
  }

  Outcome settle(const std::string& operation, const Believed& got, const std::string& gives) {
    Lock lock(state);
    plan(operation, got);
    if (got.granted()) take(got, now(), gives);
    else if (got.refused()) refuse(got);
    missed = held.empty() || !got.answer ? got.why() : "";
    save();
    return outcome_of(got);
  }

  // Believes a grant. Without what it gives, the response only updates what is held.
  void take(const Believed& got, double now, std::string gives) {
    const Json& found = got.content();
    if (identity) identity = Identity{identity->license_key, found.text_of("license_id"), found.text_of("product_id")};
    responses.erase("refusal");
    is_clock_ahead = now - millis(&found, "issued_at") > skew;
    auto slot = slots().find(found.text_of("kind").value_or(""));
    bool is_offline = slot != slots().end() && slot->second == "offline";
    // Only an activation gets an envelope: also beside a seat the machine has one.
    if (is_offline) gives = "device";
    // Why nothing was held until now.
    if (held.empty()) missed.clear();
    if (!gives.empty() && gives != held) forget(gives == "device");
    if (!gives.empty()) held = gives;
    bool is_seat = held == "seat";
    // An entitlement to the holder of a seat outlasts the seat: the seat alone decides.
    if (slot == slots().end()) return;
    bool is_of_seat = slot->second == "checkout" || slot->second == "lease";
    if (slot->second == "entitlement" && is_seat) used = found;
    if (is_of_seat != is_seat) return;
    if (slot->second == "checkout") responses.erase("lease");
    responses[slot->second] = {got.text, found};
    double check_at = millis(&found, "next_check_at");
    if (is_offline && check_at < due) due = check_at;
  }

  // A file was issued before: it changes neither the clock nor a newer refusal.
  void grant_from_file(const Believed& got) {
    bool is_ahead = is_clock_ahead;
    auto before = responses.find("refusal");
    std::optional<Kept> refusal;
    if (before != responses.end()) refusal = before->second;
    take(got, 0, "");
    is_clock_ahead = is_ahead;
    if (refusal && millis(&refusal->content, "issued_at") > millis(&got.content(), "issued_at")) {
      forget(true);
      responses["refusal"] = std::move(*refusal);
    }
  }

  // What a refusal ends is forgotten, so that removing the refusal from the store gives nothing back.
  void refuse(const Believed& got) {
    std::string_view reach = rule_of(got.code()).reach;
    bool is_of_holding = (reach == "activation" && held == "device") || (reach == "seat" && held == "seat");
    if (reach != "license" && !is_of_holding) return;
    bool is_borrowed = millis(content("checkout"), "borrowed_until") > millis(&got.content(), "issued_at");
    // Only a revocation ends a borrowed seat: after any other refusal it can still be given back.
    forget(is_borrowed && got.code() != "LICENSE_REVOKED");
    responses["refusal"] = {got.text, got.content()};
  }

  // The activation or the seat was given back; the other one stays.
  void release(std::string_view given) {
    if (given == "seat") responses.erase("checkout");
    if (given != held) return;
    forget(true);
    held.clear();
    missed.clear();
    due = infinity;
  }

  void begin(const std::string& license_key) {
    release(held);
    responses.clear();
    identity = Identity{license_key};
  }

  // Only the token in the checkout gives a seat back, also beside an activation.
  void forget(bool keeps_token) {
    used.reset();
    for (const auto& [kind, slot] : slots())
      if (slot != "checkout" || !keeps_token) responses.erase(slot);
  }

  // Of every believed answer, also one that changes nothing else: the clock must not fall behind it.
  void see(const std::optional<std::string>& issued_at) {
    double seen = millis_of(issued_at);
    if (seen > highest) highest = seen;
  }

  void save() {
    std::string text = "{";
    auto add = [&](const char* name, const std::optional<std::string>& value) {
      if (value && !value->empty()) text += member(name, *value) + ",";
    };
    if (identity) {
      add("license_key", identity->license_key);
      add("license_id", identity->license_id);
      add("product_id", identity->product_id);
    }
    add("holding", held);
    add("highest_issued_at", iso(highest));
    add("due_at", iso(due));
    text += "\"published_keys\":[";
    bool is_first = true;
    if (options.trust_published_keys) {
      for (const auto& [kid, key] : published) {
        text += (is_first ? "{" : ",{") + member("kid", kid) + "," + member("public_key", key) + "}";
        is_first = false;
      }
    }
    text += "],\"responses\":{";
    is_first = true;
    for (const auto& [slot, kept] : responses) {
      text += (is_first ? "" : ",") + member(slot, kept.text);
      is_first = false;
    }
    try {
      options.store->write(text + "}}");
      is_store_failed = false;
    } catch (const std::exception&) { is_store_failed = true; }
  }

  // ---- Deciding: a function of what is believed and the time ----

  static Verdict just(Decision decision, const std::string& reason) { return {decision, reason}; }

  Verdict decide(double now) const {
    if (now < highest - skew) return just(Decision::ask, "CLOCK_WRONG");
    if (const Json* refusal = content("refusal")) {
      std::string code = refusal->text_of("code").value_or("");
      return {rule_of(code).decision, code, *refusal};
    }
    if (held.empty()) return just(Decision::ask, missed.empty() ? "NOT_ACTIVATED" : missed);
    return held == "seat" ? seat_verdict(now) : device_verdict(now);
  }

  Verdict seat_verdict(double now) const {
    double ends_at = millis(seat(), "lease_expires_at");
    if (!(now < ends_at)) return ended("SEAT_ENDED");
    // A heartbeat is due after a third of the term: after two thirds at least one was missed. A borrowed seat needs none.
    double term = ends_at - millis(seat(), "issued_at");
    return living(*seat(), now, ends_at, std::max(ends_at - term / 3, finite(millis(seat(), "borrowed_until"))));
  }

  Verdict device_verdict(double now) const {
    const Json* newest = newest_grant();
    if (!newest) return ended("NOT_REACHED");
    const char* end_name = newest->find("access_ends_at") ? "access_ends_at" : "expires_at";
    double access_end = newest->find(end_name) ? millis(newest, end_name) : infinity;
    if (now >= access_end) return just(Decision::ask, is_clock_ahead ? "CLOCK_WRONG" : "LICENSE_EXPIRED");
    double check_at = millis(content("entitlement"), "next_check_at");
    double offline_end = millis(content("offline"), "offline_expires_at");
    double tolerated = std::max(finite(check_at) + options.tolerance_hours * hour, finite(offline_end));
    double ends_at = std::min({tolerated, access_end, instant_max});
    if (!(now < ends_at)) return ended("NOT_REACHED");
    Verdict found = living(*newest, now, ends_at, std::max(finite(check_at), finite(offline_end)));
    if (!(now < check_at) && now < offline_end && found.reason == "LICENSED") found.reason = "OFFLINE";
    return found;
  }

  // Runs until `warn_at`, then warns.
  Verdict living(const Json& found, double now, double ends_at, double warn_at) const {
    Verdict verdict{Decision::warn, "NOT_REACHED"};
    verdict.ends_at_ms = std::int64_t(ends_at);
    if (found.text_of("status") == "grace_period" || now >= millis(&found, "expires_at")) verdict.reason = "GRACE_PERIOD";
    else if (is_clock_ahead) verdict.reason = "CLOCK_WRONG";
    else if (!missed.empty() && missed != "NOT_REACHED") verdict.reason = missed;
    else if (now < warn_at) {
      verdict.decision = Decision::run;
      verdict.reason = "LICENSED";
    }
    return verdict;
  }

  // Nothing believed allows the use any more: stops, unless the user can do something about it.
  Verdict ended(const std::string& reason) const {
    if (is_clock_ahead) return just(Decision::ask, "CLOCK_WRONG");
    bool is_missed = !missed.empty() && missed != "NOT_REACHED";
    return is_missed ? just(Decision::ask, missed) : just(Decision::stop, reason);
  }

  const Json* newest_grant() const {
    const Json *entitlement = content("entitlement"), *offline = content("offline");
    return offline && !(millis(entitlement, "issued_at") >= millis(offline, "issued_at")) ? offline : entitlement;
  }

  // The newest believed response that grants something.
  const Json* grant() const {
    if (held != "seat") return newest_grant();
    const Json* newest = used ? &*used : nullptr;
    for (const char* slot : {"lease", "checkout"}) {
      const Json* one = content(slot);
      if (!newest || millis(one, "issued_at") > millis(newest, "issued_at")) newest = one;
    }
    return newest;
  }

  // ---- When to ask next ----

  void plan(const std::string& operation, const Believed& got) {
    bool is_timed = operation == "activate" || operation == "validate" || operation == "floating/checkout" ||
                    operation == "floating/heartbeat";
    // With a seat only its lease counts: a validation does not put off the next heartbeat, unless it is refused.
    bool is_of_seat = operation == "validate" && held == "seat";
    // What refuses the license may be lifted: it is asked again soon, whatever was refused.
    bool is_end = got.refused() && rule_of(got.code()).reach == "license";
    if (!is_end && (!is_timed || (is_of_seat && !got.refused()))) return;
    failures = got.granted() ? 0 : failures + 1;
    planned_at = now();
    due = planned_at + (got.granted() ? wait_of(got.content()) : retry_wait(got));
    // The application that calls wake knows that the machine is online: a retry need not wait as long.
    bool is_missed = !got.granted() && !got.refused();
    wake_at = is_missed ? planned_at + std::max(double(got.retry_after), 10'000.0) : infinity;
    planned.notify_all();
  }

  double retry_wait(const Believed& got) const {
    if (got.code() == "LICENSE_REVOKED") return infinity;
    double most = seat() ? std::min(wait_of(*seat()), hour) : hour;
    double backoff = std::min(10'000 * std::pow(2, std::min(failures - 1, 20)), most);
    double spread = 0.2 * static_cast<unsigned char>(options.random(1)[0]) / 255;
    double asked = got.retry_after;
    if (got.refused()) {
      const Json* seconds = got.content().find("retry_after_seconds");
      asked = seconds && seconds->type == Json::number ? seconds->value * 1000 : 0;
    }
    // Perhaps days: a vendor may lift the refusal before, and a seat needs its heartbeats.
    return std::max(std::min(asked, most), backoff * (1 - spread));
  }

  // By the service's own instants, because this machine's clock may differ.
  static double wait_of(const Json& found) {
    double issued = millis(&found, "issued_at"), lease_end = millis(&found, "lease_expires_at");
    double wait = (lease_end - issued) / 3;
    double left = millis(&found, "expires_at") - issued;
    if (std::isnan(lease_end)) {
      wait = millis(&found, "next_check_at") - issued;
      // Perhaps a renewal has moved the expiry, and no grace period begins.
      if (left > 0 && left < wait) wait = left;
    }
    // Shortly before its end a heartbeat makes a borrowed seat an ordinary one without a gap.
    else if (lease_end <= millis(&found, "borrowed_until")) wait = lease_end - issued - 30'000;
    return std::max(std::isnan(wait) ? hour : wait, 5'000.0);
  }

  // ---- Outcomes ----

  Outcome not_activated() const {
    Believed got;
    got.reason = "NOT_ACTIVATED";
    return outcome_of(got);
  }

  Outcome outcome_of(const Believed& got) const { return outcome_of(got, rule_of(got.code()).decision); }

  // The stricter of the refusal's decision and the verdict after it.
  Outcome outcome_of(const Believed& got, Decision own) const {
    Outcome outcome{verdict()};
    if (got.granted()) {
      outcome.granted = true;
      outcome.data = got.content();
    } else if (got.refused()) {
      if (!(outcome.decision > own)) {
        outcome.decision = own;
        outcome.reason = got.code();
      }
      outcome.refusal = got.content();
    } else {
      if (outcome.may_run()) outcome.reason = got.reason;
      outcome.broken_rule = got.rule;
      outcome.problem = got.problem;
      outcome.status = got.status;
    }
    return outcome;
  }

  // ---- Texts ----

  // The envelope in a text: alone, or as the data of a whole response. Editors add white space and byte order marks.
  static std::string envelope_in(const std::string& text) {
    std::string trimmed = without_outer_space(text);
    try {
      Json found = JsonReader::object(trimmed);
      const Json* data = found.find("data");
      return found.find("ciphertext") || !data ? trimmed : std::string(data->raw(trimmed));
    } catch (const Malformed&) { return trimmed; }
  }

  static std::string code_in(const std::string& body) {
    try {
      Json found = JsonReader::object(body);
      const Json* error = found.find("error");
      return error ? error->text_of("code").value_or("") : "";
    } catch (const Malformed&) { return ""; }
  }

  static Keys keys_in(const Json* listed) {
    Keys found;
    if (!listed || listed->type != Json::array) return found;
    for (const Json& one : listed->items) {
      std::optional<std::string> kid = one.text_of("kid"), key = one.text_of("public_key");
      if (kid && key && found.size() < 64) found[*kid] = *key;
    }
    return found;
  }

  double now() const { return double(options.now_ms()); }

  // Milliseconds of an instant, or NaN: comparisons with it are false.
  static double millis_of(const std::optional<std::string>& text) {
    try {
      return double(instant(text, "instant"));
    } catch (const Distrusted&) { return std::numeric_limits<double>::quiet_NaN(); }
  }

  static double millis(const Json* found, const char* name) {
    return found ? millis_of(found->text_of(name)) : std::numeric_limits<double>::quiet_NaN();
  }

  static std::string iso(double millis) {
    if (!std::isfinite(millis)) return "";
    std::int64_t all = std::int64_t(millis), day = 86'400'000, days = all / day, rest = all % day;
    if (rest < 0) {
      rest += day;
      days--;
    }
    // The civil date of a count of days, from March on, so that the leap day is the last of its year.
    std::int64_t z = days + 719'468, era = (z >= 0 ? z : z - 146'096) / 146'097, of_era = z - era * 146'097;
    std::int64_t year = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
    std::int64_t of_year = of_era - (365 * year + year / 4 - year / 100), part = (5 * of_year + 2) / 153;
    std::int64_t month = part < 10 ? part + 3 : part - 9;
    char text[40];
    std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", int(year + era * 400 + (month <= 2)),
                  int(month), int(of_year - (153 * part + 2) / 5 + 1), int(rest / 3'600'000), int(rest / 60'000 % 60),
                  int(rest / 1000 % 60), int(rest % 1000));
    return text;
  }

  static double finite(double millis) {
    return std::isnan(millis) ? -std::numeric_limits<double>::infinity() : millis;
  }
};

}  // namespace licensing
