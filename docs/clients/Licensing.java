import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * License checks for an application in Java 17 or newer, with the standard library alone. Copy this file.
 *
 * <pre>
 * var client = new Licensing.Client("https://licensing.example.com", licenseKey, "editor-pro", keys,
 *     Licensing.hardware(fingerprint));
 * Licensing.Answer answer = client.activate();
 * if (answer.isRefusal()) { ... answer.text("code") says what to do ... }
 * </pre>
 *
 * Distrusted is thrown for every answer that breaks a rule of VERIFYING.md, and IOException where there is none: treat
 * both as "the service was not reached". The main method checks this file against the published test vectors:
 * java Licensing.java vectors schema/vectors
 */
public final class Licensing {
  static final int BODY_BYTES_MAX = 1 << 20;
  static final Duration CLOCK_SKEW_MAX = Duration.ofMinutes(5);
  static final long WEBHOOK_TOLERANCE_SECONDS = 300;

  /** An answer that the application must not believe. */
  public static final class Distrusted extends Exception {
    /** The first rule that the answer breaks. */
    public final String rule;

    Distrusted(String rule, String message) {
      super(message);
      this.rule = rule;
    }
  }

  /** This machine or container. The key is hashed; the request is what a request says of it. */
  public record Binding(String kind, String key, Map<String, Object> request) {
    public String hash() {
      return sha256Hex(key);
    }
  }

  public static Binding hardware(String fingerprint) {
    return new Binding("hardware", fingerprint, Map.of("fingerprint", fingerprint));
  }

  /** At least one of cluster_id, namespace, pod_name and container_id. */
  public static Binding container(Map<String, String> ids) {
    Map<String, Object> request = new HashMap<>(ids);
    request.put("is_container", true);
    return new Binding("container", sha256Hex(Json.write(new TreeMap<>(ids))), request);
  }

  /**
   * What the application knows. Null means nothing to compare with, and skips the check. Give {@code now} always:
   * without it the times are not checked. {@code highestIssuedAt} is the highest issued_at that the application has
   * seen and stored.
   */
  public record Expected(String kind, String licenseId, String productId, String productCode, Binding binding,
      String nonce, Instant now, Instant highestIssuedAt) {
    static final Expected NOTHING = new Expected(null, null, null, null, null, null, null, null);
  }

  /** The signed part of an answer: data of a success, or error of a refusal. */
  public record Answer(boolean isRefusal, Map<String, Object> content) {
    public String text(String name) {
      return content.get(name) instanceof String text ? text : null;
    }
  }

  /**
   * Returns the signed part of an answer that keeps all rules.
   *
   * @param keys kid to public key in base64, as GET /api/v1/system/public-keys publishes them; build them in
   */
  public static Answer judge(Map<String, String> keys, byte[] body, Expected expected) throws Distrusted {
    byte[] signed;
    Answer answer;
    Map<String, Object> signature;
    try {
      Map<String, Json.Member> envelope = Json.members(body);
      boolean isRefusal = !envelope.containsKey("data");
      if (isRefusal != envelope.containsKey("error")) throw new Json.Malformed("an answer has either data or error");
      Json.Member member = envelope.get(isRefusal ? "error" : "data");
      signed = member.text().getBytes(StandardCharsets.UTF_8);
      answer = new Answer(isRefusal, Json.object(member.value()));
      signature = Json.object(envelope.containsKey("signature") ? envelope.get("signature").value() : null);
    } catch (Json.Malformed problem) {
      throw new Distrusted("signature", "the answer has not the form of a signed answer: " + problem.getMessage());
    }
    checkSignature(keys, signed, signature);
    // A refusal grants nothing: it has no kind, no product_code and no binding.
    boolean grants = !answer.isRefusal();
    if (grants) check(answer, "kind", "kind", expected.kind());
    check(answer, "license", "license_id", expected.licenseId());
    check(answer, "product", "product_id", expected.productId());
    if (grants) {
      check(answer, "product", "product_code", expected.productCode());
      check(answer, "binding", "binding_kind", expected.binding() == null ? null : expected.binding().kind());
      check(answer, "binding", "binding_hash", expected.binding() == null ? null : expected.binding().hash());
    }
    check(answer, "nonce", "nonce", expected.nonce());
    if (expected.now() != null) checkTimes(answer, expected.now(), expected.highestIssuedAt());
    return answer;
  }

  private static void check(Answer answer, String rule, String name, String wanted) throws Distrusted {
    if (wanted != null && !wanted.equals(answer.text(name))) {
      throw new Distrusted(rule, name + " is not the expected one");
    }
  }

  /** What stands before the 32 bytes of an Ed25519 key in the form that KeyFactory reads. */
  private static final byte[] KEY_PREFIX = HexFormat.of().parseHex("302a300506032b6570032100");

  private static void checkSignature(Map<String, String> keys, byte[] signed, Map<String, Object> signature)
      throws Distrusted {
    if (!"Ed25519".equals(signature.get("alg"))) throw new Distrusted("signature", "the algorithm is not Ed25519");
    String published = signature.get("kid") instanceof String kid ? keys.get(kid) : null;
    if (published == null) throw new Distrusted("kid", "the signing key is not one that the application trusts");
    boolean isValid;
    try {
      byte[] encoded = concat(KEY_PREFIX, base64(published));
      Signature verifier = Signature.getInstance("Ed25519");
      verifier.initVerify(KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded)));
      verifier.update(signed);
      byte[] value = base64(signature.get("value"));
      // Java 17 takes a signature with more bytes behind it.
      isValid = value.length == 64 && verifier.verify(value);
    } catch (GeneralSecurityException | Json.Malformed malformed) {
      isValid = false;
    }
    if (!isValid) throw new Distrusted("signature", "the signature is not valid");
  }

  private static void checkTimes(Answer answer, Instant now, Instant highestSeen) throws Distrusted {
    Instant highest = instant(answer, "issued_at");
    if (highestSeen != null && highestSeen.isAfter(highest)) highest = highestSeen;
    if (now.isBefore(highest.minus(CLOCK_SKEW_MAX))) {
      throw new Distrusted(
          "times", "the clock is more than five minutes behind an instant that the service has signed");
    }
    String end = "offline".equals(answer.text("kind"))    ? "offline_expires_at"
        : "floating_checkout".equals(answer.text("kind")) ? "lease_expires_at"
                                                            : null;
    if (end != null && !now.isBefore(instant(answer, end))) throw new Distrusted("times", end + " has passed");
  }

  private static Instant instant(Answer answer, String name) throws Distrusted {
    try {
      return Instant.parse(String.valueOf(answer.text(name)));
    } catch (DateTimeException malformed) {
      throw new Distrusted("times", name + " is no instant");
    }
  }

  /**
   * The text of a file or QR code for a machine without a network: the body of POST /api/v1/license/offline, which a
   * person with the license key sends. {@code openOffline} opens what comes back.
   */
  public static String offlineRequest(Binding binding, String productCode) {
    Map<String, Object> request = new TreeMap<>(binding.request());
    request.put("product_code", productCode);
    request.put("activate", true);
    return Json.write(request);
  }

  /**
   * Opens an offline envelope, the JSON of {kid, salt, nonce, ciphertext}, and judges what is in it. The license key is
   * the one as issued: LK-, capitals and dashes.
   */
  public static Answer openOffline(Map<String, String> keys, String licenseKey, byte[] envelope, Expected expected)
      throws Distrusted {
    return judge(keys, decrypt(licenseKey, envelope), expected);
  }

  /** What is in an offline envelope: it must be judged. */
  static byte[] decrypt(String licenseKey, byte[] envelope) throws Distrusted {
    try {
      Map<String, Json.Member> parts = Json.members(envelope);
      Function<String, Object> part = name -> parts.containsKey(name) ? parts.get(name).value() : null;
      byte[] nonce = base64(part.apply("nonce"));
      byte[] ciphertext = base64(part.apply("ciphertext"));
      // Cipher fails with a RuntimeException if there is no tag of 16 bytes.
      if (nonce.length != 12 || ciphertext.length < 16 || !(part.apply("kid") instanceof String kid)) {
        throw new Json.Malformed("a part is missing or malformed");
      }
      // HKDF-SHA256 of RFC 5869, for the one block of 32 bytes that is needed.
      byte[] extracted = hmac(base64(part.apply("salt")), utf8(licenseKey));
      byte[] key = hmac(extracted, concat(utf8("licensing-service/offline/v1"), new byte[] {1}));
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(Cipher.DECRYPT_MODE, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, nonce));
      cipher.updateAAD(utf8(kid));
      return cipher.doFinal(ciphertext);
    } catch (GeneralSecurityException | Json.Malformed problem) {
      throw new Distrusted("envelope", "the offline envelope does not open: " + problem.getMessage());
    }
  }

  /** The reason is headers_missing, signature_malformed, too_old_or_new or signature_wrong: answer 400. */
  public static final class WebhookRefused extends Exception {
    WebhookRefused(String reason) {
      super(reason);
    }
  }

  /**
   * Returns the id of a genuine delivery by X-Service-Signature. The same id may arrive again: process it once.
   *
   * @param secrets the endpoint's secret; during a rotation the old and the new one
   * @param header gives the value of a header by its lower-case name, or null: {@code request::getHeader} of a servlet
   * @param body the raw body
   */
  public static String verifyWebhook(List<String> secrets, Function<String, String> header, byte[] body, Instant now)
      throws WebhookRefused {
    String id = header.apply("x-service-delivery-id");
    String signature = header.apply("x-service-signature");
    if (id == null || signature == null) throw new WebhookRefused("headers_missing");
    String timestamp = "";
    List<String> given = new ArrayList<>();
    for (String part : signature.split(",")) {
      String trimmed = part.strip();
      if (trimmed.startsWith("t=") && timestamp.isEmpty()) timestamp = trimmed.substring(2);
      if (trimmed.startsWith("v1=")) given.add(trimmed.substring(3));
    }
    checkTimestamp(timestamp, given, now);
    byte[] signed = concat(utf8(timestamp + "." + id + "."), body);
    return matching(secrets, given, id, secret -> HexFormat.of().formatHex(hmac(utf8(secret), signed)));
  }

  /** The same by the headers of Standard Webhooks. */
  public static String verifyStandardWebhook(
      List<String> secrets, Function<String, String> header, byte[] body, Instant now) throws WebhookRefused {
    String id = header.apply("webhook-id");
    String timestamp = header.apply("webhook-timestamp");
    String signature = header.apply("webhook-signature");
    if (id == null || timestamp == null || signature == null) throw new WebhookRefused("headers_missing");
    List<String> given = new ArrayList<>();
    for (String part : signature.split(" "))
      if (part.startsWith("v1,")) given.add(part.substring(3));
    checkTimestamp(timestamp, given, now);
    byte[] signed = concat(utf8(id + "." + timestamp + "."), body);
    return matching(
        secrets, given, id, secret -> Base64.getEncoder().encodeToString(hmac(standardKey(secret), signed)));
  }

  private static void checkTimestamp(String timestamp, List<String> given, Instant now) throws WebhookRefused {
    if (!timestamp.matches("[0-9]{1,12}") || given.isEmpty()) throw new WebhookRefused("signature_malformed");
    long age = now.getEpochSecond() - Long.parseLong(timestamp);
    if (Math.abs(age) > WEBHOOK_TOLERANCE_SECONDS) throw new WebhookRefused("too_old_or_new");
  }

  private static String matching(List<String> secrets, List<String> given, String id,
      Function<String, String> signatureWith) throws WebhookRefused {
    for (String secret : secrets) {
      byte[] wanted = utf8(signatureWith.apply(secret));
      for (String value : given)
        if (MessageDigest.isEqual(wanted, utf8(value))) return id;
    }
    throw new WebhookRefused("signature_wrong");
  }

  /** The base64 after whsec_; the whole secret as UTF-8 where there is none. */
  private static byte[] standardKey(String secret) {
    try {
      if (secret.startsWith("whsec_") && secret.length() > 6) return base64(secret.substring(6));
    } catch (Json.Malformed notBase64) {
      // A custom secret that only begins as a generated one.
    }
    return utf8(secret);
  }

  /** Calls the service. Store licenseId, productId and highestIssuedAt, and set them again at the next start. */
  public static final class Client {
    public String licenseId;
    public String productId;
    public Instant highestIssuedAt;
    private final String baseUrl;
    private final String licenseKey;
    private final String productCode;
    private final Map<String, String> keys;
    private final Binding binding;
    /** HTTP/1.1, because over plain http the default offers an upgrade that some servers and proxies do not ignore. */
    private final HttpClient http = HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .connectTimeout(Duration.ofSeconds(15))
        .build();

    public Client(String baseUrl, String licenseKey, String productCode, Map<String, String> keys, Binding binding) {
      this.baseUrl = baseUrl;
      this.licenseKey = licenseKey;
      this.productCode = productCode;
      this.keys = keys;
      this.binding = binding;
    }

    public Answer activate() throws Distrusted, IOException, InterruptedException {
      return call("activate", "entitlement");
    }

    public Answer validate() throws Distrusted, IOException, InterruptedException {
      return call("validate", "entitlement");
    }

    public Answer call(String operation, String kind) throws Distrusted, IOException, InterruptedException {
      byte[] random = new byte[16];
      new SecureRandom().nextBytes(random);
      String nonce = Base64.getEncoder().encodeToString(random);
      Map<String, Object> body = new HashMap<>(binding.request());
      body.put("product_code", productCode);
      body.put("nonce", nonce);
      HttpRequest request = HttpRequest.newBuilder(URI.create(baseUrl + "/api/v1/license/" + operation))
                                .timeout(Duration.ofSeconds(15))
                                .header("Authorization", "License " + licenseKey)
                                .header("Content-Type", "application/json")
                                .POST(HttpRequest.BodyPublishers.ofString(Json.write(body)))
                                .build();
      HttpResponse<InputStream> response = http.send(request, HttpResponse.BodyHandlers.ofInputStream());
      try (InputStream received = response.body()) {
        return believed(judge(keys, received.readNBytes(BODY_BYTES_MAX + 1), expected(kind, nonce)));
      }
    }

    public Answer openOffline(byte[] envelope) throws Distrusted {
      return believed(Licensing.openOffline(keys, licenseKey, envelope, expected("offline", null)));
    }

    private Expected expected(String kind, String nonce) {
      return new Expected(kind, licenseId, productId, productCode, binding, nonce, Instant.now(), highestIssuedAt);
    }

    private Answer believed(Answer answer) throws Distrusted {
      if (!answer.isRefusal()) {
        licenseId = answer.text("license_id");
        productId = answer.text("product_id");
      }
      Instant issuedAt = instant(answer, "issued_at");
      if (highestIssuedAt == null || issuedAt.isAfter(highestIssuedAt)) highestIssuedAt = issuedAt;
      return answer;
    }
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] concat(byte[] first, byte[] second) {
    byte[] all = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, all, first.length, second.length);
    return all;
  }

  /** Standard base64 with padding, in its one right form. */
  private static byte[] base64(Object text) throws Json.Malformed {
    try {
      if (text instanceof String encoded && !encoded.isEmpty()) {
        byte[] decoded = Base64.getDecoder().decode(encoded);
        if (Base64.getEncoder().encodeToString(decoded).equals(encoded)) return decoded;
      }
    } catch (IllegalArgumentException malformed) {
      // Told below.
    }
    throw new Json.Malformed("not written as standard base64");
  }

  private static byte[] hmac(byte[] key, byte[] message) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      return mac.doFinal(message);
    } catch (GeneralSecurityException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private static String sha256Hex(String text) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(utf8(text)));
    } catch (GeneralSecurityException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /**
   * A strict reader of JSON: a name that is there twice, deep nesting and bytes that are not UTF-8 are malformed. It
   * keeps the text of each member of the outermost object, because the signature covers the text as received.
   */
  static final class Json {
    /** Levels of objects and arrays, the outermost included. */
    static final int DEPTH_MAX = 32;

    static final class Malformed extends Exception {
      Malformed(String message) {
        super(message);
      }
    }

    record Member(String text, Object value) {}

    private final String text;
    private int at = 0;

    private Json(String text) {
      this.text = text;
    }

    static Map<String, Member> members(byte[] body) throws Malformed {
      if (body.length > BODY_BYTES_MAX) throw new Malformed("too large");
      try {
        // Unlike new String(...), a decoder refuses what is not UTF-8.
        return members(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString());
      } catch (CharacterCodingException malformed) {
        throw new Malformed("not UTF-8");
      }
    }

    static Map<String, Member> members(String text) throws Malformed {
      Json json = new Json(text);
      Map<String, Member> found = new LinkedHashMap<>();
      json.space();
      json.readMembers(0, found);
      json.space();
      if (json.at < json.text.length()) throw new Malformed("something follows the object");
      return found;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) throws Malformed {
      if (value instanceof Map) return (Map<String, Object>) value;
      throw new Malformed("an object is missing");
    }

    private void readMembers(int depth, Map<String, Member> found) throws Malformed {
      if (depth >= DEPTH_MAX) throw new Malformed("nested too deep");
      expect('{');
      space();
      if (next('}')) return;
      do {
        space();
        String name = string();
        space();
        expect(':');
        space();
        int start = at;
        Object value = value(depth + 1);
        // Parsers differ in which of two equal names counts: none does.
        if (found.put(name, new Member(text.substring(start, at), value)) != null) {
          throw new Malformed("a name is there twice");
        }
        space();
      } while (next(','));
      expect('}');
    }

    private Object value(int depth) throws Malformed {
      char first = at < text.length() ? text.charAt(at) : 0;
      switch (first) {
        case '{' -> {
          Map<String, Member> members = new LinkedHashMap<>();
          readMembers(depth, members);
          Map<String, Object> values = new LinkedHashMap<>();
          members.forEach((name, member) -> values.put(name, member.value()));
          return values;
        }
        case '[' -> {
          return array(depth);
        }
        case '"' -> {
          return string();
        }
        default -> {
          return literal();
        }
      }
    }

    private List<Object> array(int depth) throws Malformed {
      if (depth >= DEPTH_MAX) throw new Malformed("nested too deep");
      List<Object> items = new ArrayList<>();
      expect('[');
      space();
      if (next(']')) return items;
      do {
        space();
        items.add(value(depth + 1));
        space();
      } while (next(','));
      expect(']');
      return items;
    }

    /** null, true, false, a Long or a Double. */
    private Object literal() throws Malformed {
      int start = at;
      while (at < text.length() && "+-.0123456789Eaeflnrstu".indexOf(text.charAt(at)) >= 0) at++;
      String word = text.substring(start, at);
      switch (word) {
        case "null":
          return null;
        case "true":
          return true;
        case "false":
          return false;
        default:
          if (!word.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) throw new Malformed("no JSON value");
          return word.matches("-?[0-9]{1,18}") ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
      }
    }

    private String string() throws Malformed {
      expect('"');
      StringBuilder out = new StringBuilder();
      while (at < text.length()) {
        char character = text.charAt(at++);
        if (character == '"') return out.toString();
        if (character < ' ') break;
        out.append(character == '\\' ? escaped() : character);
      }
      throw new Malformed("a text is malformed or has no end");
    }

    private char escaped() throws Malformed {
      char character = at < text.length() ? text.charAt(at++) : 0;
      if (character == 'u' && at + 4 <= text.length() && text.substring(at, at + 4).matches("[0-9a-fA-F]{4}")) {
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
      }
      int known = "\"\\/bfnrt".indexOf(character);
      if (known < 0) throw new Malformed("an unknown escape");
      return "\"\\/\b\f\n\r\t".charAt(known);
    }

    private void space() {
      while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) at++;
    }

    private boolean next(char character) {
      boolean is = at < text.length() && text.charAt(at) == character;
      if (is) at++;
      return is;
    }

    private void expect(char character) throws Malformed {
      if (!next(character)) throw new Malformed(character + " is missing");
    }

    /** Texts, booleans, whole numbers, and lists and maps of them, as RFC 8785 writes them if the map is sorted. */
    static String write(Object value) {
      if (value instanceof Map<?, ?> members) {
        List<String> written = new ArrayList<>();
        members.forEach((name, member) -> written.add(write(name) + ":" + write(member)));
        return "{" + String.join(",", written) + "}";
      }
      if (value instanceof List<?> items) {
        List<String> written = new ArrayList<>();
        items.forEach(item -> written.add(write(item)));
        return "[" + String.join(",", written) + "]";
      }
      if (!(value instanceof String text)) return String.valueOf(value);
      StringBuilder out = new StringBuilder("\"");
      for (char character : text.toCharArray()) {
        int known = "\"\\\b\f\n\r\t".indexOf(character);
        if (known >= 0) out.append('\\').append("\"\\bfnrt".charAt(known));
        else if (character < ' ') out.append(String.format("\\u%04x", (int) character));
        else out.append(character);
      }
      return out.append('"').toString();
    }
  }

  // From here on: the check against the published test vectors. An application does not need it.

  private static int differences = 0;

  private static void report(String file, Object name, String given, Object wanted) {
    boolean same = given.equals(wanted);
    if (!same) differences++;
    System.out.println(file + ": " + name + ": " + given + (same ? "" : ", but it should be " + wanted));
  }

  private interface Attempt {
    Object run() throws Exception;
  }

  private static String verdict(Attempt attempt) throws Exception {
    try {
      attempt.run();
      return "believe";
    } catch (Distrusted distrusted) {
      return distrusted.rule;
    }
  }

  private static Map<String, Object> read(String folder, String name) throws Exception {
    Map<String, Object> values = new HashMap<>();
    byte[] text = Files.readAllBytes(Path.of(folder, name + ".json"));
    Json.members(text).forEach((member, found) -> values.put(member, found.value()));
    return values;
  }

  @SuppressWarnings("unchecked")
  private static List<Map<String, Object>> list(Object value) {
    return (List<Map<String, Object>>) value;
  }

  private static Map<String, String> keysOf(Map<String, Object> file) {
    Map<String, String> keys = new HashMap<>();
    list(file.get("keys")).forEach(key -> keys.put((String) key.get("kid"), (String) key.get("public_key")));
    return keys;
  }

  private static Expected expectedOf(Map<String, Object> file, Map<String, Object> vector) throws Exception {
    Map<String, Object> all = new HashMap<>(Json.object(file.get("expected")));
    if (vector.get("expected") != null) all.putAll(Json.object(vector.get("expected")));
    Map<String, Object> clock = Json.object(all.get("clock"));
    Map<String, Object> bound = Json.object(all.get("binding"));
    Function<String, Instant> time = name -> clock.get(name) == null ? null : Instant.parse((String) clock.get(name));
    Binding binding = new Binding((String) bound.get("kind"), (String) bound.get("key"), Map.of());
    return new Expected((String) all.get("kind"), (String) all.get("license_id"), (String) all.get("product_id"),
        (String) all.get("product_code"), binding, (String) all.get("nonce"), time.apply("now"),
        time.apply("highest_issued_at"));
  }

  private static byte[] joined(Object chunks) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (Map<String, Object> chunk : list(chunks)) {
      byte[] bytes = Base64.getDecoder().decode((String) chunk.get("base64"));
      for (long times = (Long) chunk.get("times"); times > 0; times--) out.write(bytes);
    }
    return out.toByteArray();
  }

  static int checkVectors(String folder) throws Exception {
    Map<String, Object> signatures = read(folder, "signatures");
    for (String group : List.of("valid", "invalid")) {
      for (Map<String, Object> one : list(signatures.get(group))) {
        String body = "{\"data\":" + one.get("canonical") + ",\"signature\":" + Json.write(one.get("signature")) + "}";
        report("signatures", one.get("name"), verdict(() -> judge(keysOf(signatures), utf8(body), Expected.NOTHING)),
            group.equals("valid") ? "believe" : "signature");
      }
    }
    Map<String, Object> responses = read(folder, "responses");
    for (Map<String, Object> one : list(responses.get("vectors"))) {
      byte[] body = utf8((String) one.get("response"));
      Expected expected = expectedOf(responses, one);
      report("responses", one.get("name"), verdict(() -> judge(keysOf(responses), body, expected)),
          one.getOrDefault("rule", one.get("verdict")));
    }
    Map<String, Object> hostile = read(folder, "hostile");
    for (Map<String, Object> one : list(hostile.get("responses"))) {
      byte[] body = joined(one.get("body"));
      Expected expected = expectedOf(hostile, one);
      report("hostile responses", one.get("name"), verdict(() -> judge(keysOf(hostile), body, expected)),
          one.getOrDefault("rule", one.get("verdict")));
    }
    checkEnvelopes("hostile", hostile);
    checkEnvelopes("air-gap", read(folder, "air-gap"));
    Map<String, Object> offline = read(folder, "offline-envelopes");
    for (String group : List.of("valid", "invalid")) {
      for (Map<String, Object> one : list(offline.get(group))) {
        byte[] envelope = utf8(Json.write(one.get("envelope")));
        String key = (String) one.get("license_key");
        report("offline-envelopes", one.get("name"),
            verdict(() -> openOffline(keysOf(offline), key, envelope, Expected.NOTHING)),
            group.equals("valid") ? "believe" : "envelope");
      }
    }
    checkOthers(folder);
    return differences;
  }

  private static void checkEnvelopes(String name, Map<String, Object> file) throws Exception {
    String key = (String) file.get("license_key");
    for (Map<String, Object> one : list(file.get("envelopes"))) {
      byte[] envelope = joined(one.get("envelope"));
      Expected expected = expectedOf(file, one);
      report(name + " envelopes", one.get("name"), verdict(() -> openOffline(keysOf(file), key, envelope, expected)),
          one.getOrDefault("rule", one.get("verdict")));
    }
  }

  @SuppressWarnings("unchecked")
  private static Binding bindingOf(Object given) throws Exception {
    Map<String, Object> request = Json.object(given);
    request.remove("is_container");
    Map<String, String> ids = (Map<String, String>) (Map<String, ?>) request;
    return ids.containsKey("fingerprint") ? hardware(ids.get("fingerprint")) : container(ids);
  }

  @SuppressWarnings("unchecked")
  private static void checkOthers(String folder) throws Exception {
    for (Map<String, Object> one : list(read(folder, "bindings").get("vectors"))) {
      Binding binding = bindingOf(one.get("request"));
      report(
          "bindings", one.get("name"), binding.kind() + " " + binding.hash(), one.get("kind") + " " + one.get("hash"));
    }
    for (Map<String, Object> one : list(read(folder, "air-gap").get("requests"))) {
      String given = offlineRequest(bindingOf(one.get("binding")), (String) one.get("product_code"));
      report("air-gap requests", one.get("name"), given, one.get("request"));
    }
    for (Map<String, Object> one : list(read(folder, "webhooks").get("vectors"))) {
      List<String> secrets = (List<String>) one.get("secrets");
      Map<String, Object> headers = Json.object(one.get("headers"));
      Function<String, String> header = name -> (String) headers.get(name);
      byte[] body = Base64.getDecoder().decode((String) one.get("body"));
      Instant now = Instant.ofEpochSecond((Long) one.get("now"));
      String given = "genuine";
      try {
        if (one.get("scheme").equals("service")) verifyWebhook(secrets, header, body, now);
        else verifyStandardWebhook(secrets, header, body, now);
      } catch (WebhookRefused refused) {
        given = refused.getMessage();
      }
      report("webhooks " + one.get("scheme"), one.get("name"), given, one.getOrDefault("reason", one.get("verdict")));
    }
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 2 && arguments[0].equals("vectors")) {
      checkVectors(arguments[1]);
      System.out.println(differences + " differences");
      System.exit(differences == 0 ? 0 : 1);
    }
    if (arguments.length < 7 || arguments.length > 8 || !arguments[0].equals("call")) {
      System.out.println("usage: vectors FOLDER | call URL LICENSE_KEY PRODUCT_CODE FINGERPRINT KID PUBLIC_KEY "
          + "[ENVELOPE]");
      System.exit(2);
    }
    Client client = new Client(
        arguments[1], arguments[2], arguments[3], Map.of(arguments[5], arguments[6]), hardware(arguments[4]));
    Map<String, Attempt> calls = new LinkedHashMap<>();
    calls.put("activate", client::activate);
    calls.put("validate", client::validate);
    if (arguments.length == 8) calls.put("open_offline", () -> client.openOffline(utf8(arguments[7])));
    for (String operation : calls.keySet()) {
      try {
        Answer answer = (Answer) calls.get(operation).run();
        System.out.println(
            operation + (answer.isRefusal() ? ": error " + answer.text("code") : ": data " + answer.text("status")));
      } catch (Distrusted distrusted) {
        System.out.println(operation + ": distrusted " + distrusted.rule);
      }
    }
  }
}
