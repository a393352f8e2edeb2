// License checks for an application in C# 7 or newer: .NET, .NET Framework 4.7 or Mono. Copy this file.
//
// Needs one package: libsodium, by its own authors, for Ed25519 and AES-GCM, which not all of these runtimes have:
//   dotnet add package libsodium
//
//   var client = new Licensing.Client(
//       "https://licensing.example.com", key, "editor-pro", keys, Binding.Hardware(fingerprint));
//   Answer answer = await client.ActivateAsync();
//   if (answer.IsRefusal) { ... answer.Text("code") says what to do ... }
//
// DistrustedException is thrown for every answer that breaks a rule of VERIFYING.md, and HttpRequestException or
// TaskCanceledException where there is none: treat them as "the service was not reached". LicenseKit.cs decides with
// this file what the application should do.
//
// Everything below LICENSING_CHECK checks this file against the published test vectors:
//   mcs -define:LICENSING_CHECK -r:System.Net.Http.dll Licensing.cs && mono Licensing.exe vectors schema/vectors
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

namespace Licensing
{
    /// <summary>An answer that the application must not believe.</summary>
    public sealed class DistrustedException : Exception
    {
        /// <summary>The first rule that the answer breaks.</summary>
        public string Rule { get; }

        public DistrustedException(string rule, string message) : base(message) => Rule = rule;
    }

    /// <summary>This machine or container. The key is hashed; the request is what a request says of it.</summary>
    public sealed class Binding
    {
        public string Kind { get; }
        public string Key { get; }
        public IReadOnlyDictionary<string, object> Request { get; }

        public Binding(string kind, string key, IReadOnlyDictionary<string, object> request)
        {
            Kind = kind;
            Key = key;
            Request = request;
        }

        public string Hash => Bytes.Sha256Hex(Key);

        public static Binding Hardware(string fingerprint) => new Binding(
            "hardware", fingerprint, new Dictionary<string, object> { { "fingerprint", fingerprint } });

        /// <summary>By at least one of cluster_id, namespace, pod_name and container_id.</summary>
        public static Binding Container(IReadOnlyDictionary<string, string> ids)
        {
            var request = ids.ToDictionary(id => id.Key, id => (object)id.Value);
            var key = Bytes.Sha256Hex(Json.Write(request));
            request.Add("is_container", true);
            return new Binding("container", key, request);
        }
    }

    /// <summary>What the application knows. Null is not compared.</summary>
    public sealed class Expected
    {
        public string Kind, LicenseId, ProductId, ProductCode, Nonce;
        public Binding Binding;

        /// <summary>The application's clock. Set it always: without it the times are not checked.</summary>
        public DateTimeOffset? Now;

        /// <summary>The highest issued_at that the application has seen and stored.</summary>
        public DateTimeOffset? HighestIssuedAt;
    }

    /// <summary>The signed part of an answer: data of a success, or error of a refusal.</summary>
    public sealed class Answer
    {
        public bool IsRefusal { get; internal set; }
        public Dictionary<string, object> Content { get; internal set; }

        public string Text(string name) => Content.TryGetValue(name, out var value) ? value as string : null;
    }

    public static class Verifier
    {
        internal const int BodyBytesMax = 1 << 20;
        private static readonly TimeSpan ClockSkewMax = TimeSpan.FromMinutes(5);

        /// <summary>Returns the signed part of an answer that keeps all rules.</summary>
        /// <param name="keys">
        /// kid to public key in base64, as GET /api/v1/system/public-keys publishes them; build them in.
        /// </param>
        public static Answer Judge(IReadOnlyDictionary<string, string> keys, byte[] body, Expected expected)
        {
            Answer answer;
            byte[] signed;
            Dictionary<string, object> signature;
            try
            {
                var envelope = Json.Members(body);
                var isRefusal = !envelope.ContainsKey("data");
                if (isRefusal != envelope.ContainsKey("error"))
                    throw new FormatException("an answer has either data or error");
                var member = envelope[isRefusal ? "error" : "data"];
                signed = Encoding.UTF8.GetBytes(member.Raw);
                answer = new Answer { IsRefusal = isRefusal, Content = Json.Object(member.Value) };
                signature = Json.Object(envelope.TryGetValue("signature", out var found) ? found.Value : null);
            }
            catch (FormatException problem)
            {
                throw new DistrustedException(
                    "signature", "the answer has not the form of a signed answer: " + problem.Message);
            }
            CheckSignature(keys, signed, signature);
            // A refusal grants nothing: it has no kind, no product_code and no binding.
            var grants = !answer.IsRefusal;
            if (grants) Check(answer, "kind", "kind", expected.Kind);
            Check(answer, "license", "license_id", expected.LicenseId);
            Check(answer, "product", "product_id", expected.ProductId);
            if (grants)
            {
                Check(answer, "product", "product_code", expected.ProductCode);
                Check(answer, "binding", "binding_kind", expected.Binding?.Kind);
                Check(answer, "binding", "binding_hash", expected.Binding?.Hash);
            }
            Check(answer, "nonce", "nonce", expected.Nonce);
            if (expected.Now != null) CheckTimes(answer, expected.Now.Value, expected.HighestIssuedAt);
            return answer;
        }

        private static void Check(Answer answer, string rule, string name, string wanted)
        {
            // Ordinal: texts that a culture takes for equal are not.
            if (wanted != null && !string.Equals(answer.Text(name), wanted, StringComparison.Ordinal))
                throw new DistrustedException(rule, name + " is not the expected one");
        }

        private static void CheckSignature(
            IReadOnlyDictionary<string, string> keys, byte[] signed, Dictionary<string, object> signature)
        {
            Func<string, object> member = name => signature.TryGetValue(name, out var value) ? value : null;
            if (member("alg") as string != "Ed25519")
                throw new DistrustedException("signature", "the algorithm is not Ed25519");
            if (!(member("kid") is string kid) || !keys.TryGetValue(kid, out var published))
                throw new DistrustedException("kid", "the signing key is not one that the application trusts");
            var isValid = false;
            try
            {
                isValid = Sodium.VerifyEd25519(Bytes.FromBase64(published), signed, Bytes.FromBase64(member("value")));
            }
            catch (FormatException)
            {
                // Not base64.
            }
            if (!isValid) throw new DistrustedException("signature", "the signature is not valid");
        }

        private static void CheckTimes(Answer answer, DateTimeOffset now, DateTimeOffset? highestSeen)
        {
            var highest = InstantOf(answer, "issued_at");
            if (highestSeen > highest) highest = highestSeen.Value;
            if (now < highest - ClockSkewMax)
                throw new DistrustedException(
                    "times", "the clock is more than five minutes behind an instant that the service has signed");
            var kind = answer.Text("kind");
            string end = null;
            if (kind == "offline") end = "offline_expires_at";
            if (kind == "floating_checkout") end = "lease_expires_at";
            if (end != null && now >= InstantOf(answer, end))
                throw new DistrustedException("times", end + " has passed");
        }

        internal static DateTimeOffset InstantOf(Answer answer, string name)
        {
            const DateTimeStyles utc = DateTimeStyles.AssumeUniversal | DateTimeStyles.AdjustToUniversal;
            const string form = "yyyy-MM-dd'T'HH:mm:ss.fff'Z'";
            if (DateTimeOffset.TryParseExact(
                    answer.Text(name), form, CultureInfo.InvariantCulture, utc, out var instant))
                return instant;
            throw new DistrustedException("times", name + " is no instant");
        }

        /// <summary>
        /// The text of a file or QR code for a machine without a network: the body of POST /api/v1/license/offline,
        /// which a person with the license key sends. OpenOffline opens what comes back.
        /// </summary>
        public static string OfflineRequest(Binding binding, string productCode)
        {
            var request = binding.Request.ToDictionary(member => member.Key, member => member.Value);
            request.Add("product_code", productCode);
            request.Add("activate", true);
            return Json.Write(request);
        }

        /// <summary>
        /// Opens an offline envelope, the JSON of {kid, salt, nonce, ciphertext}, and judges what is in it. The license
        /// key is the one as issued: LK-, capitals and dashes.
        /// </summary>
        public static Answer OpenOffline(
            IReadOnlyDictionary<string, string> keys, string licenseKey, byte[] envelope, Expected expected) =>
            Judge(keys, Decrypt(licenseKey, envelope), expected);

        /// <summary>What is in an offline envelope: it must be judged.</summary>
        internal static byte[] Decrypt(string licenseKey, byte[] envelope)
        {
            try
            {
                var parts = Json.Members(envelope);
                Func<string, object> part = name => parts.TryGetValue(name, out var found) ? found.Value : null;
                if (!(part("kid") is string kid)) throw new FormatException("the kid is missing");
                // HKDF-SHA256 of RFC 5869, for the one block of 32 bytes that is needed.
                var extracted = Bytes.Hmac(Bytes.FromBase64(part("salt")), Encoding.UTF8.GetBytes(licenseKey));
                var key = Bytes.Hmac(extracted, Encoding.UTF8.GetBytes("licensing-service/offline/v1\u0001"));
                var nonce = Bytes.FromBase64(part("nonce"));
                return Sodium.DecryptAes256Gcm(
                    key, nonce, Bytes.FromBase64(part("ciphertext")), Encoding.UTF8.GetBytes(kid));
            }
            catch (FormatException problem)
            {
                throw new DistrustedException("envelope", "the offline envelope does not open: " + problem.Message);
            }
        }
    }

    /// <summary>
    /// The message is headers_missing, signature_malformed, too_old_or_new or signature_wrong: answer 400.
    /// </summary>
    public sealed class WebhookRefusedException : Exception
    {
        public WebhookRefusedException(string reason) : base(reason) {}
    }

    public static class Webhooks
    {
        private const long ToleranceSeconds = 300;

        /// <summary>
        /// Returns the id of a genuine delivery by X-Service-Signature. The same id may arrive again: process it once.
        /// </summary>
        /// <param name="secrets">The endpoint's secret; during a rotation the old and the new one.</param>
        /// <param name="header">Gives the value of a header by its lower-case name, or null.</param>
        /// <param name="body">The raw body.</param>
        public static string Verify(
            IEnumerable<string> secrets, Func<string, string> header, byte[] body, DateTimeOffset now)
        {
            string id = header("x-service-delivery-id"), signature = header("x-service-signature");
            if (id == null || signature == null) throw new WebhookRefusedException("headers_missing");
            var parts = signature.Split(',').Select(part => part.Trim()).ToList();
            var timestamp = parts.FirstOrDefault(part => HasPrefix(part, "t="))?.Substring(2) ?? "";
            var given = parts.Where(part => HasPrefix(part, "v1=")).Select(part => part.Substring(3)).ToList();
            CheckTimestamp(timestamp, given, now);
            var signed = Encoding.UTF8.GetBytes(timestamp + "." + id + ".").Concat(body).ToArray();
            return Matching(
                secrets, given, id, secret => Bytes.Hex(Bytes.Hmac(Encoding.UTF8.GetBytes(secret), signed)));
        }

        /// <summary>The same by the headers of Standard Webhooks.</summary>
        public static string VerifyStandard(
            IEnumerable<string> secrets, Func<string, string> header, byte[] body, DateTimeOffset now)
        {
            string id = header("webhook-id"), timestamp = header("webhook-timestamp"),
                   signature = header("webhook-signature");
            if (id == null || timestamp == null || signature == null)
                throw new WebhookRefusedException("headers_missing");
            var given =
                signature.Split(' ').Where(part => HasPrefix(part, "v1,")).Select(part => part.Substring(3)).ToList();
            CheckTimestamp(timestamp, given, now);
            var signed = Encoding.UTF8.GetBytes(id + "." + timestamp + ".").Concat(body).ToArray();
            return Matching(
                secrets, given, id, secret => Convert.ToBase64String(Bytes.Hmac(StandardKey(secret), signed)));
        }

        private static bool HasPrefix(string text, string prefix) => text.StartsWith(prefix, StringComparison.Ordinal);

        private static void CheckTimestamp(string timestamp, ICollection<string> given, DateTimeOffset now)
        {
            if (!Regex.IsMatch(timestamp, @"\A[0-9]{1,12}\z") || given.Count == 0)
                throw new WebhookRefusedException("signature_malformed");
            var age = now.ToUnixTimeSeconds() - long.Parse(timestamp, CultureInfo.InvariantCulture);
            if (Math.Abs(age) > ToleranceSeconds) throw new WebhookRefusedException("too_old_or_new");
        }

        private static string Matching(
            IEnumerable<string> secrets, IEnumerable<string> given, string id, Func<string, string> signatureWith)
        {
            var wanted = secrets.Select(signatureWith).ToList();
            if (given.Any(value => wanted.Any(one => Bytes.EqualInConstantTime(one, value)))) return id;
            throw new WebhookRefusedException("signature_wrong");
        }

        /// <summary>The base64 after whsec_; the whole secret as UTF-8 where there is none.</summary>
        private static byte[] StandardKey(string secret)
        {
            try
            {
                if (HasPrefix(secret, "whsec_")) return Bytes.FromBase64(secret.Substring(6));
            }
            catch (FormatException)
            {
                // A custom secret that only begins as a generated one.
            }
            return Encoding.UTF8.GetBytes(secret);
        }
    }

    /// <summary>
    /// Calls the service. Store LicenseId, ProductId and HighestIssuedAt, and set them again at the next start.
    /// </summary>
    public sealed class Client
    {
        public string LicenseId { get; set; }
        public string ProductId { get; set; }
        public DateTimeOffset? HighestIssuedAt { get; set; }

        private readonly string baseUrl, licenseKey, productCode;
        private readonly IReadOnlyDictionary<string, string> keys;
        private readonly Binding binding;
        /// <summary>A redirect must not carry the license key to another host.</summary>
        private readonly HttpClient http = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false }) {
            Timeout = TimeSpan.FromSeconds(15), MaxResponseContentBufferSize = Verifier.BodyBytesMax
        };

        public Client(string baseUrl, string licenseKey, string productCode, IReadOnlyDictionary<string, string> keys,
            Binding binding)
        {
            this.baseUrl = baseUrl;
            this.licenseKey = licenseKey;
            this.productCode = productCode;
            this.keys = keys;
            this.binding = binding;
        }

        public Task<Answer> ActivateAsync() => CallAsync("activate", "entitlement");

        public Task<Answer> ValidateAsync() => CallAsync("validate", "entitlement");

        public async Task<Answer> CallAsync(string operation, string kind)
        {
            var random = new byte[16];
            using (var generator = RandomNumberGenerator.Create()) generator.GetBytes(random);
            var nonce = Convert.ToBase64String(random);
            var body = binding.Request.ToDictionary(member => member.Key, member => member.Value);
            body.Add("product_code", productCode);
            body.Add("nonce", nonce);
            using (var request = new HttpRequestMessage(HttpMethod.Post, baseUrl + "/api/v1/license/" + operation))
            {
                request.Headers.Authorization = new AuthenticationHeaderValue("License", licenseKey);
                request.Content = new StringContent(Json.Write(body), new UTF8Encoding(false), "application/json");
                using (var response = await http.SendAsync(request).ConfigureAwait(false))
                {
                    var received = await response.Content.ReadAsByteArrayAsync().ConfigureAwait(false);
                    return Believed(Verifier.Judge(keys, received, ExpectedOf(kind, nonce)));
                }
            }
        }

        /// <summary>Opens an offline envelope that was issued for this machine.</summary>
        public Answer OpenOffline(byte[] envelope) => Believed(
            Verifier.OpenOffline(keys, licenseKey, envelope, ExpectedOf("offline", null)));

        private Expected ExpectedOf(string kind, string nonce) => new Expected { Kind = kind, LicenseId = LicenseId,
            ProductId = ProductId, ProductCode = productCode, Binding = binding, Nonce = nonce,
            Now = DateTimeOffset.UtcNow, HighestIssuedAt = HighestIssuedAt };

        private Answer Believed(Answer answer)
        {
            if (!answer.IsRefusal)
            {
                LicenseId = answer.Text("license_id");
                ProductId = answer.Text("product_id");
            }
            var issuedAt = Verifier.InstantOf(answer, "issued_at");
            if (HighestIssuedAt == null || issuedAt > HighestIssuedAt) HighestIssuedAt = issuedAt;
            return answer;
        }
    }

    /// <summary>The functions of libsodium. They take pointers, so the lengths are checked here.</summary>
    internal static class Sodium
    {
        private const string Library = "libsodium";

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        private static extern int sodium_init();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        private static extern int crypto_sign_verify_detached(
            byte[] signature, byte[] message, ulong length, byte[] key);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        private static extern int crypto_aead_aes256gcm_is_available();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        private static extern int crypto_aead_aes256gcm_decrypt(byte[] plaintext, out ulong plaintextLength,
            IntPtr unused, byte[] ciphertext, ulong ciphertextLength, byte[] additional, ulong additionalLength,
            byte[] nonce, byte[] key);

        static Sodium()
        {
            if (sodium_init() < 0) throw new CryptographicException("libsodium does not start");
        }

        public static bool VerifyEd25519(byte[] key, byte[] message, byte[] signature) =>
            key.Length == 32 && signature.Length == 64 &&
            crypto_sign_verify_detached(signature, message, (ulong)message.Length, key) == 0;

        /// <summary>Needs a processor with AES instructions, which all of the last decade have.</summary>
        public static byte[] DecryptAes256Gcm(byte[] key, byte[] nonce, byte[] sealedBytes, byte[] additional)
        {
            if (crypto_aead_aes256gcm_is_available() == 0)
                throw new PlatformNotSupportedException("no AES instructions");
            if (key.Length != 32 || nonce.Length != 12 || sealedBytes.Length < 16)
                throw new FormatException("a part has the wrong length");
            var plaintext = new byte[sealedBytes.Length - 16];
            var result = crypto_aead_aes256gcm_decrypt(plaintext, out _, IntPtr.Zero, sealedBytes,
                (ulong)sealedBytes.Length, additional, (ulong)additional.Length, nonce, key);
            return result == 0 ? plaintext : throw new FormatException("another license key, or changed bytes");
        }
    }

    internal static class Bytes
    {
        public static string Hex(byte[] bytes) => BitConverter.ToString(bytes).Replace("-", "").ToLowerInvariant();

        public static string Sha256Hex(string text)
        {
            using (var hash = SHA256.Create()) return Hex(hash.ComputeHash(Encoding.UTF8.GetBytes(text)));
        }

        public static byte[] Hmac(byte[] key, byte[] message)
        {
            using (var hmac = new HMACSHA256(key)) return hmac.ComputeHash(message);
        }

        /// <summary>Standard base64 with padding, in its one right form.</summary>
        public static byte[] FromBase64(object text)
        {
            if (!(text is string encoded) || encoded == "") throw new FormatException("base64 is missing");
            var bytes = Convert.FromBase64String(encoded);
            // FromBase64String ignores white space.
            return Convert.ToBase64String(bytes) == encoded ? bytes : throw new FormatException("not standard base64");
        }

        public static bool EqualInConstantTime(string one, string other)
        {
            if (one.Length != other.Length) return false;
            var difference = 0;
            for (var index = 0; index < one.Length; index++)
                difference |= one[index] ^ other[index];
            return difference == 0;
        }
    }

    /// <summary>
    /// A strict reader of JSON: a name that is there twice, deep nesting and bytes that are not UTF-8 are malformed. It
    /// keeps the text of each member of the outermost object, because the signature covers the text as received.
    /// Everything that is malformed throws FormatException.
    /// </summary>
    internal sealed class Json
    {
        /// <summary>Levels of objects and arrays, the outermost included.</summary>
        private const int DepthMax = 32;
        private readonly string text;
        private int at;

        public struct Member
        {
            public string Raw;
            public object Value;
        }

        private Json(string text) => this.text = text;

        public static Dictionary<string, Member> Members(byte[] body)
        {
            if (body.Length > Verifier.BodyBytesMax) throw new FormatException("too large");
            try
            {
                return Members(new UTF8Encoding(false, true).GetString(body));
            }
            catch (ArgumentException)
            {
                throw new FormatException("not UTF-8");
            }
        }

        public static Dictionary<string, Member> Members(string text)
        {
            var json = new Json(text);
            json.Space();
            var members = json.ReadMembers(0);
            json.Space();
            return json.at == json.text.Length ? members : throw new FormatException("something follows the object");
        }

        public static Dictionary<string, object> Object(object value) =>
            value as Dictionary<string, object> ?? throw new FormatException("an object is missing");

        private Dictionary<string, Member> ReadMembers(int depth)
        {
            if (depth >= DepthMax) throw new FormatException("nested too deep");
            var found = new Dictionary<string, Member>(StringComparer.Ordinal);
            Expect('{');
            Space();
            if (Next('}')) return found;
            do
            {
                Space();
                var name = ReadString();
                Space();
                Expect(':');
                Space();
                var start = at;
                var value = ReadValue(depth + 1);
                // Parsers differ in which of two equal names counts: none does.
                if (found.ContainsKey(name)) throw new FormatException("a name is there twice");
                found.Add(name, new Member { Raw = text.Substring(start, at - start), Value = value });
                Space();
            } while (Next(','));
            Expect('}');
            return found;
        }

        private object ReadValue(int depth)
        {
            switch (Peek())
            {
            case '{': return ReadMembers(depth).ToDictionary(member => member.Key, member => member.Value.Value);
            case '[': return ReadArray(depth);
            case '"': return ReadString();
            default: return ReadLiteral();
            }
        }

        private List<object> ReadArray(int depth)
        {
            if (depth >= DepthMax) throw new FormatException("nested too deep");
            var items = new List<object>();
            Expect('[');
            Space();
            if (Next(']')) return items;
            do
            {
                Space();
                items.Add(ReadValue(depth + 1));
                Space();
            } while (Next(','));
            Expect(']');
            return items;
        }

        private static readonly Regex Number = new Regex(@"\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\z");

        /// <summary>null, a bool, a long, or a double where it is no long.</summary>
        private object ReadLiteral()
        {
            var start = at;
            while ("+-.0123456789Eaeflnrstu".IndexOf(Peek()) >= 0)
                at++;
            var word = text.Substring(start, at - start);
            switch (word)
            {
            case "null": return null;
            case "true": return true;
            case "false": return false;
            }
            if (!Number.IsMatch(word)) throw new FormatException("no JSON value");
            if (long.TryParse(word, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out var whole))
                return whole;
            double.TryParse(word, NumberStyles.Float, CultureInfo.InvariantCulture, out var number);
            return number;
        }

        private string ReadString()
        {
            Expect('"');
            var result = new StringBuilder();
            while (at < text.Length)
            {
                var character = text[at++];
                if (character == '"') return result.ToString();
                if (character < ' ') break;
                result.Append(character == '\\' ? ReadEscape() : character);
            }
            throw new FormatException("a text is malformed or has no end");
        }

        private char ReadEscape()
        {
            var character = Peek();
            at++;
            if (character == 'u' && at + 4 <= text.Length)
            {
                at += 4;
                var digits = text.Substring(at - 4, 4);
                if (ushort.TryParse(digits, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out var unit))
                    return (char)unit;
            }
            var known = "\"\\/bfnrt".IndexOf(character);
            return known >= 0 ? "\"\\/\b\f\n\r\t"[known] : throw new FormatException("an unknown escape");
        }

        private void Space()
        {
            while (" \t\n\r".IndexOf(Peek()) >= 0)
                at++;
        }

        /// <summary>The next character; U+FFFF, which is none, at the end.</summary>
        private char Peek() => at < text.Length ? text[at] : '\uffff';

        private bool Next(char wanted)
        {
            if (Peek() != wanted) return false;
            at++;
            return true;
        }

        private void Expect(char wanted)
        {
            if (!Next(wanted)) throw new FormatException(wanted + " is missing");
        }

        /// <summary>Texts, booleans, longs, null, and objects and lists of them, as RFC 8785 writes them.</summary>
        public static string Write(object value)
        {
            if (value == null) return "null";
            if (value is string text) return Quoted(text);
            if (value is bool isTrue) return isTrue ? "true" : "false";
            if (value is IEnumerable<KeyValuePair<string, object>> members)
            {
                var sorted = members.OrderBy(member => member.Key, StringComparer.Ordinal);
                return "{" + string.Join(",", sorted.Select(one => Quoted(one.Key) + ":" + Write(one.Value))) + "}";
            }
            if (value is IEnumerable<object> items) return "[" + string.Join(",", items.Select(Write)) + "]";
            return Convert.ToString(value, CultureInfo.InvariantCulture);
        }

        private static string Quoted(string value)
        {
            var result = new StringBuilder("\"");
            foreach (var character in value)
            {
                var known = "\"\\\b\f\n\r\t".IndexOf(character);
                if (known >= 0) result.Append('\\').Append("\"\\bfnrt"[known]);
                else if (character < ' ') result.Append("\\u").Append(((int)character).ToString("x4"));
                else result.Append(character);
            }
            return result.Append('"').ToString();
        }
    }

#if LICENSING_CHECK
    internal static class Check
    {
        private static int differences;
        private static string folder;

        private static void Report(string file, object name, string given, object wanted)
        {
            var same = given.Equals(wanted);
            if (!same) differences++;
            Console.WriteLine(file + ": " + name + ": " + given + (same ? "" : ", but it should be " + wanted));
        }

        private static string VerdictOf(Action attempt)
        {
            try
            {
                attempt();
                return "believe";
            }
            catch (DistrustedException distrusted)
            {
                return distrusted.Rule;
            }
        }

        private static Dictionary<string, object> Read(string name)
        {
            var members = Json.Members(System.IO.File.ReadAllBytes(System.IO.Path.Combine(folder, name + ".json")));
            return members.ToDictionary(member => member.Key, member => member.Value.Value);
        }

        private static IEnumerable<Dictionary<string, object>> Items(
            object value) => ((List<object>)value).Cast<Dictionary<string, object>>();

        private static Dictionary<string, string> KeysOf(Dictionary<string, object> file) =>
            Items(file["keys"]).ToDictionary(key => (string)key["kid"], key => (string)key["public_key"]);

        private static object Wanted(Dictionary<string, object> vector,
            string name) => vector.ContainsKey(name) ? vector[name] : vector["verdict"];

        private static Expected ExpectedOf(Dictionary<string, object> file, Dictionary<string, object> vector)
        {
            var all = new Dictionary<string, object>(Json.Object(file["expected"]));
            if (vector.ContainsKey("expected"))
                foreach (var own in Json.Object(vector["expected"]))
                    all[own.Key] = own.Value;
            Dictionary<string, object> binding = Json.Object(all["binding"]), clock = Json.Object(all["clock"]);
            Func<string, DateTimeOffset?> time = name =>
                clock[name] == null ? (DateTimeOffset?)null
                                    : DateTimeOffset.Parse((string)clock[name], CultureInfo.InvariantCulture);
            return new Expected { Kind = (string)all["kind"], LicenseId = (string)all["license_id"],
                ProductId = (string)all["product_id"], ProductCode = (string)all["product_code"],
                Nonce = (string)all["nonce"], Now = time("now"), HighestIssuedAt = time("highest_issued_at"),
                Binding =
                    new Binding((string)binding["kind"], (string)binding["key"], new Dictionary<string, object>()) };
        }

        private static byte[] Joined(
            object chunks) => Items(chunks)
                                  .SelectMany(chunk => Enumerable
                                                  .Repeat(Convert.FromBase64String((string)chunk["base64"]),
                                                      (int)(long)chunk["times"])
                                                  .SelectMany(bytes => bytes))
                                  .ToArray();

        private static void CheckAnswers()
        {
            Dictionary<string, object> signatures = Read("signatures"), offline = Read("offline-envelopes");
            foreach (var group in new[] { "valid", "invalid" })
            {
                foreach (var one in Items(signatures[group]))
                {
                    var signature = Json.Write(Json.Object(one["signature"]));
                    var body =
                        Encoding.UTF8.GetBytes("{\"data\":" + one["canonical"] + ",\"signature\":" + signature + "}");
                    var given = VerdictOf(() => Verifier.Judge(KeysOf(signatures), body, new Expected()));
                    Report("signatures", one["name"], given, group == "valid" ? "believe" : "signature");
                }
                foreach (var one in Items(offline[group]))
                {
                    var envelope = Encoding.UTF8.GetBytes(Json.Write(Json.Object(one["envelope"])));
                    var key = (string)one["license_key"];
                    var given = VerdictOf(() => Verifier.OpenOffline(KeysOf(offline), key, envelope, new Expected()));
                    Report("offline-envelopes", one["name"], given, group == "valid" ? "believe" : "envelope");
                }
            }
            Dictionary<string, object> responses = Read("responses"), hostile = Read("hostile");
            foreach (var one in Items(responses["vectors"]))
            {
                var body = Encoding.UTF8.GetBytes((string)one["response"]);
                var given = VerdictOf(() => Verifier.Judge(KeysOf(responses), body, ExpectedOf(responses, one)));
                Report("responses", one["name"], given, Wanted(one, "rule"));
            }
            foreach (var one in Items(hostile["responses"]))
            {
                var body = Joined(one["body"]);
                var given = VerdictOf(() => Verifier.Judge(KeysOf(hostile), body, ExpectedOf(hostile, one)));
                Report("hostile responses", one["name"], given, Wanted(one, "rule"));
            }
            foreach (var name in new[] { "hostile", "air-gap" })
            {
                var file = Read(name);
                foreach (var one in Items(file["envelopes"]))
                {
                    var envelope = Joined(one["envelope"]);
                    var key = (string)file["license_key"];
                    var given =
                        VerdictOf(() => Verifier.OpenOffline(KeysOf(file), key, envelope, ExpectedOf(file, one)));
                    Report(name + " envelopes", one["name"], given, Wanted(one, "rule"));
                }
            }
        }

        private static Binding BindingOf(object request)
        {
            var ids = Json.Object(request)
                          .Where(member => member.Value is string)
                          .ToDictionary(member => member.Key, member => (string)member.Value);
            return ids.ContainsKey("fingerprint") ? Binding.Hardware(ids["fingerprint"]) : Binding.Container(ids);
        }

        private static void CheckOthers()
        {
            foreach (var one in Items(Read("bindings")["vectors"]))
            {
                var binding = BindingOf(one["request"]);
                Report("bindings", one["name"], binding.Kind + " " + binding.Hash, one["kind"] + " " + one["hash"]);
            }
            foreach (var one in Items(Read("air-gap")["requests"]))
            {
                var given = Verifier.OfflineRequest(BindingOf(one["binding"]), (string)one["product_code"]);
                Report("air-gap requests", one["name"], given, one["request"]);
            }
            foreach (var one in Items(Read("webhooks")["vectors"]))
            {
                var secrets = ((List<object>)one["secrets"]).Cast<string>();
                var headers = Json.Object(one["headers"]);
                Func<string, string> header = name => headers.TryGetValue(name, out var value) ? (string)value : null;
                var body = Convert.FromBase64String((string)one["body"]);
                var now = DateTimeOffset.FromUnixTimeSeconds((long)one["now"]);
                var given = "genuine";
                try
                {
                    if (one["scheme"].Equals("service")) Webhooks.Verify(secrets, header, body, now);
                    else Webhooks.VerifyStandard(secrets, header, body, now);
                }
                catch (WebhookRefusedException refused)
                {
                    given = refused.Message;
                }
                Report("webhooks " + one["scheme"], one["name"], given, Wanted(one, "reason"));
            }
        }

        /// <summary>The number of differences.</summary>
        internal static int Vectors(string folderOfVectors)
        {
            folder = folderOfVectors;
            CheckAnswers();
            CheckOthers();
            return differences;
        }

        internal static int Main(string[] arguments)
        {
            Console.OutputEncoding = new UTF8Encoding(false);
            if (arguments.Length == 2 && arguments[0] == "vectors")
            {
                Vectors(arguments[1]);
                Console.WriteLine(differences + " differences");
                return differences == 0 ? 0 : 1;
            }
            if (arguments.Length < 7 || arguments.Length > 8 || arguments[0] != "call")
            {
                Console.WriteLine(
                    "usage: vectors FOLDER | call URL LICENSE_KEY PRODUCT_CODE FINGERPRINT KID PUBLIC_KEY [ENVELOPE]");
                return 2;
            }
            var keys = new Dictionary<string, string> { { arguments[5], arguments[6] } };
            var client = new Client(arguments[1], arguments[2], arguments[3], keys, Binding.Hardware(arguments[4]));
            foreach (var operation in new[] { "activate", "validate", "open_offline" }.Take(arguments.Length - 5))
            {
                try
                {
                    var answer = operation == "activate" ? client.ActivateAsync().GetAwaiter().GetResult()
                        : operation == "validate" ? client.ValidateAsync().GetAwaiter().GetResult()
                        : client.OpenOffline(Encoding.UTF8.GetBytes(arguments[7]));
                    var says = answer.IsRefusal ? "error " + answer.Text("code") : "data " + answer.Text("status");
                    Console.WriteLine(operation + ": " + says);
                }
                catch (DistrustedException distrusted)
                {
                    Console.WriteLine(operation + ": distrusted " + distrusted.Rule);
                }
            }
            return 0;
        }
    }
#endif
}
