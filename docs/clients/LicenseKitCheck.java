import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Checks Licensing.java and LicenseKit.java against the published test vectors, and uses them with a service. */
final class LicenseKitCheck {
  private static int differences = 0;

  private static void report(String title, Object given, Object wanted, String shown) {
    boolean same = given.equals(wanted);
    if (!same) differences++;
    System.out.println(title + ": " + (same ? shown : given + ", but it should be " + wanted));
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> object(Object value) {
    return value == null ? new HashMap<>() : (Map<String, Object>) value;
  }

  @SuppressWarnings("unchecked")
  private static List<Object> list(Object value) {
    return value == null ? new ArrayList<>() : (List<Object>) value;
  }

  private static Map<String, Object> read(Path path) throws Exception {
    Map<String, Object> found = new HashMap<>();
    Licensing.Json.members(Files.readString(path)).forEach((name, member) -> found.put(name, member.value()));
    return found;
  }

  private static final class Memory implements LicenseKit.Store {
    String text;

    @Override
    public String read() {
      return text;
    }

    @Override
    public void write(String written) {
      text = written;
    }
  }

  /** A machine with the clock, the network, the store and the randomness that a scenario gives. */
  private static final class Machine {
    final Map<String, Object> file;
    final Map<String, Object> responses;
    final Map<String, Object> options;
    final byte random;
    final Memory store = new Memory();
    final Deque<Object> given = new ArrayDeque<>();
    final List<Object> asked = new ArrayList<>();
    Instant now = Instant.EPOCH;
    LicenseKit kit;

    Machine(Map<String, Object> file, Map<String, Object> scenario) {
      this.file = file;
      responses = object(file.get("responses"));
      options = new HashMap<>(object(file.get("options")));
      options.putAll(object(scenario.get("options")));
      random = scenario.get("random") instanceof Long value ? value.byteValue() : 0;
    }

    Map<String, Object> take(Map<String, Object> step) throws Exception {
      now = Instant.parse((String) step.get("at"));
      given.clear();
      given.addAll(list(step.get("given")));
      asked.clear();
      if (step.get("do").equals("open")) open(step);
      LicenseKit.Outcome outcome = operate((String) step.get("do"), object(step.get("with")));
      LicenseKit.Verdict verdict = kit.verdict();
      Map<String, Object> found = new HashMap<>();
      if (outcome != null) {
        String word = outcome.granted() ? "granted" : outcome.refusal() != null ? "refused" : "missed";
        found.put("outcome", word + " " + lower(outcome.decision()) + " " + outcome.reason());
        found.put("broken_rule", outcome.brokenRule());
        found.put("problem", outcome.problem());
      }
      found.put("decision", lower(verdict.decision()));
      found.put("reason", verdict.reason());
      // Instant leaves out a fraction of zero.
      String end = verdict.endsAt() == null ? null : verdict.endsAt().toString();
      found.put("ends_at", end == null || end.contains(".") ? end : end.replace("Z", ".000Z"));
      List<Object> features = new ArrayList<>();
      for (Map<String, Object> feature : kit.features()) {
        Object rest = feature.containsKey("is_usage_unknown") ? "unknown" : feature.get("remaining");
        features.add(feature.get("code") + (rest == null ? "" : " " + rest));
      }
      if (!features.isEmpty()) found.put("features", features);
      if (!asked.isEmpty()) found.put("asked", new ArrayList<>(asked));
      if (store.text != null) found.put("stored", summary(store.text));
      found.values().removeIf(value -> value == null);
      return found;
    }

    private static String lower(LicenseKit.Decision decision) {
      return decision.name().toLowerCase(Locale.ROOT);
    }

    private void open(Map<String, Object> step) throws Exception {
      options.putAll(object(step.get("options")));
      if (step.containsKey("store")) store.text = (String) step.get("store");
      if (step.containsKey("forget") || step.containsKey("put")) {
        Map<String, Object> edited = new LinkedHashMap<>();
        Licensing.Json.members(store.text).forEach((name, member) -> edited.put(name, member.value()));
        Map<String, Object> kept = object(edited.get("responses"));
        list(step.get("forget")).forEach(kept::remove);
        object(step.get("put")).forEach((slot, name) -> kept.put(slot, responses.get(name)));
        store.text = Licensing.Json.write(edited);
      }
      Map<String, String> keys = new HashMap<>();
      for (Object one : list(file.get("keys"))) {
        Map<String, Object> key = object(one);
        boolean isBuiltIn = list(options.get("built_in")).contains(key.get("kid"));
        if (isBuiltIn) keys.put((String) key.get("kid"), (String) key.get("public_key"));
      }
      String fingerprint = (String) object(options.get("binding")).get("fingerprint");
      LicenseKit.Options all = new LicenseKit.Options("https://licenses.example.com",
          (String) options.get("product_code"), keys, Licensing.hardware(fingerprint), store)
                                   .tolerance(Duration.ofHours((Long) options.get("tolerance_hours")))
                                   .platform(clock(), this::send, this::randomBytes)
                                   .onVerdict(Machine::fail);
      if (Boolean.TRUE.equals(options.get("trust_published_keys"))) all.trustPublishedKeys();
      kit = new LicenseKit(all);
    }

    /** An application's own error in its callback changes no decision. */
    private static void fail(LicenseKit.Verdict verdict) {
      throw new IllegalStateException(verdict.toString());
    }

    private byte[] randomBytes(int count) {
      return count == 1 ? new byte[] {random} : new byte[count];
    }

    private Clock clock() {
      return new Clock() {
        @Override
        public ZoneId getZone() {
          return ZoneId.of("UTC");
        }

        @Override
        public Clock withZone(ZoneId zone) {
          return this;
        }

        @Override
        public Instant instant() {
          return now;
        }
      };
    }

    private LicenseKit.Outcome operate(String operation, Map<String, Object> with) {
      String key = (String) with.get("license_key");
      switch (operation) {
        case "open":
        case "look":
          return null;
        case "wake":
          kit.wake();
          return null;
        case "activate":
          return kit.activate(key);
        case "checkout":
          return kit.checkout(key, with.containsKey("until") ? Instant.parse((String) with.get("until")) : null);
        case "validate":
          return kit.validate();
        case "check":
          return kit.check();
        case "consume":
          return kit.consume((String) with.get("feature_code"), (Long) with.get("amount"), (String) with.get("event_id"));
        case "reverse":
          return kit.reverse((String) with.get("feature_code"), (String) with.get("event_id"));
        case "issue_offline":
          return kit.issueOffline();
        case "open_offline":
          return kit.openOffline((String) responses.getOrDefault(String.valueOf(with.get("file")), ""), key);
        case "start_trial":
          return kit.startTrial((String) with.get("policy_code"));
        case "list_devices":
          return kit.listDevices(key, null, null);
        case "deactivate_device":
          return kit.deactivateDevice((String) with.get("device_id"), key);
        case "deactivate":
          return kit.deactivate();
        case "checkin":
          return kit.checkin();
        default:
          throw new IllegalArgumentException(operation);
      }
    }

    private LicenseKit.Reply send(String url, Map<String, String> headers, String body, Duration timeout) {
      StringBuilder words = new StringBuilder(url.replaceFirst(".*/api/v1/(license/)?", "").replaceFirst("\\?.*", ""));
      try {
        Map<String, Licensing.Json.Member> sent = Licensing.Json.members(body == null ? "{}" : body);
        for (String name : List.of("event_id", "until", "policy_code")) {
          if (sent.containsKey(name)) words.append(' ').append(sent.get(name).value());
        }
      } catch (Licensing.Json.Malformed malformed) {
        words.append(" malformed");
      }
      asked.add(words.toString());
      Map<String, Object> next = given.isEmpty() ? Map.of("fails", "refused") : object(given.poll());
      if (next.containsKey("fails")) return LicenseKit.Reply.failed((String) next.get("fails"));
      byte[] text = ((String) responses.get(next.get("response"))).getBytes(StandardCharsets.UTF_8);
      int status = next.get("status") instanceof Long value ? value.intValue() : 200;
      return new LicenseKit.Reply(status, text, String.valueOf(next.getOrDefault("retry_after", "")), null);
    }

    /** The stored text with the names of the responses in place of their texts. */
    private Map<String, Object> summary(String text) {
      Map<String, Object> found = new HashMap<>();
      try {
        Licensing.Json.members(text).forEach((name, member) -> found.put(name, member.value()));
      } catch (Licensing.Json.Malformed malformed) {
        return Map.of("malformed", true);
      }
      List<Object> kids = new ArrayList<>();
      list(found.remove("published_keys")).forEach(key -> kids.add(object(key).get("kid")));
      kids.sort((one, other) -> ((String) one).compareTo((String) other));
      if (!kids.isEmpty()) found.put("published_keys", kids);
      Map<String, Object> kept = new HashMap<>();
      if (found.get("responses") instanceof Map) {
        object(found.get("responses")).forEach((slot, response) -> kept.put(slot, nameOf(response)));
      }
      found.put("responses", kept);
      return found;
    }

    private String nameOf(Object response) {
      for (Map.Entry<String, Object> one : responses.entrySet()) {
        if (one.getValue().equals(response)) return one.getKey();
      }
      return "unknown";
    }
  }

  private static void check(Path folder) throws Exception {
    List<Throwable> failures = new ArrayList<>();
    Thread.currentThread().setUncaughtExceptionHandler((thread, failure) -> failures.add(failure));
    Map<String, Object> file = read(folder.resolve("decisions.json"));
    for (Object one : list(file.get("scenarios"))) {
      Map<String, Object> scenario = object(one);
      Machine machine = new Machine(file, scenario);
      int number = 0;
      for (Object step : list(scenario.get("steps"))) {
        String title = "decisions: " + scenario.get("name") + ", step " + ++number;
        report(title, machine.take(object(step)), object(step).get("expected"), "as expected");
      }
    }
    for (Object one : list(read(folder.resolve("license-keys.json")).get("valid"))) {
      String input = (String) object(one).get("input");
      String key = LicenseKit.licenseKeyOf(input);
      report("license-keys: " + input, key, object(one).get("canonical"), key);
    }
    if (failures.isEmpty()) report("callbacks", "not reported", "reported", "reported");
    int all = differences + Licensing.checkVectors(folder.toString());
    System.out.println(all + " differences");
    System.exit(all == 0 ? 0 : 1);
  }

  private static void say(String title, LicenseKit.Outcome outcome) {
    String problem = outcome.problem() == null ? "" : ", " + outcome.problem();
    String granted = outcome.granted() ? "granted" : "not granted";
    System.out.println(title + ": " + granted + ", " + Machine.lower(outcome.decision()) + " " + outcome.reason() + problem);
  }

  /** A life of an application at a running service, and with servers that are none. */
  private static void live(String[] arguments) throws Exception {
    String url = arguments[1];
    String hostile = arguments[2];
    Map<String, String> keys = Map.of(arguments[6], arguments[7]);
    LicenseKit.Store store = new LicenseKit.FileStore(Path.of(arguments[8]));
    Licensing.Binding binding = Licensing.hardware(arguments[5]);
    LicenseKit kit = new LicenseKit(new LicenseKit.Options(url, arguments[4], keys, binding, store));
    say("activate", kit.activate(arguments[3].toLowerCase(Locale.ROOT)));
    say("validate", kit.validate());
    String event = arguments[5] + " 1";
    say("consume", kit.consume("export", 2L, event));
    say("consume again", kit.consume("export", 2L, event));
    System.out.println("remaining: " + kit.feature("export").get("remaining"));
    say("consume too much", kit.consume("export", 1000L, "too much"));
    say("offline", kit.issueOffline());
    LicenseKit again = new LicenseKit(new LicenseKit.Options(hostile + "/none", arguments[4], keys, binding, store));
    System.out.println("restart: " + Machine.lower(again.verdict().decision()) + " " + again.verdict().reason());
    Map<String, String> other = Map.of(arguments[6], "-----BEGIN " + arguments[7]);
    try {
      new LicenseKit(new LicenseKit.Options(url, arguments[4], other, binding, store));
      System.out.println("a key in another form: opened");
    } catch (IllegalArgumentException wrong) {
      System.out.println("a key in another form: not opened");
    }
    for (String name : List.of("redirect", "large", "page", "slow", "closed")) {
      Memory copy = new Memory();
      copy.text = store.read();
      say(name, new LicenseKit(new LicenseKit.Options(hostile + "/" + name, arguments[4], keys, binding, copy)
              .timeout(Duration.ofMillis(name.equals("slow") ? 500 : 15_000))).validate());
    }
    say("devices", kit.listDevices(null, null, 10));
    say("other device", kit.deactivateDevice("none/of these", null));
    say("deactivate", kit.deactivate());
    say("checkout", kit.checkout(null, null));
    kit.start();
    LicenseKit last = new LicenseKit(new LicenseKit.Options(url, arguments[4], keys, binding, store));
    // After a start with a seat, a heartbeat is due at once.
    last.start();
    List<Thread> threads = new ArrayList<>();
    for (int count = 0; count < 4; count++) {
      threads.add(new Thread(() -> {
        for (int time = 0; time < 3; time++) {
          last.check();
          last.features();
        }
      }));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) thread.join();
    last.close();
    kit.close();
    System.out.println("threads: " + Machine.lower(last.verdict().decision()) + " " + last.verdict().reason() + ", "
        + last.feature("export").get("remaining"));
    say("checkin", last.checkin());
    LicenseKit tried = new LicenseKit(new LicenseKit.Options(url, arguments[4], keys, binding, new Memory()));
    say("trial", tried.startTrial("trial"));
    LicenseKit reset = new LicenseKit(new LicenseKit.Options(url, arguments[4], keys, binding, new Memory()));
    say("trial again", reset.startTrial("trial"));
    System.out.println("devices: " + list(tried.listDevices(null, null, null).data().get("devices")).size());
    System.exit(0);
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 2 && arguments[0].equals("vectors")) check(Path.of(arguments[1]));
    else if (arguments.length == 9 && arguments[0].equals("live")) live(arguments);
    else Licensing.main(arguments);
  }
}
