import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;

/**
 * The application kit in Java 17 or newer, with the standard library alone. Copy this file and Licensing.java.
 *
 * <pre>
 * var kit = new LicenseKit(new LicenseKit.Options("https://licenses.example.com", "editor-pro", keys,
 *     Licensing.hardware(fingerprint), new LicenseKit.FileStore(Path.of("license.json"))));
 * kit.start();
 * LicenseKit.Outcome outcome = kit.activate(licenseKey);
 * if (kit.verdict().mayRun()) { ... }
 * </pre>
 *
 * It believes only responses that keep the rules of VERIFYING.md, and says what the application should do, as
 * docs/guides/kit.md explains. Methods that ask the service return an outcome and throw nothing for the network. A kit
 * may be used by several threads: requests are sent one after another, and {@code verdict} and {@code features} never
 * wait for one. Use one kit for each machine and license.
 */
public final class LicenseKit implements AutoCloseable {
  private static final double HOUR = 3_600_000;
  private static final double SKEW = 300_000;
  /** The end of the year 9999, which is the last one of a payload. */
  private static final double INSTANT_MAX = 253_402_300_799_999.0;
  private static final int STORED_LENGTH_MAX = 1 << 24;

  /** Run: continue. Warn: continue, and tell the user. Ask: the user has to act first. Stop: end the licensed use. */
  public enum Decision { RUN, WARN, ASK, STOP }

  /** What the application should do now, and why. {@code endsAt}: until when without a further response; or null. */
  public record Verdict(Decision decision, String reason, Map<String, Object> refusal, Instant endsAt) {
    public boolean mayRun() {
      return decision.compareTo(Decision.WARN) <= 0;
    }

    private String words() {
      return decision + " " + reason;
    }

    private Verdict with(Decision other, String why) {
      return new Verdict(other, why, refusal, endsAt);
    }
  }

  /**
   * What an operation came to. Decision and reason hold for the application after it. Null where there is none: the
   * signed payload, the rule that a response broke, and why no believed response came (dns, refused, tls, timeout,
   * response or network). The event id is that of a consumption: give it again to repeat the same one.
   */
  public record Outcome(boolean granted, Decision decision, String reason, Map<String, Object> data,
      Map<String, Object> refusal, String brokenRule, String problem, Integer status, String eventId) {}

  /** Keeps one text, which has the license key: store it where only the user can read it. */
  public interface Store {
    /** What was written, or null. */
    String read() throws IOException;
    void write(String text) throws IOException;
  }

  /** Keeps the text in a file, which only the user can read where the file system has such permissions. */
  public record FileStore(Path path) implements Store {
    @Override
    public String read() throws IOException {
      try {
        return Files.readString(path);
      } catch (NoSuchFileException none) {
        return null;
      }
    }

    @Override
    public void write(String text) throws IOException {
      // A file of its own, because other processes of the application may be writing. Only its owner can read it.
      Path written = Files.createTempFile(path.toAbsolutePath().getParent(), path.getFileName() + ".", ".new");
      try {
        Files.writeString(written, text, StandardOpenOption.DSYNC);
        Files.move(written, path, StandardCopyOption.REPLACE_EXISTING);
      } finally {
        Files.deleteIfExists(written);
      }
    }
  }

  /** What a request got: a status and a body, or the problem that prevented it. */
  public record Reply(int status, byte[] body, String retryAfter, String problem) {
    static Reply failed(String problem) {
      return new Reply(0, new byte[0], "", problem);
    }
  }

  /** Sends a POST, or a GET without a body. */
  public interface Sender {
    Reply send(String url, Map<String, String> headers, String body, Duration timeout);
  }

  /** What the application gives the kit. */
  public static final class Options {
    final String baseUrl;
    final String productCode;
    final Map<String, String> keys;
    final Licensing.Binding binding;
    final Store store;
    String appVersion;
    Duration tolerance = Duration.ofHours(72);
    Duration timeout = Duration.ofSeconds(15);
    boolean trustPublishedKeys;
    Consumer<Verdict> onVerdict = verdict -> {};
    Clock clock = Clock.systemUTC();
    Sender sender;
    IntFunction<byte[]> random = count -> {
      byte[] bytes = new byte[count];
      new SecureRandom().nextBytes(bytes);
      return bytes;
    };

    /** @param keys kid to public key in base64, as GET /api/v1/system/public-keys publishes them: build them in */
    public Options(
        String baseUrl, String productCode, Map<String, String> keys, Licensing.Binding binding, Store store) {
      this.baseUrl = baseUrl.replaceAll("/+$", "");
      this.productCode = productCode;
      this.keys = Map.copyOf(keys);
      this.binding = binding;
      this.store = store;
    }

    public Options appVersion(String version) {
      appVersion = version;
      return this;
    }

    /** How long the application may go on after next_check_at without the service. */
    public Options tolerance(Duration duration) {
      tolerance = duration;
      return this;
    }

    public Options timeout(Duration duration) {
      timeout = duration;
      return this;
    }

    /** Also trusts keys that the service publishes later, over TLS. */
    public Options trustPublishedKeys() {
      trustPublishedKeys = true;
      return this;
    }

    /** Called when the decision or its reason changes. It may use the kit. */
    public Options onVerdict(Consumer<Verdict> listener) {
      onVerdict = listener;
      return this;
    }

    /** Replaces clock, network and randomness, for tests. */
    public Options platform(Clock newClock, Sender newSender, IntFunction<byte[]> newRandom) {
      clock = newClock;
      sender = newSender;
      random = newRandom;
      return this;
    }

    private void check() {
      if (!baseUrl.matches("https?://[^/?#@\\s]+(/[^?#\\s]*)?") || baseUrl.matches(".*/api(/v\\d+)?")) {
        throw new IllegalArgumentException(
            "baseUrl is the service's address, as https://licenses.example.com, before /api/v1");
      }
      if (keys.isEmpty() && !trustPublishedKeys) {
        throw new IllegalArgumentException("keys needs the keys of GET /api/v1/system/public-keys");
      }
      if (!keys.values().stream().allMatch(key -> key.matches("[A-Za-z0-9+/]{43}="))) {
        throw new IllegalArgumentException(
            "keys has for each kid its public_key of GET /api/v1/system/public-keys: 32 bytes as base64");
      }
      if (binding.key().isEmpty()) throw new IllegalArgumentException("binding needs a fingerprint");
    }
  }

  /** What a refusal ends; what is again is taken again once. */
  private record Rule(Decision decision, String reach, boolean again) {}

  private static final Map<String, Rule> RULES = new HashMap<>();

  private static void rules(Decision decision, String reach, boolean again, String... codes) {
    for (String code : codes) RULES.put(code, new Rule(decision, reach, again));
  }

  static {
    rules(Decision.STOP, "license", false, "LICENSE_REVOKED", "LICENSE_SUSPENDED", "DEVICE_BLACKLISTED",
        "VM_NOT_ALLOWED", "CONTAINER_NOT_ALLOWED");
    rules(Decision.ASK, "license", false, "LICENSE_EXPIRED", "LICENSE_NOT_STARTED", "PRODUCT_MISMATCH",
        "VERSION_UNKNOWN", "VERSION_NOT_ENTITLED");
    rules(Decision.STOP, "activation", true, "DEVICE_NOT_FOUND", "DEVICE_NOT_ACTIVE", "HEARTBEAT_OVERDUE");
    rules(Decision.ASK, "activation", false, "ACTIVATION_LIMIT_REACHED", "CONTAINER_LIMIT_REACHED");
    rules(Decision.STOP, "seat", true, "LEASE_EXPIRED", "LEASE_NOT_ACTIVE", "LEASE_NOT_FOUND");
    rules(Decision.ASK, "seat", false, "FLOATING_LIMIT_REACHED", "FLOATING_NOT_ENABLED");
    rules(Decision.RUN, "request", false, "DEVICE_STATE_CONFLICT");
  }

  /** A code that is not in the table, as FEATURE_DISABLED or one of a later service, ends nothing. */
  private static Rule ruleOf(String code) {
    return RULES.getOrDefault(code, new Rule(Decision.WARN, "request", false));
  }

  private static final Map<String, String> KINDS = Map.of("activate", "entitlement", "validate", "entitlement", "check",
      "entitlement", "consume", "entitlement", "deactivate", "deactivation", "offline", "offline", "floating/checkout",
      "floating_checkout", "floating/heartbeat", "floating_lease", "floating/checkin", "floating_lease");
  private static final Map<String, String> SLOTS = Map.of("entitlement", "entitlement", "offline", "offline",
      "floating_checkout", "checkout", "floating_lease", "lease");
  /** Operations that show until when the application may go on. */
  private static final Set<String> KEEPING =
      Set.of("activate", "validate", "floating/checkout", "floating/heartbeat");

  private record Identity(String licenseKey, String licenseId, String productId) {}

  private record Kept(String text, Map<String, Object> content) {}

  /** A believed response, or why there is none. */
  private record Believed(Licensing.Answer answer, String text, String reason, String rule, String problem,
      Integer status, double retryAfter) {
    static Believed missed(String reason, String rule, String problem, Integer status, double retryAfter) {
      return new Believed(null, null, reason, rule, problem, status, retryAfter);
    }

    boolean granted() {
      return answer != null && !answer.isRefusal();
    }

    boolean refused() {
      return answer != null && answer.isRefusal();
    }

    String code() {
      return refused() ? String.valueOf(answer.text("code")) : "";
    }

    String why() {
      return answer == null ? reason : refused() ? code() : null;
    }

    Map<String, Object> content() {
      return answer.content();
    }
  }

  private static final Believed NOT_ACTIVATED = Believed.missed("NOT_ACTIVATED", null, null, null, 0);

  private final Options options;
  private final Sender sender;
  /** Held during an operation. */
  private final ReentrantLock asking = new ReentrantLock();
  /** Held while what follows is read or changed. */
  private final Object state = new Object();
  private Identity identity;
  private String holding;
  private double highest = Double.NEGATIVE_INFINITY;
  private double due = Double.POSITIVE_INFINITY;
  private double plannedAt = Double.NEGATIVE_INFINITY;
  private double wakeAt = Double.POSITIVE_INFINITY;
  private Map<String, String> published = Map.of();
  private String missed;
  private boolean isClockAhead;
  private boolean isStoreFailed;
  private Map<String, Object> used;
  private final Map<String, Kept> responses = new LinkedHashMap<>();
  private int failures;
  private double keysFetchedAt = Double.NEGATIVE_INFINITY;
  private String told;
  private Thread keeper;

  /** Reads the store, and believes of it what keeps the rules. Sends nothing. */
  public LicenseKit(Options options) {
    options.check();
    this.options = options;
    this.sender = options.sender == null ? new Http() : options.sender;
    load();
    told = verdict().words();
  }

  // ---- What holds now ----

  public Verdict verdict() {
    synchronized (state) {
      Verdict verdict = decide(now());
      boolean isWarned = isStoreFailed && verdict.decision() == Decision.RUN;
      return isWarned ? verdict.with(Decision.WARN, "STORE_FAILED") : verdict;
    }
  }

  /** "device", "seat" or null. */
  public String holding() {
    synchronized (state) {
      return holding;
    }
  }

  /** What the newest believed response says of the license, for an About box; null if there is none. */
  public Map<String, Object> license() {
    synchronized (state) {
      return grant();
    }
  }

  /**
   * The features that the application may use now: none if it must not run. In a new period of a quota, a feature has
   * is_usage_unknown in place of what was consumed.
   */
  public List<Map<String, Object>> features() {
    synchronized (state) {
      List<Map<String, Object>> current = new ArrayList<>();
      if (!verdict().mayRun()) return current;
      Map<String, Object> grant = grant();
      Object listed = grant == null ? null : grant.get("features");
      if (listed == null && content("checkout") != null) listed = content("checkout").get("features");
      if (!(listed instanceof List<?> all)) return current;
      for (Object one : all) {
        Map<String, Object> feature = new LinkedHashMap<>(objectOf(one));
        if (now() >= millis(feature, "expires_at")) continue;
        if (now() >= millis(feature, "resets_at")) {
          feature.keySet().removeAll(Set.of("consumed", "remaining", "overage"));
          feature.put("is_usage_unknown", true);
        }
        current.add(feature);
      }
      return current;
    }
  }

  /** Null if the application may not use it. */
  public Map<String, Object> feature(String code) {
    return features().stream().filter(one -> code.equals(one.get("code"))).findFirst().orElse(null);
  }

  // ---- Operations ----

  /** Activates this machine with the license key; with null again with the stored one. */
  public Outcome activate(String licenseKey) {
    return alone(() -> enter("activate", "device", licenseKey, Map.of()));
  }

  /**
   * Starts this machine's one trial of the product under this policy, without a license key. It is refused with
   * TRIAL_ALREADY_USED or TRIAL_NOT_ALLOWED.
   */
  public Outcome startTrial(String policyCode) {
    Map<String, Object> fields = Map.of("policy_code", policyCode, "binding", machine());
    return alone(() -> {
      Believed got = ask(new Question("trial", "entitlement", fields, options.binding, null, false), NO_ONE);
      return enterWith("activate", "device", got.granted() ? got.answer().text("license_key") : null, got);
    });
  }

  /** Takes a floating seat, or borrows it until an instant that is not null. */
  public Outcome checkout(String licenseKey, Instant until) {
    Map<String, Object> more = until == null ? Map.of() : Map.of("until", iso(until.toEpochMilli()));
    return alone(() -> enter("floating/checkout", "seat", licenseKey, more));
  }

  /** Asks whether the application may go on. It is the heartbeat of an activation. */
  public Outcome validate() {
    return alone(() -> use("validate", Map.of()));
  }

  /** Asks the same, and writes nothing at the service. */
  public Outcome check() {
    return alone(() -> use("check", Map.of()));
  }

  /** Counts one use. */
  public Outcome consume(String featureCode) {
    return consume(featureCode, null, UUID.randomUUID().toString());
  }

  /** Counts use. Unless it is granted nothing is known to be counted: repeat it with the same event id. */
  public Outcome consume(String featureCode, Long amount, String eventId) {
    Map<String, Object> more = new HashMap<>(Map.of("feature_code", featureCode, "event_id", eventId));
    if (amount != null) more.put("amount", amount);
    return counted(more, eventId);
  }

  /** Takes a whole consumption back. A repetition takes back nothing more. */
  public Outcome reverse(String featureCode, String eventId) {
    String own = eventId + ":reversed";
    return counted(Map.of("feature_code", featureCode, "reverses", eventId, "event_id", own), own);
  }

  private Outcome counted(Map<String, Object> more, String eventId) {
    Outcome got = alone(() -> use("consume", more));
    return new Outcome(got.granted(), got.decision(), got.reason(), got.data(), got.refusal(), got.brokenRule(),
        got.problem(), got.status(), eventId);
  }

  /** Gets an offline envelope for this machine, and uses it from now on. */
  public Outcome issueOffline() {
    return alone(() -> use("offline", Map.of()));
  }

  /** The request of a machine without a network, as a text for a file or a QR code. */
  public String offlineRequest() {
    Licensing.Binding own = options.binding;
    return Licensing.offlineRequest(new Licensing.Binding(own.kind(), own.key(), machine()), options.productCode);
  }

  /** Uses an offline envelope that was brought to this machine: alone, or in the whole response. */
  public Outcome openOffline(String envelope, String licenseKey) {
    return alone(() -> open(envelope, licenseKey));
  }

  /**
   * Lists the license's devices in the outcome's data, the newest first: with the stored license key if it is null, after
   * the next_cursor of the page before if there is one, and at most limit if it is not null. Needs no activation, and
   * changes nothing.
   */
  public Outcome listDevices(String licenseKey, String cursor, Integer limit) {
    Map<String, Object> page = new HashMap<>();
    if (cursor != null) page.put("cursor", cursor);
    if (limit != null) page.put("limit", limit);
    return alone(() -> askAside(licenseKey, new Question("devices", "devices", page, null, null, true)));
  }

  /** Deactivates another device of the license, which was lost: its slot becomes free. */
  public Outcome deactivateDevice(String deviceId, String licenseKey) {
    String path = "devices/" + encoded(deviceId) + "/deactivate";
    return alone(() -> askAside(licenseKey, new Question(path, "deactivation", Map.of(), null, deviceId, false)));
  }

  /** Gives the activation back. */
  public Outcome deactivate() {
    return alone(() -> giveBack("deactivate", Map.of()));
  }

  /** Gives the seat back. */
  public Outcome checkin() {
    return alone(() -> {
      Object token = leaseToken();
      return giveBack("floating/checkin", token == null ? Map.of() : Map.of("lease_token", token));
    });
  }

  // ---- In the background ----

  /** From now on validates at next_check_at and sends the seat's heartbeats, in a daemon thread, until close. */
  public void start() {
    synchronized (state) {
      if (keeper != null) return;
      keeper = new Thread(this::keep, "license-kit");
      keeper.setDaemon(true);
      keeper.start();
    }
  }

  /** Ends what start began. It gives nothing back. */
  @Override
  public void close() {
    synchronized (state) {
      keeper = null;
      state.notifyAll();
    }
  }

  /** Does at once what is due, and a retry that waits: after the machine slept, or when it is online again. */
  public void wake() {
    askDue(true);
  }

  private void askDue(boolean isWoken) {
    alone(() -> {
      if (holding() == null || !isDue(isWoken)) return null;
      Object token = leaseToken();
      if (holding().equals("device")) return use("validate", Map.of());
      // A heartbeat is granted without a check of the version and the machine, so it lifts no refusal.
      if (token == null || isRefused()) return enter("floating/checkout", "seat", null, Map.of());
      return use("floating/heartbeat", Map.of("lease_token", token));
    });
  }

  private void keep() {
    while (true) {
      askDue(false);
      synchronized (state) {
        if (keeper != Thread.currentThread()) return;
        try {
          // Timers stand still while a machine sleeps: the clock is read again at least each minute.
          state.wait((long) Math.min(Math.max(due - now(), 1_000), 60_000));
        } catch (InterruptedException end) {
          return;
        }
        if (keeper != Thread.currentThread()) return;
      }
    }
  }

  // ---- Asking, one request after another ----

  private Outcome alone(Supplier<Outcome> ask) {
    Outcome outcome;
    asking.lock();
    try {
      outcome = ask.get();
    } finally {
      asking.unlock();
    }
    // Outside of the locks: the application may use the kit in its callback.
    Verdict verdict;
    boolean isNew;
    synchronized (state) {
      verdict = verdict();
      isNew = !verdict.words().equals(told);
      told = verdict.words();
    }
    if (isNew) tell(verdict);
    return outcome;
  }

  /** The application's own error is reported like one that nothing catches, and the kit goes on. */
  private void tell(Verdict verdict) {
    try {
      options.onVerdict.accept(verdict);
    } catch (RuntimeException failure) {
      Thread thread = Thread.currentThread();
      thread.getUncaughtExceptionHandler().uncaughtException(thread, failure);
    }
  }

  private Outcome enter(String operation, String gives, String licenseKey, Map<String, Object> more) {
    Identity own = identityOf(licenseKey);
    if (own == null) return outcomeOf(NOT_ACTIVATED);
    Believed got = ask(operation, more, own);
    synchronized (state) {
      if (identity == null || !identity.licenseKey().equals(own.licenseKey())) {
        return enterWith(operation, gives, own.licenseKey(), got);
      }
      return settle(operation, got, got.granted() ? gives : null);
    }
  }

  /** Another license than before: until it is granted the one before stays. */
  private Outcome enterWith(String operation, String gives, String licenseKey, Believed got) {
    synchronized (state) {
      if (got.granted()) {
        begin(licenseKey);
        return settle(operation, got, gives);
      }
      if (holding == null) missed = got.why();
      if (got.refused()) save();
      return outcomeOf(got);
    }
  }

  /** A request of what is held. What the service has forgotten is taken again, once. */
  private Outcome use(String operation, Map<String, Object> more) {
    Identity own = identityOf(null);
    if (holding() == null || own == null) return outcomeOf(NOT_ACTIVATED);
    Believed got = ask(operation, more, own);
    if (!got.refused() || !ruleOf(got.code()).again()) return settle(operation, got, null);
    if (operation.equals("offline") && holding().equals("seat")) {
      // Only an activation gets an envelope: its refusal is not about the seat.
      synchronized (state) {
        settle(operation, got, null);
        return outcomeOf(got, Decision.WARN);
      }
    }
    String regaining = holding().equals("seat") ? "floating/checkout" : "activate";
    Believed regained = ask(regaining, Map.of(), own);
    Outcome outcome = settle(regaining, regained, null);
    boolean isRepeated = operation.equals("consume") || operation.equals("offline");
    if (!regained.granted() || !isRepeated) return outcome;
    return settle(operation, ask(operation, more, identityOf(null)), null);
  }

  private Outcome open(String envelope, String licenseKey) {
    Identity own = identityOf(licenseKey);
    if (own == null) return outcomeOf(NOT_ACTIVATED);
    Licensing.Expected expected = expected("offline", own, null, options.binding);
    Believed got = believing(null, false, () -> opened(envelopeIn(envelope), own.licenseKey(), expected));
    synchronized (state) {
      if (got.granted()) {
        if (identity == null || !identity.licenseKey().equals(own.licenseKey())) begin(own.licenseKey());
        grantFromFile(got);
        save();
      }
      return outcomeOf(got);
    }
  }

  private Outcome giveBack(String operation, Map<String, Object> more) {
    Identity own = identityOf(null);
    if (own == null) return outcomeOf(NOT_ACTIVATED);
    // A seat that was lost has no token: nothing is left to give back.
    boolean isGone = operation.equals("floating/checkin") && more.isEmpty();
    Believed got = isGone ? NOT_ACTIVATED : ask(operation, more, own);
    boolean isNothing = isGone || Set.of("DEVICE_STATE_CONFLICT", "DEVICE_NOT_FOUND").contains(got.code())
        || got.code().startsWith("LEASE_");
    synchronized (state) {
      if (got.granted() || isNothing) release(operation.equals("deactivate") ? "device" : "seat");
      else if (got.refused()) {
        plan(operation, got);
        refuse(got);
      }
      save();
      if (!got.granted() && !isNothing) return outcomeOf(got);
      Verdict verdict = verdict();
      return new Outcome(true, verdict.decision(), verdict.reason(), got.granted() ? got.content() : null,
          verdict.refusal(), null, null, null, null);
    }
  }

  private Map<String, Object> machine() {
    Map<String, Object> request = new HashMap<>(options.binding.request());
    if (options.appVersion != null) request.put("app_version", options.appVersion);
    return request;
  }

  /** A request about the license's other devices. Its refusal is not about this one, so it only warns. */
  private Outcome askAside(String licenseKey, Question question) {
    Identity own = identityOf(licenseKey);
    if (own == null) return outcomeOf(NOT_ACTIVATED);
    Believed got = ask(question, own);
    synchronized (state) {
      if (got.answer() != null) save();
      return outcomeOf(got, Decision.WARN);
    }
  }

  /**
   * What is asked, and what its answer must be. The binding is null where the answer has none, or that of another device;
   * a GET has the fields in its query.
   */
  private record Question(String path, String kind, Map<String, Object> fields, Licensing.Binding binding,
      String deviceId, boolean isRead) {}

  /** For a request without a license key. */
  private static final Identity NO_ONE = new Identity(null, null, null);

  private Believed ask(String operation, Map<String, Object> more, Identity own) {
    boolean isOfLease = operation.equals("floating/heartbeat") || operation.equals("floating/checkin");
    Map<String, Object> fields = isOfLease ? new HashMap<>() : machine();
    fields.putAll(more);
    return ask(new Question(operation, KINDS.get(operation), fields, options.binding, null, false), own);
  }

  private Believed ask(Question question, Identity own) {
    // No header and no license has another key, such as one with the dashes of a word processor.
    if (own.licenseKey() != null && !own.licenseKey().matches("[ -~]*")) {
      return Believed.missed("LICENSE_KEY_INVALID", null, null, null, 0);
    }
    String nonce = Base64.getEncoder().encodeToString(options.random.apply(16));
    Map<String, Object> fields = new HashMap<>(question.fields());
    fields.put("nonce", nonce);
    fields.put("product_code", options.productCode);
    Map<String, String> headers = new HashMap<>();
    if (own.licenseKey() != null) headers.put("Authorization", "License " + own.licenseKey());
    String url = options.baseUrl + "/api/v1/license/" + question.path();
    String body = null;
    if (question.isRead()) {
      List<String> query = new ArrayList<>();
      fields.forEach((name, value) -> query.add(name + "=" + encoded(String.valueOf(value))));
      url += "?" + String.join("&", query);
    } else {
      headers.put("Content-Type", "application/json");
      body = Licensing.Json.write(fields);
    }
    Reply reply = sender.send(url, headers, body, options.timeout);
    if (reply.problem() != null) return Believed.missed("NOT_REACHED", null, reply.problem(), null, 0);
    Licensing.Expected expected = expected(question.kind(), own, nonce, question.binding());
    return believing(reply, own.licenseKey() == null, () -> {
      if (question.kind().equals("offline")) {
        // The envelope is signed, and so is what is in it.
        Licensing.Answer outer = Licensing.judge(keys(), reply.body(), Licensing.Expected.NOTHING);
        if (!outer.isRefusal()) {
          return opened(utf8(Licensing.Json.members(reply.body()).get("data").text()), own.licenseKey(), expected);
        }
      }
      Licensing.Answer answer = Licensing.judge(keys(), reply.body(), expected);
      String other = question.deviceId();
      if (other != null && !answer.isRefusal() && !other.equals(answer.text("device_id"))) {
        throw new Licensing.Distrusted("binding", "another device answered");
      }
      return new Judged(answer, new String(reply.body(), StandardCharsets.UTF_8));
    });
  }

  private record Judged(Licensing.Answer answer, String text) {}

  private interface Judging {
    Judged judge() throws Licensing.Distrusted, Licensing.Json.Malformed;
  }

  private Judged opened(byte[] envelope, String licenseKey, Licensing.Expected expected) throws Licensing.Distrusted {
    byte[] text = Licensing.decrypt(licenseKey, envelope);
    return new Judged(Licensing.judge(keys(), text, expected), new String(text, StandardCharsets.UTF_8));
  }

  private Licensing.Expected expected(String kind, Identity own, String nonce, Licensing.Binding binding) {
    synchronized (state) {
      Instant seen = Double.isInfinite(highest) ? null : Instant.ofEpochMilli((long) highest);
      return new Licensing.Expected(kind, own.licenseId(), own.productId(), options.productCode, binding, nonce,
          options.clock.instant(), seen);
    }
  }

  private Believed believing(Reply reply, boolean isTrial, Judging judging) {
    try {
      Judged judged;
      try {
        judged = judging.judge();
      } catch (Licensing.Distrusted distrusted) {
        if (!distrusted.rule.equals("kid") || !fetchKeys()) throw distrusted;
        judged = judging.judge();
      }
      synchronized (state) {
        see(judged.answer().text("issued_at"));
      }
      return new Believed(judged.answer(), judged.text(), null, null, null, null, 0);
    } catch (Licensing.Distrusted distrusted) {
      return missed(distrusted.rule, reply, isTrial);
    } catch (Licensing.Json.Malformed malformed) {
      return missed("signature", reply, isTrial);
    }
  }

  private static Believed missed(String rule, Reply reply, boolean isTrial) {
    if (rule.equals("times")) return Believed.missed("CLOCK_WRONG", rule, null, null, 0);
    if (reply == null) return Believed.missed("NOT_REACHED", rule, null, null, 0);
    boolean isSeconds = reply.retryAfter().matches("[0-9]{1,9}");
    double wait = isSeconds ? Math.min(Double.parseDouble(reply.retryAfter()) * 1000, HOUR) : 0;
    String code = codeIn(reply.body());
    // Only these unsigned codes ask the user for something. A trial that is refused takes nothing away.
    boolean isOfKey = reply.status() == 401 && Set.of("LICENSE_KEY_INVALID", "LICENSE_KEY_MISSING").contains(code);
    if (rule.equals("signature") && !code.isEmpty() && (isTrial ? reply.status() == 403 : isOfKey)) {
      return Believed.missed(code, null, null, null, wait);
    }
    return Believed.missed("NOT_REACHED", rule, "response", reply.status(), wait);
  }

  /** Only over TLS, or on this machine, does the connection vouch for the keys. At most once in ten minutes. */
  private boolean fetchKeys() {
    String safe = "(https:|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])([:/]|$)).*";
    if (!options.trustPublishedKeys || !options.baseUrl.matches(safe)) return false;
    if (Math.abs(now() - keysFetchedAt) < 600_000) return false;
    keysFetchedAt = now();
    Reply reply =
        sender.send(options.baseUrl + "/api/v1/system/public-keys", Map.of(), null, options.timeout);
    if (reply.problem() != null || reply.status() != 200) return false;
    try {
      Licensing.Json.Member data = Licensing.Json.members(reply.body()).get("data");
      synchronized (state) {
        published = keysIn(data == null ? null : data.value());
      }
      return true;
    } catch (Licensing.Json.Malformed malformed) {
      return false;
    }
  }

  /** A key that is built in is never replaced. */
  private Map<String, String> keys() {
    synchronized (state) {
      Map<String, String> all = new HashMap<>(options.trustPublishedKeys ? published : Map.of());
      all.putAll(options.keys);
      return all;
    }
  }

  // ---- Memory: what is believed. All below run with the lock of the state. ----

  private void load() {
    String text = null;
    try {
      text = options.store.read();
    } catch (IOException | RuntimeException failure) {
      isStoreFailed = true;
    }
    Map<String, Object> stored = objectIn(text);
    String key = text(stored.get("license_key"));
    if (key != null) {
      identity = new Identity(key, text(stored.get("license_id")), text(stored.get("product_id")));
      String held = text(stored.get("holding"));
      if ("device".equals(held) || "seat".equals(held)) holding = held;
    }
    published = keysIn(stored.get("published_keys"));
    see(stored.get("highest_issued_at"));
    Map<String, Object> texts = objectOf(stored.get("responses"));
    for (String slot : List.of("entitlement", "offline", "checkout", "lease", "refusal")) loadSlot(slot, texts.get(slot));
    if (holding == null) return;
    // The service is asked at once if nothing stored is believed, and for a seat, unless it is borrowed.
    boolean isBorrowed = seat() != null && seat().containsKey("borrowed_until");
    boolean isWaiting = holding.equals("device") ? !responses.isEmpty() : isBorrowed;
    Map<String, Object> entitlement = content("entitlement");
    double next = entitlement == null ? millis(seat(), "lease_expires_at") : millis(entitlement, "next_check_at");
    // A plan that is later than the service's own, and than any retry, was made while the clock was ahead.
    double stands = millis(stored, "due_at");
    boolean isPlausible = stands <= now() + HOUR || stands <= next + SKEW;
    // What ended the use has perhaps ended since: the license was renewed, or the network is back.
    due = isWaiting && isPlausible && verdict().mayRun() ? stands : 0;
  }

  private void loadSlot(String slot, Object response) {
    if (!(response instanceof String text)) return;
    String kind = SLOTS.keySet().stream().filter(one -> SLOTS.get(one).equals(slot)).findFirst().orElse(null);
    Identity own = identity == null ? new Identity(null, null, null) : identity;
    try {
      Licensing.Answer answer = Licensing.judge(keys(), utf8(text),
          new Licensing.Expected(
              kind, own.licenseId(), own.productId(), options.productCode, options.binding, null, null, null));
      if (answer.isRefusal() != slot.equals("refusal")) return;
      responses.put(slot, new Kept(text, answer.content()));
      see(answer.text("issued_at"));
    } catch (Licensing.Distrusted distrusted) {
      // As if it were not there.
    }
  }

  private Map<String, Object> content(String slot) {
    Kept kept = responses.get(slot);
    return kept == null ? null : kept.content();
  }

  /** The seat that is held. */
  private Map<String, Object> seat() {
    if (!"seat".equals(holding)) return null;
    return responses.containsKey("lease") ? content("lease") : content("checkout");
  }

  private Object leaseToken() {
    synchronized (state) {
      return content("checkout") == null ? null : content("checkout").get("lease_token");
    }
  }

  private boolean isRefused() {
    synchronized (state) {
      return responses.containsKey("refusal");
    }
  }

  /** Also if the clock was set back: it was ahead when the request was planned. */
  private boolean isDue(boolean isWoken) {
    synchronized (state) {
      double now = now();
      return now >= due || now < plannedAt || isWoken && now >= wakeAt;
    }
  }

  private Identity identityOf(String licenseKey) {
    synchronized (state) {
      if (licenseKey == null) return identity;
      String key = licenseKeyOf(licenseKey);
      return identity != null && identity.licenseKey().equals(key) ? identity : new Identity(key, null, null);
    }
  }

  private Outcome settle(String operation, Believed got, String gives) {
    synchronized (state) {
      plan(operation, got);
      if (got.granted()) take(got, now(), gives);
      else if (got.refused()) refuse(got);
      missed = holding == null || got.answer() == null ? got.why() : null;
      save();
      return outcomeOf(got);
    }
  }

  /** Believes a grant. Without what it gives, the response only updates what is held. */
  private void take(Believed got, double now, String gives) {
    Map<String, Object> content = got.content();
    if (identity != null) {
      identity = new Identity(
          identity.licenseKey(), String.valueOf(content.get("license_id")), String.valueOf(content.get("product_id")));
    }
    responses.remove("refusal");
    isClockAhead = now - millis(content, "issued_at") > SKEW;
    String slot = SLOTS.get(String.valueOf(content.get("kind")));
    // Only an activation gets an envelope: also beside a seat the machine has one.
    String held = "offline".equals(slot) ? "device" : gives;
    // Why nothing was held until now.
    if (holding == null) missed = null;
    if (held != null && !held.equals(holding)) forget(held.equals("device"));
    if (held != null) holding = held;
    boolean isSeat = "seat".equals(holding);
    // An entitlement to the holder of a seat outlasts the seat: the seat alone decides.
    boolean isOfSeat = "checkout".equals(slot) || "lease".equals(slot);
    if ("entitlement".equals(slot) && isSeat) used = content;
    if (slot == null || isOfSeat != isSeat) return;
    if (slot.equals("checkout")) responses.remove("lease");
    responses.put(slot, new Kept(got.text(), content));
    double checkAt = millis(content, "next_check_at");
    if (slot.equals("offline") && checkAt < due) due = checkAt;
  }

  /** A file was issued before: it changes neither the clock nor a newer refusal. */
  private void grantFromFile(Believed got) {
    boolean isAhead = isClockAhead;
    Kept refusal = responses.get("refusal");
    take(got, 0, null);
    isClockAhead = isAhead;
    if (refusal != null && millis(refusal.content(), "issued_at") > millis(got.content(), "issued_at")) {
      forget(true);
      responses.put("refusal", refusal);
    }
  }

  /** What a refusal ends is forgotten, so that removing the refusal from the store gives nothing back. */
  private void refuse(Believed got) {
    String reach = ruleOf(got.code()).reach();
    boolean isOfHolding = reach.equals("activation") ? "device".equals(holding) : "seat".equals(holding);
    if (reach.equals("request") || !reach.equals("license") && !isOfHolding) return;
    boolean isBorrowed = millis(content("checkout"), "borrowed_until") > millis(got.content(), "issued_at");
    // Only a revocation ends a borrowed seat: after any other refusal it can still be given back.
    forget(isBorrowed && !got.code().equals("LICENSE_REVOKED"));
    responses.put("refusal", new Kept(got.text(), got.content()));
  }

  /** The activation or the seat was given back; the other one stays. */
  private void release(String given) {
    if ("seat".equals(given)) responses.remove("checkout");
    if (given == null || !given.equals(holding)) return;
    forget(true);
    holding = null;
    missed = null;
    due = Double.POSITIVE_INFINITY;
  }

  private void begin(String licenseKey) {
    release(holding);
    responses.clear();
    identity = new Identity(licenseKey, null, null);
  }

  /** Only the token in the checkout gives a seat back, also beside an activation. */
  private void forget(boolean keepsToken) {
    used = null;
    responses.keySet().removeIf(slot -> SLOTS.containsValue(slot) && !(keepsToken && slot.equals("checkout")));
  }

  /** Of every believed answer, also one that changes nothing else: the clock must not fall behind it. */
  private void see(Object issuedAt) {
    double instant = millisOf(issuedAt);
    if (instant > highest) highest = instant;
  }

  private void save() {
    Map<String, Object> stored = new LinkedHashMap<>();
    if (identity != null) {
      stored.put("license_key", identity.licenseKey());
      stored.put("license_id", identity.licenseId());
      stored.put("product_id", identity.productId());
    }
    stored.put("holding", holding);
    stored.put("highest_issued_at", iso(highest));
    stored.put("due_at", iso(due));
    stored.values().removeIf(value -> value == null);
    List<Map<String, Object>> trusted = new ArrayList<>();
    if (options.trustPublishedKeys) published.forEach((kid, key) -> trusted.add(Map.of("kid", kid, "public_key", key)));
    stored.put("published_keys", trusted);
    Map<String, Object> texts = new LinkedHashMap<>();
    responses.forEach((slot, kept) -> texts.put(slot, kept.text()));
    stored.put("responses", texts);
    try {
      options.store.write(Licensing.Json.write(stored));
      isStoreFailed = false;
    } catch (IOException | RuntimeException failure) {
      isStoreFailed = true;
    }
  }

  // ---- Deciding: a function of what is believed and the time ----

  private Verdict decide(double now) {
    if (now < highest - SKEW) return just(Decision.ASK, "CLOCK_WRONG");
    Map<String, Object> refusal = content("refusal");
    if (refusal != null) {
      String code = String.valueOf(refusal.get("code"));
      return new Verdict(ruleOf(code).decision(), code, refusal, null);
    }
    if (holding == null) return just(Decision.ASK, missed == null ? "NOT_ACTIVATED" : missed);
    return holding.equals("seat") ? seatVerdict(now) : deviceVerdict(now);
  }

  private static Verdict just(Decision decision, String reason) {
    return new Verdict(decision, reason, null, null);
  }

  private Verdict seatVerdict(double now) {
    Map<String, Object> seat = seat();
    double endsAt = millis(seat, "lease_expires_at");
    if (!(now < endsAt)) return ended("SEAT_ENDED");
    // A heartbeat is due after a third of the term: after two thirds at least one was missed. A borrowed seat needs
    // none.
    double term = endsAt - millis(seat, "issued_at");
    return living(seat, now, endsAt, Math.max(endsAt - term / 3, finite(millis(seat, "borrowed_until"))));
  }

  private Verdict deviceVerdict(double now) {
    Map<String, Object> grant = newestGrant();
    if (grant == null) return ended("NOT_REACHED");
    String endName = grant.containsKey("access_ends_at") ? "access_ends_at" : "expires_at";
    double accessEnd = grant.containsKey(endName) ? millis(grant, endName) : Double.POSITIVE_INFINITY;
    if (now >= accessEnd) return just(Decision.ASK, isClockAhead ? "CLOCK_WRONG" : "LICENSE_EXPIRED");
    double checkAt = millis(content("entitlement"), "next_check_at");
    double offlineEnd = millis(content("offline"), "offline_expires_at");
    // A duration of any length has seconds; not every one has a number of milliseconds.
    double tolerance = options.tolerance.getSeconds() * 1e3 + options.tolerance.getNano() / 1e6;
    double end = Math.max(finite(checkAt) + tolerance, finite(offlineEnd));
    double endsAt = Math.min(Math.min(end, accessEnd), INSTANT_MAX);
    if (!(now < endsAt)) return ended("NOT_REACHED");
    Verdict verdict = living(grant, now, endsAt, Math.max(finite(checkAt), finite(offlineEnd)));
    boolean isOffline = !(now < checkAt) && now < offlineEnd && verdict.reason().equals("LICENSED");
    return isOffline ? verdict.with(verdict.decision(), "OFFLINE") : verdict;
  }

  /** Runs until {@code warnAt}, then warns. */
  private Verdict living(Map<String, Object> content, double now, double endsAt, double warnAt) {
    Decision decision = Decision.WARN;
    String reason = "NOT_REACHED";
    if ("grace_period".equals(content.get("status")) || now >= millis(content, "expires_at")) reason = "GRACE_PERIOD";
    else if (isClockAhead) reason = "CLOCK_WRONG";
    else if (missed != null && !missed.equals("NOT_REACHED")) reason = missed;
    else if (now < warnAt) {
      decision = Decision.RUN;
      reason = "LICENSED";
    }
    return new Verdict(decision, reason, null, Instant.ofEpochMilli((long) endsAt));
  }

  /** Nothing believed allows the use any more: stops, unless the user can do something about it. */
  private Verdict ended(String reason) {
    if (isClockAhead) return just(Decision.ASK, "CLOCK_WRONG");
    return missed == null || missed.equals("NOT_REACHED") ? just(Decision.STOP, reason) : just(Decision.ASK, missed);
  }

  private Map<String, Object> newestGrant() {
    Map<String, Object> entitlement = content("entitlement");
    Map<String, Object> offline = content("offline");
    boolean isOfflineNewer = !(millis(entitlement, "issued_at") >= millis(offline, "issued_at"));
    return offline != null && isOfflineNewer ? offline : entitlement;
  }

  /** The newest believed response that grants something. */
  private Map<String, Object> grant() {
    if (!"seat".equals(holding)) return newestGrant();
    Map<String, Object> newest = used;
    for (String slot : List.of("lease", "checkout")) {
      Map<String, Object> one = content(slot);
      if (newest == null || millis(one, "issued_at") > millis(newest, "issued_at")) newest = one;
    }
    return newest;
  }

  // ---- When to ask next ----

  private void plan(String operation, Believed got) {
    // With a seat only its lease counts: a validation does not put off the next heartbeat, unless it is refused.
    boolean isOfSeat = operation.equals("validate") && "seat".equals(holding);
    // What refuses the license may be lifted: it is asked again soon, whatever was refused.
    boolean isEnd = got.refused() && ruleOf(got.code()).reach().equals("license");
    if (!isEnd && (!KEEPING.contains(operation) || isOfSeat && !got.refused())) return;
    failures = got.granted() ? 0 : failures + 1;
    plannedAt = now();
    due = plannedAt + (got.granted() ? waitOf(got.content()) : retryWait(got));
    // The application that calls wake knows that the machine is online: a retry need not wait as long.
    boolean isMissed = !got.granted() && !got.refused();
    wakeAt = isMissed ? plannedAt + Math.max(got.retryAfter(), 10_000) : Double.POSITIVE_INFINITY;
    state.notifyAll();
  }

  private double retryWait(Believed got) {
    if (got.code().equals("LICENSE_REVOKED")) return Double.POSITIVE_INFINITY;
    double most = seat() == null ? HOUR : Math.min(waitOf(seat()), HOUR);
    double backoff = Math.min(10_000 * Math.pow(2, Math.min(failures - 1, 20)), most);
    double spread = 0.2 * (options.random.apply(1)[0] & 0xff) / 255;
    double asked = got.retryAfter();
    if (got.refused() && got.content().get("retry_after_seconds") instanceof Number seconds) {
      asked = seconds.doubleValue() * 1000;
    }
    // Perhaps days: a vendor may lift the refusal before, and a seat needs its heartbeats.
    return Math.max(Math.min(asked, most), backoff * (1 - spread));
  }

  /** By the service's own instants, because this machine's clock may differ. */
  private static double waitOf(Map<String, Object> content) {
    double issued = millis(content, "issued_at");
    double leaseEnd = millis(content, "lease_expires_at");
    double wait = (leaseEnd - issued) / 3;
    double left = millis(content, "expires_at") - issued;
    if (Double.isNaN(leaseEnd)) {
      wait = millis(content, "next_check_at") - issued;
      // Perhaps a renewal has moved the expiry, and no grace period begins.
      if (left > 0 && left < wait) wait = left;
    }
    // Shortly before its end a heartbeat makes a borrowed seat an ordinary one without a gap.
    else if (leaseEnd <= millis(content, "borrowed_until")) wait = leaseEnd - issued - 30_000;
    return Math.max(Double.isNaN(wait) ? HOUR : wait, 5_000);
  }

  // ---- Outcomes ----

  private Outcome outcomeOf(Believed got) {
    return outcomeOf(got, ruleOf(got.code()).decision());
  }

  /** The stricter of the refusal's decision and the verdict after it. */
  private Outcome outcomeOf(Believed got, Decision own) {
    Verdict verdict = verdict();
    if (got.granted()) {
      return new Outcome(
          true, verdict.decision(), verdict.reason(), got.content(), verdict.refusal(), null, null, null, null);
    }
    if (got.refused()) {
      boolean isStricter = verdict.decision().compareTo(own) > 0;
      Verdict stricter = isStricter ? verdict : verdict.with(own, got.code());
      return new Outcome(
          false, stricter.decision(), stricter.reason(), null, got.content(), null, null, null, null);
    }
    String reason = verdict.mayRun() ? got.reason() : verdict.reason();
    return new Outcome(
        false, verdict.decision(), reason, null, verdict.refusal(), got.rule(), got.problem(), got.status(), null);
  }

  // ---- HTTP ----

  /** Follows no redirect, which would carry the license key to another host, and verifies certificates. */
  private static final class Http implements Sender {
    /** HTTP/1.1, because over plain http the default offers an upgrade that some servers and proxies do not ignore. */
    private final HttpClient client = HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .followRedirects(HttpClient.Redirect.NEVER)
        .build();

    @Override
    public Reply send(String url, Map<String, String> headers, String body, Duration timeout) {
      CompletableFuture<HttpResponse<byte[]>> asked = null;
      try {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url));
        headers.forEach(request::header);
        if (body != null) request.POST(HttpRequest.BodyPublishers.ofString(body));
        asked = client.sendAsync(request.build(), info -> new Limited());
        HttpResponse<byte[]> response = asked.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
        String retryAfter = response.headers().firstValue("retry-after").orElse("");
        return new Reply(response.statusCode(), response.body(), retryAfter, null);
      } catch (TimeoutException late) {
        asked.cancel(true);
        return Reply.failed("timeout");
      } catch (InterruptedException end) {
        asked.cancel(true);
        Thread.currentThread().interrupt();
        return Reply.failed("network");
      } catch (ExecutionException failure) {
        return Reply.failed(problemOf(failure));
      } catch (IllegalArgumentException malformed) {
        // An address that is none.
        return Reply.failed("network");
      }
    }

    private static String problemOf(Throwable failure) {
      String kind = "network";
      for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
        if (cause instanceof UnresolvedAddressException) return "dns";
        if (cause instanceof SSLException) return "tls";
        if (cause instanceof HttpTimeoutException) return "timeout";
        if (cause instanceof TooLarge) return "response";
        if (cause instanceof ConnectException) kind = "refused";
      }
      return kind;
    }
  }

  private static final class TooLarge extends IOException {}

  /** A body of at most 1 MiB. */
  private static final class Limited implements HttpResponse.BodySubscriber<byte[]> {
    private final CompletableFuture<byte[]> body = new CompletableFuture<>();
    private final ByteArrayOutputStream received = new ByteArrayOutputStream();
    private Flow.Subscription subscription;

    @Override
    public CompletionStage<byte[]> getBody() {
      return body;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
      subscription = given;
      given.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
      for (ByteBuffer buffer : buffers) {
        if (received.size() + buffer.remaining() > Licensing.BODY_BYTES_MAX) {
          subscription.cancel();
          body.completeExceptionally(new TooLarge());
          return;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        received.writeBytes(bytes);
      }
    }

    @Override
    public void onError(Throwable failure) {
      body.completeExceptionally(failure);
    }

    @Override
    public void onComplete() {
      body.complete(received.toByteArray());
    }
  }

  // ---- Texts ----

  /** What comes along with a text from the clipboard: the same in every kit. */
  private static final String WHITE_SPACE =
      "[\\t\\n\\x0b\\f\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff]+";

  private static String withoutOuterSpace(String text) {
    return text.replaceAll("^" + WHITE_SPACE + "|" + WHITE_SPACE + "$", "");
  }

  /** A license key as a person types it, in the form as issued. */
  public static String licenseKeyOf(String typed) {
    String text = withoutOuterSpace(typed);
    String symbols = text.replaceAll("[- ]", "").toUpperCase(Locale.ROOT);
    if (text.length() > 64 || !symbols.matches("[L1I]K[0-9A-TV-Z]{30}")) return text;
    String body = symbols.substring(2).replace('O', '0').replace('I', '1').replace('L', '1');
    return "LK" + body.replaceAll("(.{5})", "-$1");
  }

  /** The envelope in a text: alone, or as the data of a whole response. Editors add white space and byte order marks. */
  private static byte[] envelopeIn(String text) {
    byte[] trimmed = utf8(withoutOuterSpace(text));
    try {
      Map<String, Licensing.Json.Member> found = Licensing.Json.members(trimmed);
      return found.containsKey("ciphertext") || !found.containsKey("data") ? trimmed : utf8(found.get("data").text());
    } catch (Licensing.Json.Malformed malformed) {
      return trimmed;
    }
  }

  private static String codeIn(byte[] body) {
    try {
      Licensing.Json.Member error = Licensing.Json.members(body).get("error");
      String code = error == null ? null : text(objectOf(error.value()).get("code"));
      return code == null ? "" : code;
    } catch (Licensing.Json.Malformed malformed) {
      return "";
    }
  }

  private static Map<String, Object> objectIn(String text) {
    Map<String, Object> found = new HashMap<>();
    if (text == null || text.length() > STORED_LENGTH_MAX) return found;
    try {
      Licensing.Json.members(text).forEach((name, member) -> found.put(name, member.value()));
      return found;
    } catch (Licensing.Json.Malformed malformed) {
      return Map.of();
    }
  }

  private static Map<String, String> keysIn(Object listed) {
    Map<String, String> found = new LinkedHashMap<>();
    if (!(listed instanceof List<?> entries)) return found;
    for (Object entry : entries) {
      String kid = text(objectOf(entry).get("kid"));
      String key = text(objectOf(entry).get("public_key"));
      if (kid != null && key != null && found.size() < 64) found.put(kid, key);
    }
    return found;
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> objectOf(Object value) {
    return value instanceof Map ? (Map<String, Object>) value : Map.of();
  }

  private static String text(Object value) {
    return value instanceof String text ? text : null;
  }

  /** For a segment of a path or a query. */
  private static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private double now() {
    return options.clock.millis();
  }

  private static final Pattern INSTANT = Pattern.compile("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,6})?Z");

  /** Milliseconds of an instant as the service writes it, or NaN: comparisons with it are false. */
  private static double millisOf(Object value) {
    try {
      boolean isInstant = value instanceof String text && INSTANT.matcher(text).matches();
      return isInstant ? Instant.parse((String) value).toEpochMilli() : Double.NaN;
    } catch (DateTimeException malformed) {
      return Double.NaN;
    }
  }

  private static double millis(Map<String, Object> content, String name) {
    return content == null ? Double.NaN : millisOf(content.get(name));
  }

  private static final DateTimeFormatter ISO =
      DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

  private static String iso(double millis) {
    return Double.isInfinite(millis) || Double.isNaN(millis) ? null : ISO.format(Instant.ofEpochMilli((long) millis));
  }

  private static double finite(double millis) {
    return Double.isNaN(millis) ? Double.NEGATIVE_INFINITY : millis;
  }
}
