// The application kit in C# 7 or newer: .NET, .NET Framework 4.7 or Mono. Copy this file and Licensing.cs.
//
//   using (var kit = new LicenseKit(new KitOptions("https://licenses.example.com", "editor-pro", keys,
//       Binding.Hardware(fingerprint), new FileStore("license.json"))))
//   {
//       kit.Start();
//       Outcome outcome = await kit.ActivateAsync(licenseKey);
//       if (kit.Verdict.MayRun) { ... }
//   }
//
// It believes only responses that keep the rules of VERIFYING.md, and says what the application should do, as
// docs/guides/kit.md explains. Methods that ask the service return an outcome and throw nothing for the network. A kit
// may be used by several threads: requests are sent one after another, and Verdict and Features never wait for one. Use
// one kit for each machine and license.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

namespace Licensing
{
    /// <summary>
    /// Run: continue. Warn: continue, and tell the user. Ask: the user has to act first. Stop: end the licensed use.
    /// </summary>
    public enum Decision { Run, Warn, Ask, Stop }

    /// <summary>What the application should do now, and why.</summary>
    public sealed class Verdict
    {
        public Decision Decision { get; }
        public string Reason { get; }

        /// <summary>The signed refusal, or null.</summary>
        public IReadOnlyDictionary<string, object> Refusal { get; }

        /// <summary>Until when the application may go on without a further response, or null.</summary>
        public DateTimeOffset? EndsAt { get; }

        public bool MayRun => Decision <= Decision.Warn;

        internal Verdict(Decision decision, string reason, IReadOnlyDictionary<string, object> refusal = null,
            DateTimeOffset? endsAt = null)
        {
            Decision = decision;
            Reason = reason;
            Refusal = refusal;
            EndsAt = endsAt;
        }

        internal Verdict With(Decision other, string why) => new Verdict(other, why, Refusal, EndsAt);

        public override string ToString() => Decision + " " + Reason;
    }

    /// <summary>What an operation came to. Decision and reason hold for the application after it.</summary>
    public sealed class Outcome
    {
        public bool Granted { get; internal set; }
        public Decision Decision { get; internal set; }
        public string Reason { get; internal set; }

        /// <summary>The signed payload, or null.</summary>
        public IReadOnlyDictionary<string, object> Data { get; internal set; }

        /// <summary>The signed refusal, or null.</summary>
        public IReadOnlyDictionary<string, object> Refusal { get; internal set; }

        /// <summary>The rule that a response broke, or null.</summary>
        public string BrokenRule { get; internal set; }

        /// <summary>
        /// Why no believed response came: dns, refused, tls, timeout, response or network; or null.
        /// </summary>
        public string Problem { get; internal set; }

        /// <summary>The HTTP status of a response that was not believed, or null.</summary>
        public int? Status { get; internal set; }

        /// <summary>That of a consumption: give it again to repeat the same one. Null for other operations.</summary>
        public string EventId { get; internal set; }

        public override string ToString() => Decision + " " + Reason;
    }

    /// <summary>Keeps one text, which has the license key: store it where only the user can read it.</summary>
    public interface IStore
    {
        /// <summary>What was written, or null.</summary>
        string Read();
        void Write(string text);
    }

    /// <summary>
    /// Keeps the text in a file. On Windows it has the permissions of its folder; elsewhere only its owner can read it.
    /// </summary>
    public sealed class FileStore : IStore
    {
        private readonly string path;

        public FileStore(string path) => this.path = Path.GetFullPath(path);

        public string Read()
        {
            try
            {
                return File.ReadAllText(path);
            }
            catch (Exception none) when (none is FileNotFoundException || none is DirectoryNotFoundException)
            {
                return null;
            }
        }

        public void Write(string text)
        {
            // A file of its own, because other processes of the application may be writing.
            var written = path + "." + Guid.NewGuid().ToString("N") + ".new";
            if (Path.DirectorySeparatorChar == '/') CreateForOwner(written);
            try
            {
                using (var file = new FileStream(written, FileMode.OpenOrCreate))
                {
                    var bytes = new UTF8Encoding(false).GetBytes(text);
                    file.Write(bytes, 0, bytes.Length);
                    file.Flush(true);
                }
                if (File.Exists(path)) File.Replace(written, path, null);
                else File.Move(written, path);
            }
            finally
            {
                File.Delete(written);
            }
        }

        [DllImport("libc", SetLastError = true)]
        private static extern int creat(string path, uint mode);

        [DllImport("libc")]
        private static extern int close(int file);

        private static void CreateForOwner(string path)
        {
            var file = creat(path, 384); // 0600
            if (file < 0) throw new IOException("the store cannot be written: error " + Marshal.GetLastWin32Error());
            close(file);
        }
    }

    /// <summary>What a request got: a status and a body, or the problem that prevented it.</summary>
    public sealed class Reply
    {
        public int Status { get; }
        public byte[] Body { get; }
        public string RetryAfter { get; }
        public string Problem { get; }

        public Reply(int status, byte[] body, string retryAfter = "")
        {
            Status = status;
            Body = body;
            RetryAfter = retryAfter;
        }

        /// <summary>dns, refused, tls, timeout, response or network.</summary>
        public Reply(string problem) : this(0, new byte[0]) => Problem = problem;
    }

    /// <summary>Sends a POST, or a GET if the body is null. It follows no redirect.</summary>
    public delegate Task<Reply> Sender(
        string url, IReadOnlyDictionary<string, string> headers, string body, TimeSpan timeout);

    /// <summary>What the application gives the kit.</summary>
    public sealed class KitOptions
    {
        internal readonly string BaseUrl, ProductCode;
        internal readonly IReadOnlyDictionary<string, string> Keys;
        internal readonly Binding Binding;
        internal readonly IStore Store;

        /// <summary>The application's version, if the product has a version catalog.</summary>
        public string AppVersion { get; set; }

        /// <summary>How long the application may go on after next_check_at without the service.</summary>
        public TimeSpan Tolerance { get; set; } = TimeSpan.FromHours(72);

        /// <summary>How long a request may take with its body.</summary>
        public TimeSpan Timeout { get; set; } = TimeSpan.FromSeconds(15);

        /// <summary>Also trusts keys that the service publishes later, over TLS.</summary>
        public bool TrustPublishedKeys { get; set; }

        /// <summary>The clock. Another one is for tests.</summary>
        public Func<DateTimeOffset> Now { get; set; } = () => DateTimeOffset.UtcNow;

        /// <summary>The network. Null is the kit's own HttpClient.</summary>
        public Sender Send { get; set; }

        /// <summary>So many random bytes.</summary>
        public Func<int, byte[]> RandomBytes { get; set; } = count =>
        {
            var bytes = new byte[count];
            using (var generator = RandomNumberGenerator.Create()) generator.GetBytes(bytes);
            return bytes;
        };

        /// <param name="keys">
        /// kid to public key in base64, as GET /api/v1/system/public-keys publishes them: build them in.
        /// </param>
        public KitOptions(string baseUrl, string productCode, IReadOnlyDictionary<string, string> keys, Binding binding,
            IStore store)
        {
            BaseUrl = baseUrl.TrimEnd('/');
            ProductCode = productCode;
            Keys = keys;
            Binding = binding;
            Store = store;
        }

        internal void Check()
        {
            if (!Regex.IsMatch(BaseUrl, @"\Ahttps?://[^/?#@\s]+(/[^?#\s]*)?\z") ||
                Regex.IsMatch(BaseUrl, @"/api(/v[0-9]+)?\z"))
                throw new ArgumentException(
                    "baseUrl is the service's address, as https://licenses.example.com, before /api/v1");
            if (Keys.Count == 0 && !TrustPublishedKeys)
                throw new ArgumentException("keys needs the keys of GET /api/v1/system/public-keys");
            if (!Keys.Values.All(key => Regex.IsMatch(key, @"\A[A-Za-z0-9+/]{43}=\z")))
                throw new ArgumentException(
                    "keys has for each kid its public_key of GET /api/v1/system/public-keys: 32 bytes as base64");
            if (string.IsNullOrEmpty(Binding.Key)) throw new ArgumentException("binding needs a fingerprint");
            if (!(Timeout > TimeSpan.Zero && Timeout.TotalMilliseconds <= int.MaxValue))
                throw new ArgumentException("Timeout is more than 0 and at most 2147483647 milliseconds");
        }
    }

    public sealed class LicenseKit : IDisposable
    {
        private const double Hour = 3600000, Skew = 300000;
        private const int StoredLengthMax = 1 << 24;

        /// <summary>What a refusal ends; what is again is taken again once.</summary>
        private sealed class Rule
        {
            public Decision Decision;
            public string Reach;
            public bool Again;
        }

        private static readonly Dictionary<string, Rule> Rules = new Dictionary<string, Rule>();

        private static void Add(Decision decision, string reach, bool again, params string[] codes)
        {
            foreach (var code in codes) Rules[code] = new Rule { Decision = decision, Reach = reach, Again = again };
        }

        static LicenseKit()
        {
            Add(Decision.Stop, "license", false, "LICENSE_REVOKED", "LICENSE_SUSPENDED", "DEVICE_BLACKLISTED",
                "VM_NOT_ALLOWED", "CONTAINER_NOT_ALLOWED");
            Add(Decision.Ask, "license", false, "LICENSE_EXPIRED", "LICENSE_NOT_STARTED", "PRODUCT_MISMATCH",
                "VERSION_UNKNOWN", "VERSION_NOT_ENTITLED");
            Add(Decision.Stop, "activation", true, "DEVICE_NOT_FOUND", "DEVICE_NOT_ACTIVE", "HEARTBEAT_OVERDUE");
            Add(Decision.Ask, "activation", false, "ACTIVATION_LIMIT_REACHED", "CONTAINER_LIMIT_REACHED");
            Add(Decision.Stop, "seat", true, "LEASE_EXPIRED", "LEASE_NOT_ACTIVE", "LEASE_NOT_FOUND");
            Add(Decision.Ask, "seat", false, "FLOATING_LIMIT_REACHED", "FLOATING_NOT_ENABLED");
            Add(Decision.Run, "request", false, "DEVICE_STATE_CONFLICT");
        }

        /// <summary>
        /// A code that is not in the table, as FEATURE_DISABLED or one of a later service, ends nothing.
        /// </summary>
        private static Rule RuleOf(string code) =>
            Rules.TryGetValue(code, out var rule) ? rule : new Rule { Decision = Decision.Warn, Reach = "request" };

        private static readonly Dictionary<string, string> Kinds = new Dictionary<string, string> {
            { "activate", "entitlement" }, { "validate", "entitlement" }, { "check", "entitlement" },
            { "consume", "entitlement" }, { "deactivate", "deactivation" }, { "offline", "offline" },
            { "floating/checkout", "floating_checkout" }, { "floating/heartbeat", "floating_lease" },
            { "floating/checkin", "floating_lease" }
        };
        private static readonly Dictionary<string, string> Slots = new Dictionary<string, string> {
            { "entitlement", "entitlement" }, { "offline", "offline" }, { "floating_checkout", "checkout" },
            { "floating_lease", "lease" }
        };

        /// <summary>Operations that show until when the application may go on.</summary>
        private static readonly string[] Keeping = {
            "activate", "validate", "floating/checkout", "floating/heartbeat"
        };

        private sealed class Identity
        {
            public string LicenseKey, LicenseId, ProductId;
        }

        private sealed class Kept
        {
            public string Text;
            public Dictionary<string, object> Content;
        }

        /// <summary>A believed response, or why there is none.</summary>
        private sealed class Believed
        {
            public Answer Answer;
            public string Text, Reason, Rule, Problem;
            public int? Status;
            public double RetryAfter;

            public bool Granted => Answer != null && !Answer.IsRefusal;
            public bool Refused => Answer != null && Answer.IsRefusal;
            public string Code => Refused ? Answer.Text("code") ?? "" : "";
            public string Why => Answer == null ? Reason : Refused ? Code : null;
            public Dictionary<string, object> Content => Answer.Content;
        }

        private static readonly Believed NotActivated = new Believed { Reason = "NOT_ACTIVATED" };

        private readonly KitOptions options;
        private readonly Sender send;
        private readonly HttpSender http;
        /// <summary>Held during an operation.</summary>
        private readonly SemaphoreSlim asking = new SemaphoreSlim(1);
        /// <summary>Released when the next request is due at another instant.</summary>
        private readonly SemaphoreSlim planned = new SemaphoreSlim(0);
        /// <summary>Held while what follows is read or changed.</summary>
        private readonly object state = new object();
        private Identity identity;
        private string holding;
        private double highest = double.NegativeInfinity, due = double.PositiveInfinity;
        private double plannedAt = double.NegativeInfinity;
        private double wakeAt = double.PositiveInfinity;
        private Dictionary<string, string> published = new Dictionary<string, string>();
        private string missed;
        private bool isClockAhead, isStoreFailed;
        private Dictionary<string, object> used;
        private readonly Dictionary<string, Kept> responses = new Dictionary<string, Kept>();
        private int failures;
        private double keysFetchedAt = double.NegativeInfinity;
        private string told;
        private CancellationTokenSource keeper;

        /// <summary>
        /// Raised when the decision or its reason changes, in any thread. A handler may use the kit; what it throws
        /// counts as unhandled.
        /// </summary>
        public event Action<Verdict> VerdictChanged;

        /// <summary>Reads the store, and believes of it what keeps the rules. Sends nothing.</summary>
        public LicenseKit(KitOptions options)
        {
            options.Check();
            this.options = options;
            if (options.Send == null) http = new HttpSender();
            send = options.Send ?? http.SendAsync;
            Load();
            told = Verdict.ToString();
        }

        // ---- What holds now ----

        public Verdict Verdict
        {
            get
            {
                lock (state)
                {
                    var verdict = Decide(Now());
                    var isWarned = isStoreFailed && verdict.Decision == Decision.Run;
                    return isWarned ? verdict.With(Decision.Warn, "STORE_FAILED") : verdict;
                }
            }
        }

        /// <summary>"device", "seat" or null.</summary>
        public string Holding
        {
            get
            {
                lock (state) return holding;
            }
        }

        /// <summary>
        /// What the newest believed response says of the license, for an About box; null if there is none.
        /// </summary>
        public IReadOnlyDictionary<string, object> License
        {
            get
            {
                lock (state) return Grant();
            }
        }

        /// <summary>
        /// The features that the application may use now: none if it must not run. In a new period of a quota, a
        /// feature has is_usage_unknown in place of what was consumed.
        /// </summary>
        public IReadOnlyList<IReadOnlyDictionary<string, object>> Features
        {
            get
            {
                lock (state)
                {
                    var current = new List<IReadOnlyDictionary<string, object>>();
                    if (!Verdict.MayRun) return current;
                    var listed = Member(Grant(), "features") ?? Member(Content("checkout"), "features");
                    if (!(listed is List<object> all)) return current;
                    foreach (var one in all)
                    {
                        var feature = new Dictionary<string, object>(ObjectOf(one));
                        if (Now() >= Millis(feature, "expires_at")) continue;
                        if (Now() >= Millis(feature, "resets_at"))
                        {
                            foreach (var name in new[] { "consumed", "remaining", "overage" }) feature.Remove(name);
                            feature["is_usage_unknown"] = true;
                        }
                        current.Add(feature);
                    }
                    return current;
                }
            }
        }

        /// <summary>Null if the application may not use it.</summary>
        public IReadOnlyDictionary<string, object> Feature(string code) =>
            Features.FirstOrDefault(feature => code.Equals(Member(feature, "code")));

        // ---- Operations ----

        /// <summary>Activates this machine with the license key, or again with the stored one.</summary>
        public Task<Outcome> ActivateAsync(string licenseKey = null) =>
            AloneAsync(() => EnterAsync("activate", "device", licenseKey, Nothing));

        /// <summary>
        /// Starts this machine's one trial of the product under this policy, without a license key. It is refused with
        /// TRIAL_ALREADY_USED or TRIAL_NOT_ALLOWED.
        /// </summary>
        public Task<Outcome> StartTrialAsync(string policyCode) => AloneAsync(async () =>
        {
            var fields = new Dictionary<string, object> { { "policy_code", policyCode }, { "binding", Machine() } };
            var question = new Question { Path = "trial", Kind = "entitlement", Fields = fields,
                Binding = options.Binding };
            var got = await AskAsync(question, null).ConfigureAwait(false);
            return EnterWith("activate", "device", got.Granted ? got.Answer.Text("license_key") : null, got);
        });

        /// <summary>Takes a floating seat, or borrows it until an instant.</summary>
        public Task<Outcome> CheckoutAsync(string licenseKey = null, DateTimeOffset? until = null)
        {
            var more = new Dictionary<string, object>();
            if (until != null) more.Add("until", Iso(until.Value.ToUnixTimeMilliseconds()));
            return AloneAsync(() => EnterAsync("floating/checkout", "seat", licenseKey, more));
        }

        /// <summary>Asks whether the application may go on. It is the heartbeat of an activation.</summary>
        public Task<Outcome> ValidateAsync() => AloneAsync(() => UseAsync("validate", Nothing));

        /// <summary>Asks the same, and writes nothing at the service.</summary>
        public Task<Outcome> CheckAsync() => AloneAsync(() => UseAsync("check", Nothing));

        /// <summary>
        /// Counts use: one unless an amount is given. Unless it is granted nothing is known to be counted: repeat it
        /// with the same event id.
        /// </summary>
        public Task<Outcome> ConsumeAsync(string featureCode, long? amount = null, string eventId = null)
        {
            var own = eventId ?? Guid.NewGuid().ToString();
            var more = new Dictionary<string, object> { { "feature_code", featureCode }, { "event_id", own } };
            if (amount != null) more.Add("amount", amount.Value);
            return CountedAsync(more, own);
        }

        /// <summary>Takes a whole consumption back. A repetition takes back nothing more.</summary>
        public Task<Outcome> ReverseAsync(string featureCode, string eventId)
        {
            var own = eventId + ":reversed";
            return CountedAsync(
                new Dictionary<string, object> {
                    { "feature_code", featureCode }, { "reverses", eventId }, { "event_id", own }
                },
                own);
        }

        private async Task<Outcome> CountedAsync(IReadOnlyDictionary<string, object> more, string eventId)
        {
            var outcome = await AloneAsync(() => UseAsync("consume", more)).ConfigureAwait(false);
            outcome.EventId = eventId;
            return outcome;
        }

        /// <summary>Gets an offline envelope for this machine, and uses it from now on.</summary>
        public Task<Outcome> IssueOfflineAsync() => AloneAsync(() => UseAsync("offline", Nothing));

        /// <summary>The request of a machine without a network, as a text for a file or a QR code.</summary>
        public string OfflineRequest() => Verifier.OfflineRequest(
            new Binding(options.Binding.Kind, options.Binding.Key, Machine()), options.ProductCode);

        /// <summary>
        /// Uses an offline envelope that was brought to this machine: alone, or in the whole response.
        /// </summary>
        public Task<Outcome> OpenOfflineAsync(string envelope, string licenseKey = null) =>
            AloneAsync(() => OpenAsync(envelope, licenseKey));

        /// <summary>
        /// Lists the license's devices in data, the newest first: at most limit, after the next_cursor of the page
        /// before. Needs no activation, and changes nothing.
        /// </summary>
        public Task<Outcome> ListDevicesAsync(string licenseKey = null, string cursor = null, int? limit = null)
        {
            var page = new Dictionary<string, object>();
            if (cursor != null) page.Add("cursor", cursor);
            if (limit != null) page.Add("limit", limit.Value);
            return AloneAsync(() => AskAsideAsync(
                licenseKey, new Question { Path = "devices", Kind = "devices", Fields = page, IsRead = true }));
        }

        /// <summary>Deactivates another device of the license, which was lost: its slot becomes free.</summary>
        public Task<Outcome> DeactivateDeviceAsync(string deviceId, string licenseKey = null)
        {
            var path = "devices/" + Uri.EscapeDataString(deviceId) + "/deactivate";
            var question = new Question { Path = path, Kind = "deactivation", Fields = Nothing, DeviceId = deviceId };
            return AloneAsync(() => AskAsideAsync(licenseKey, question));
        }

        /// <summary>Gives the activation back.</summary>
        public Task<Outcome> DeactivateAsync() => AloneAsync(() => GiveBackAsync("deactivate", Nothing));

        /// <summary>Gives the seat back.</summary>
        public Task<Outcome> CheckinAsync() => AloneAsync(() => GiveBackAsync("floating/checkin", LeaseToken()));

        // ---- In the background ----

        /// <summary>From now on validates at next_check_at and sends the seat's heartbeats, until Stop.</summary>
        public void Start()
        {
            lock (state)
            {
                if (keeper != null) return;
                keeper = new CancellationTokenSource();
                var ends = keeper.Token;
                Task.Run(() => KeepAsync(ends));
            }
        }

        /// <summary>Ends what Start began. It gives nothing back.</summary>
        public void Stop()
        {
            lock (state)
            {
                keeper?.Cancel();
                keeper = null;
            }
        }

        /// <summary>Stops, and closes connections: nothing is sent any more.</summary>
        public void Dispose()
        {
            Stop();
            http?.Dispose();
        }

        /// <summary>Does at once what is due, and a retry that waits: after the machine slept, or when it is online again.</summary>
        public Task WakeAsync() => AskDueAsync(true);

        private Task AskDueAsync(bool isWoken) => AloneAsync(() =>
        {
            var held = Holding;
            if (held == null || !IsDue(isWoken)) return Task.FromResult<Outcome>(null);
            if (held == "device") return UseAsync("validate", Nothing);
            var token = LeaseToken();
            // A heartbeat is granted without a check of the version and the machine, so it lifts no refusal.
            return token.Count == 0 || IsRefused() ? EnterAsync("floating/checkout", "seat", null, Nothing)
                                                   : UseAsync("floating/heartbeat", token);
        });

        private async Task KeepAsync(CancellationToken ends)
        {
            while (!ends.IsCancellationRequested)
            {
                await AskDueAsync(false).ConfigureAwait(false);
                try
                {
                    // Timers stand still while a machine sleeps: the clock is read again at least each minute.
                    var wait = (int)Math.Min(Math.Max(Due() - Now(), 1000), 60000);
                    await planned.WaitAsync(wait, ends).ConfigureAwait(false);
                }
                catch (OperationCanceledException)
                {
                    return;
                }
            }
        }

        // ---- Asking, one request after another ----

        private async Task<Outcome> AloneAsync(Func<Task<Outcome>> ask)
        {
            Outcome outcome;
            await asking.WaitAsync().ConfigureAwait(false);
            try
            {
                outcome = await ask().ConfigureAwait(false);
            }
            finally
            {
                asking.Release();
            }
            Tell();
            return outcome;
        }

        /// <summary>Outside of the locks: the application may use the kit in its handler.</summary>
        private void Tell()
        {
            Verdict verdict;
            lock (state)
            {
                verdict = Verdict;
                if (verdict.ToString() == told) return;
                told = verdict.ToString();
            }
            try
            {
                VerdictChanged?.Invoke(verdict);
            }
            catch (Exception problem)
            {
                // The application's own error. The kit goes on.
                var thrown = ExceptionDispatchInfo.Capture(problem);
                ThreadPool.QueueUserWorkItem(_ => thrown.Throw());
            }
        }

        private async Task<Outcome> EnterAsync(
            string operation, string gives, string licenseKey, IReadOnlyDictionary<string, object> more)
        {
            var own = IdentityOf(licenseKey);
            if (own == null) return OutcomeOf(NotActivated);
            var got = await AskAsync(operation, more, own).ConfigureAwait(false);
            lock (state)
            {
                if (identity == null || identity.LicenseKey != own.LicenseKey)
                    return EnterWith(operation, gives, own.LicenseKey, got);
                return Settle(operation, got, got.Granted ? gives : null);
            }
        }

        /// <summary>Another license than before: until it is granted the one before stays.</summary>
        private Outcome EnterWith(string operation, string gives, string licenseKey, Believed got)
        {
            lock (state)
            {
                if (got.Granted)
                {
                    Begin(licenseKey);
                    return Settle(operation, got, gives);
                }
                if (holding == null) missed = got.Why;
                if (got.Refused) Save();
                return OutcomeOf(got);
            }
        }

        /// <summary>A request of what is held. What the service has forgotten is taken again, once.</summary>
        private async Task<Outcome> UseAsync(string operation, IReadOnlyDictionary<string, object> more)
        {
            var own = IdentityOf(null);
            var held = Holding;
            if (held == null || own == null) return OutcomeOf(NotActivated);
            var got = await AskAsync(operation, more, own).ConfigureAwait(false);
            if (!got.Refused || !RuleOf(got.Code).Again) return Settle(operation, got, null);
            if (operation == "offline" && held == "seat")
            {
                // Only an activation gets an envelope: its refusal is not about the seat.
                lock (state)
                {
                    Settle(operation, got, null);
                    return OutcomeOf(got, Decision.Warn);
                }
            }
            var regaining = held == "seat" ? "floating/checkout" : "activate";
            var regained = await AskAsync(regaining, Nothing, own).ConfigureAwait(false);
            var outcome = Settle(regaining, regained, null);
            var isRepeated = operation == "consume" || operation == "offline";
            if (!regained.Granted || !isRepeated) return outcome;
            return Settle(operation, await AskAsync(operation, more, IdentityOf(null)).ConfigureAwait(false), null);
        }

        private async Task<Outcome> OpenAsync(string envelope, string licenseKey)
        {
            var own = IdentityOf(licenseKey);
            if (own == null) return OutcomeOf(NotActivated);
            var question = new Question { Kind = "offline", Binding = options.Binding };
            var got = await BelievingAsync(
                null, question, () => Opened(EnvelopeIn(envelope), own.LicenseKey, ExpectedOf(question, own, null)))
                .ConfigureAwait(false);
            lock (state)
            {
                if (got.Granted)
                {
                    if (identity == null || identity.LicenseKey != own.LicenseKey) Begin(own.LicenseKey);
                    GrantFromFile(got);
                    Save();
                }
                return OutcomeOf(got);
            }
        }

        private async Task<Outcome> GiveBackAsync(string operation, IReadOnlyDictionary<string, object> more)
        {
            var own = IdentityOf(null);
            if (own == null) return OutcomeOf(NotActivated);
            // A seat that was lost has no token: nothing is left to give back.
            var isGone = operation == "floating/checkin" && more.Count == 0;
            var got = isGone ? NotActivated : await AskAsync(operation, more, own).ConfigureAwait(false);
            var isNothing = isGone || got.Code == "DEVICE_STATE_CONFLICT" || got.Code == "DEVICE_NOT_FOUND" ||
                            got.Code.StartsWith("LEASE_", StringComparison.Ordinal);
            lock (state)
            {
                if (got.Granted || isNothing) Release(operation == "deactivate" ? "device" : "seat");
                else if (got.Refused)
                {
                    Plan(operation, got);
                    Refuse(got);
                }
                Save();
                if (!got.Granted && !isNothing) return OutcomeOf(got);
                var verdict = Verdict;
                return new Outcome { Granted = true, Decision = verdict.Decision, Reason = verdict.Reason,
                    Data = got.Granted ? got.Content : null, Refusal = verdict.Refusal };
            }
        }

        /// <summary>
        /// A request about the license's other devices. Its refusal is not about this one, so it only warns.
        /// </summary>
        private async Task<Outcome> AskAsideAsync(string licenseKey, Question question)
        {
            var own = IdentityOf(licenseKey);
            if (own == null) return OutcomeOf(NotActivated);
            var got = await AskAsync(question, own).ConfigureAwait(false);
            lock (state)
            {
                if (got.Answer != null) Save();
                return OutcomeOf(got, Decision.Warn);
            }
        }

        private Dictionary<string, object> Machine()
        {
            var request = options.Binding.Request.ToDictionary(member => member.Key, member => member.Value);
            if (options.AppVersion != null) request["app_version"] = options.AppVersion;
            return request;
        }

        /// <summary>What is asked, and what its answer must be.</summary>
        private sealed class Question
        {
            public string Path, Kind, DeviceId;
            public IReadOnlyDictionary<string, object> Fields;
            /// <summary>Null where the answer has none, or that of another device.</summary>
            public Binding Binding;
            /// <summary>Set for a GET, which has the fields in its query.</summary>
            public bool IsRead;
        }

        private Task<Believed> AskAsync(string operation, IReadOnlyDictionary<string, object> more, Identity own)
        {
            var isOfLease = operation == "floating/heartbeat" || operation == "floating/checkin";
            var fields = isOfLease ? new Dictionary<string, object>() : Machine();
            foreach (var member in more) fields[member.Key] = member.Value;
            return AskAsync(new Question { Path = operation, Kind = Kinds[operation], Fields = fields,
                Binding = options.Binding }, own);
        }

        /// <summary>Without an identity the request has no license key.</summary>
        private async Task<Believed> AskAsync(Question question, Identity own)
        {
            // No header and no license has another key, such as one with the dashes of a word processor.
            if (own != null && own.LicenseKey.Any(one => one < ' ' || one > '~'))
                return new Believed { Reason = "LICENSE_KEY_INVALID" };
            var nonce = Convert.ToBase64String(options.RandomBytes(16));
            var fields = question.Fields.ToDictionary(member => member.Key, member => member.Value);
            fields["nonce"] = nonce;
            fields["product_code"] = options.ProductCode;
            var headers = new Dictionary<string, string>();
            if (own != null) headers.Add("Authorization", "License " + own.LicenseKey);
            var url = options.BaseUrl + "/api/v1/license/" + question.Path;
            var asked = question.IsRead ? send(url + "?" + QueryOf(fields), headers, null, options.Timeout)
                                        : send(url, headers, Json.Write(fields), options.Timeout);
            var reply = await asked.ConfigureAwait(false);
            if (reply.Problem != null) return new Believed { Reason = "NOT_REACHED", Problem = reply.Problem };
            return await BelievingAsync(reply, question, () =>
            {
                var expected = ExpectedOf(question, own, nonce);
                if (question.Kind == "offline")
                {
                    // The envelope is signed, and so is what is in it.
                    var outer = Verifier.Judge(Keys(), reply.Body, new Expected());
                    var envelope = outer.IsRefusal ? null : Json.Members(reply.Body)["data"].Raw;
                    if (envelope != null) return Opened(Utf8(envelope), own.LicenseKey, expected);
                }
                var answer = Verifier.Judge(Keys(), reply.Body, expected);
                var isOther = question.DeviceId != null && answer.Text("device_id") != question.DeviceId;
                if (isOther && !answer.IsRefusal) throw new DistrustedException("binding", "another device answered");
                return new Believed { Answer = answer, Text = Encoding.UTF8.GetString(reply.Body) };
            }).ConfigureAwait(false);
        }

        private static string QueryOf(Dictionary<string, object> fields)
        {
            Func<object, string> written =
                value => Uri.EscapeDataString(Convert.ToString(value, CultureInfo.InvariantCulture));
            return string.Join("&", fields.Select(field => field.Key + "=" + written(field.Value)));
        }

        private Believed Opened(byte[] envelope, string licenseKey, Expected expected)
        {
            var text = Verifier.Decrypt(licenseKey, envelope);
            var answer = Verifier.Judge(Keys(), text, expected);
            return new Believed { Answer = answer, Text = Encoding.UTF8.GetString(text) };
        }

        private Expected ExpectedOf(Question question, Identity own, string nonce)
        {
            lock (state)
            {
                return new Expected { Kind = question.Kind, LicenseId = own?.LicenseId, ProductId = own?.ProductId,
                    ProductCode = options.ProductCode, Binding = question.Binding, Nonce = nonce, Now = options.Now(),
                    HighestIssuedAt = InstantOf(highest) };
            }
        }

        private async Task<Believed> BelievingAsync(Reply reply, Question question, Func<Believed> judge)
        {
            try
            {
                try
                {
                    return Seen(judge());
                }
                catch (DistrustedException distrusted) when (distrusted.Rule == "kid")
                {
                    if (!await FetchKeysAsync().ConfigureAwait(false)) throw;
                }
                return Seen(judge());
            }
            catch (DistrustedException distrusted)
            {
                return Missed(distrusted.Rule, reply, question);
            }
            catch (FormatException)
            {
                return Missed("signature", reply, question);
            }
        }

        private Believed Seen(Believed got)
        {
            lock (state) See(Member(got.Content, "issued_at"));
            return got;
        }

        private static Believed Missed(string rule, Reply reply, Question question)
        {
            if (rule == "times") return new Believed { Reason = "CLOCK_WRONG", Rule = rule };
            if (reply == null) return new Believed { Reason = "NOT_REACHED", Rule = rule };
            var isSeconds = Regex.IsMatch(reply.RetryAfter, @"\A[0-9]{1,9}\z");
            var seconds = isSeconds ? double.Parse(reply.RetryAfter, CultureInfo.InvariantCulture) : 0;
            var wait = Math.Min(seconds * 1000, Hour);
            var code = rule == "signature" ? CodeIn(reply.Body) : null;
            // Only these unsigned codes ask the user for something. A trial that is refused takes nothing away.
            var isOfKey = reply.Status == 401 && (code == "LICENSE_KEY_INVALID" || code == "LICENSE_KEY_MISSING");
            if (code != null && (question.Path == "trial" ? reply.Status == 403 : isOfKey))
                return new Believed { Reason = code, RetryAfter = wait };
            return new Believed { Reason = "NOT_REACHED", Rule = rule, Problem = "response", Status = reply.Status,
                RetryAfter = wait };
        }

        /// <summary>
        /// Only over TLS, or on this machine, does the connection vouch for the keys. At most once in ten minutes.
        /// </summary>
        private async Task<bool> FetchKeysAsync()
        {
            const string safe = @"\A(https:|http://(localhost|127\.0\.0\.1|\[::1\])([:/]|\z))";
            if (!options.TrustPublishedKeys || !Regex.IsMatch(options.BaseUrl, safe)) return false;
            if (Math.Abs(Now() - keysFetchedAt) < 600000) return false;
            keysFetchedAt = Now();
            var url = options.BaseUrl + "/api/v1/system/public-keys";
            var reply = await send(url, new Dictionary<string, string>(), null, options.Timeout).ConfigureAwait(false);
            if (reply.Problem != null || reply.Status != 200) return false;
            try
            {
                var members = Json.Members(reply.Body);
                lock (state) published = KeysIn(members.TryGetValue("data", out var data) ? data.Value : null);
                return true;
            }
            catch (FormatException)
            {
                return false;
            }
        }

        /// <summary>A key that is built in is never replaced.</summary>
        private Dictionary<string, string> Keys()
        {
            lock (state)
            {
                var all = options.TrustPublishedKeys ? new Dictionary<string, string>(published)
                                                     : new Dictionary<string, string>();
                foreach (var key in options.Keys) all[key.Key] = key.Value;
                return all;
            }
        }

        // ---- Memory: what is believed. All below run with the lock of the state. ----

        private void Load()
        {
            string text = null;
            try
            {
                text = options.Store.Read();
            }
            catch (Exception)
            {
                isStoreFailed = true;
            }
            var stored = ObjectIn(text);
            if (Member(stored, "license_key") is string key)
            {
                identity = new Identity { LicenseKey = key, LicenseId = Member(stored, "license_id") as string,
                    ProductId = Member(stored, "product_id") as string };
                var held = Member(stored, "holding") as string;
                if (held == "device" || held == "seat") holding = held;
            }
            published = KeysIn(Member(stored, "published_keys"));
            See(Member(stored, "highest_issued_at"));
            var texts = ObjectOf(Member(stored, "responses"));
            foreach (var slot in new[] { "entitlement", "offline", "checkout", "lease", "refusal" })
                LoadSlot(slot, Member(texts, slot) as string);
            if (holding == null) return;
            // The service is asked at once if nothing stored is believed, and for a seat, unless it is borrowed.
            var isWaiting = holding == "device" ? responses.Count > 0 : Member(Seat(), "borrowed_until") != null;
            var entitlement = Content("entitlement");
            var next = entitlement == null ? Millis(Seat(), "lease_expires_at") : Millis(entitlement, "next_check_at");
            // A plan that is later than the service's own, and than any retry, was made while the clock was ahead.
            var stands = Millis(stored, "due_at");
            var isPlausible = stands <= Now() + Hour || stands <= next + Skew;
            // What ended the use has perhaps ended since: the license was renewed, or the network is back.
            due = isWaiting && isPlausible && Verdict.MayRun ? stands : 0;
        }

        private void LoadSlot(string slot, string text)
        {
            if (text == null) return;
            try
            {
                var kind = Slots.FirstOrDefault(one => one.Value == slot).Key;
                var answer = Verifier.Judge(Keys(), Utf8(text), new Expected { Kind = kind,
                    LicenseId = identity?.LicenseId, ProductId = identity?.ProductId, ProductCode = options.ProductCode,
                    Binding = options.Binding });
                if (answer.IsRefusal != (slot == "refusal")) return;
                responses[slot] = new Kept { Text = text, Content = answer.Content };
                See(Member(answer.Content, "issued_at"));
            }
            catch (DistrustedException)
            {
                // As if it were not there.
            }
        }

        private Dictionary<string, object> Content(string slot) =>
            responses.TryGetValue(slot, out var kept) ? kept.Content : null;

        /// <summary>The seat that is held.</summary>
        private Dictionary<string, object> Seat() =>
            holding == "seat" ? Content("lease") ?? Content("checkout") : null;

        /// <summary>The member of a request, if there is one.</summary>
        private bool IsRefused()
        {
            lock (state) return responses.ContainsKey("refusal");
        }

        private Dictionary<string, object> LeaseToken()
        {
            lock (state)
            {
                var found = new Dictionary<string, object>();
                if (Member(Content("checkout"), "lease_token") is string token) found.Add("lease_token", token);
                return found;
            }
        }

        private double Due()
        {
            lock (state) return due;
        }

        /// <summary>Also if the clock was set back: it was ahead when the request was planned.</summary>
        private bool IsDue(bool isWoken)
        {
            var now = Now();
            lock (state) return now >= due || now < plannedAt || (isWoken && now >= wakeAt);
        }

        private Identity IdentityOf(string licenseKey)
        {
            lock (state)
            {
                if (licenseKey == null) return identity;
                var key = LicenseKeyOf(licenseKey);
                return identity != null && identity.LicenseKey == key ? identity : new Identity { LicenseKey = key };
            }
        }

        private Outcome Settle(string operation, Believed got, string gives)
        {
            lock (state)
            {
                Plan(operation, got);
                if (got.Granted) Take(got, Now(), gives);
                else if (got.Refused) Refuse(got);
                missed = holding == null || got.Answer == null ? got.Why : null;
                Save();
                return OutcomeOf(got);
            }
        }

        /// <summary>
        /// Believes a grant. Without what it gives, the response only updates what is held.
        /// </summary>
        private void Take(Believed got, double now, string gives)
        {
            var content = got.Content;
            if (identity != null)
                identity = new Identity { LicenseKey = identity.LicenseKey, LicenseId = got.Answer.Text("license_id"),
                    ProductId = got.Answer.Text("product_id") };
            responses.Remove("refusal");
            isClockAhead = now - Millis(content, "issued_at") > Skew;
            Slots.TryGetValue(got.Answer.Text("kind") ?? "", out var slot);
            // Only an activation gets an envelope: also beside a seat the machine has one.
            if (slot == "offline") gives = "device";
            // Why nothing was held until now.
            if (holding == null) missed = null;
            if (gives != null && gives != holding) Forget(gives == "device");
            if (gives != null) holding = gives;
            var isSeat = holding == "seat";
            // An entitlement to the holder of a seat outlasts the seat: the seat alone decides.
            var isOfSeat = slot == "checkout" || slot == "lease";
            if (slot == "entitlement" && isSeat) used = content;
            if (slot == null || isOfSeat != isSeat) return;
            if (slot == "checkout") responses.Remove("lease");
            responses[slot] = new Kept { Text = got.Text, Content = content };
            var checkAt = Millis(content, "next_check_at");
            if (slot == "offline" && checkAt < due) due = checkAt;
        }

        /// <summary>A file was issued before: it changes neither the clock nor a newer refusal.</summary>
        private void GrantFromFile(Believed got)
        {
            var isAhead = isClockAhead;
            responses.TryGetValue("refusal", out var refusal);
            Take(got, 0, null);
            isClockAhead = isAhead;
            if (refusal != null && Millis(refusal.Content, "issued_at") > Millis(got.Content, "issued_at"))
            {
                Forget(true);
                responses["refusal"] = refusal;
            }
        }

        /// <summary>
        /// What a refusal ends is forgotten, so that removing the refusal from the store gives nothing back.
        /// </summary>
        private void Refuse(Believed got)
        {
            var reach = RuleOf(got.Code).Reach;
            var isOfHolding = holding == (reach == "activation" ? "device" : "seat");
            if (reach == "request" || reach != "license" && !isOfHolding) return;
            var isBorrowed = Millis(Content("checkout"), "borrowed_until") > Millis(got.Content, "issued_at");
            // Only a revocation ends a borrowed seat: after any other refusal it can still be given back.
            Forget(isBorrowed && got.Code != "LICENSE_REVOKED");
            responses["refusal"] = new Kept { Text = got.Text, Content = got.Content };
        }

        /// <summary>The activation or the seat was given back; the other one stays.</summary>
        private void Release(string given)
        {
            if (given == "seat") responses.Remove("checkout");
            if (given != holding) return;
            Forget(true);
            holding = null;
            missed = null;
            due = double.PositiveInfinity;
        }

        private void Begin(string licenseKey)
        {
            Release(holding);
            responses.Clear();
            identity = new Identity { LicenseKey = licenseKey };
        }

        /// <summary>Only the token in the checkout gives a seat back, also beside an activation.</summary>
        private void Forget(bool keepsToken)
        {
            used = null;
            foreach (var slot in Slots.Values)
                if (slot != "checkout" || !keepsToken) responses.Remove(slot);
        }

        /// <summary>
        /// Of every believed answer, also one that changes nothing else: the clock must not fall behind it.
        /// </summary>
        private void See(object issuedAt)
        {
            var instant = MillisOf(issuedAt);
            if (instant > highest) highest = instant;
        }

        private void Save()
        {
            var stored = new Dictionary<string, object> {
                { "license_key", identity?.LicenseKey }, { "license_id", identity?.LicenseId },
                { "product_id", identity?.ProductId }, { "holding", holding }, { "highest_issued_at", Iso(highest) },
                { "due_at", Iso(due) }
            };
            foreach (var name in stored.Keys.Where(name => stored[name] == null).ToList()) stored.Remove(name);
            var trusted = options.TrustPublishedKeys ? published : new Dictionary<string, string>();
            Func<KeyValuePair<string, string>, object> written =
                key => new Dictionary<string, object> { { "kid", key.Key }, { "public_key", key.Value } };
            stored["published_keys"] = trusted.Select(written).ToList();
            stored["responses"] = responses.ToDictionary(kept => kept.Key, kept => (object)kept.Value.Text);
            try
            {
                options.Store.Write(Json.Write(stored));
                isStoreFailed = false;
            }
            catch (Exception)
            {
                isStoreFailed = true;
            }
        }

        // ---- Deciding: a function of what is believed and the time ----

        private Verdict Decide(double now)
        {
            if (now < highest - Skew) return new Verdict(Decision.Ask, "CLOCK_WRONG");
            var refusal = Content("refusal");
            if (refusal != null)
            {
                var code = Member(refusal, "code") as string ?? "";
                return new Verdict(RuleOf(code).Decision, code, refusal);
            }
            if (holding == null) return new Verdict(Decision.Ask, missed ?? "NOT_ACTIVATED");
            return holding == "seat" ? SeatVerdict(now) : DeviceVerdict(now);
        }

        private Verdict SeatVerdict(double now)
        {
            var seat = Seat();
            var endsAt = Millis(seat, "lease_expires_at");
            if (!(now < endsAt)) return Ended("SEAT_ENDED");
            // A heartbeat is due after a third of the term: after two thirds at least one was missed. A borrowed seat
            // needs none.
            var term = endsAt - Millis(seat, "issued_at");
            return Living(seat, now, endsAt, Math.Max(endsAt - term / 3, Finite(Millis(seat, "borrowed_until"))));
        }

        private Verdict DeviceVerdict(double now)
        {
            var grant = NewestGrant();
            if (grant == null) return Ended("NOT_REACHED");
            var endName = grant.ContainsKey("access_ends_at") ? "access_ends_at" : "expires_at";
            var accessEnd = grant.ContainsKey(endName) ? Millis(grant, endName) : double.PositiveInfinity;
            if (now >= accessEnd) return new Verdict(Decision.Ask, isClockAhead ? "CLOCK_WRONG" : "LICENSE_EXPIRED");
            var checkAt = Millis(Content("entitlement"), "next_check_at");
            var offlineEnd = Millis(Content("offline"), "offline_expires_at");
            var tolerated = Finite(checkAt) + options.Tolerance.TotalMilliseconds;
            var endsAt = Math.Min(Math.Max(tolerated, Finite(offlineEnd)), Math.Min(accessEnd, MillisMax));
            if (!(now < endsAt)) return Ended("NOT_REACHED");
            var verdict = Living(grant, now, endsAt, Math.Max(Finite(checkAt), Finite(offlineEnd)));
            var isOffline = !(now < checkAt) && now < offlineEnd && verdict.Reason == "LICENSED";
            return isOffline ? verdict.With(verdict.Decision, "OFFLINE") : verdict;
        }

        /// <summary>Runs until warnAt, then warns.</summary>
        private Verdict Living(Dictionary<string, object> content, double now, double endsAt, double warnAt)
        {
            var decision = Decision.Warn;
            var reason = "NOT_REACHED";
            var isInGrace = "grace_period".Equals(Member(content, "status")) || now >= Millis(content, "expires_at");
            if (isInGrace) reason = "GRACE_PERIOD";
            else if (isClockAhead) reason = "CLOCK_WRONG";
            else if (missed != null && missed != "NOT_REACHED") reason = missed;
            else if (now < warnAt)
            {
                decision = Decision.Run;
                reason = "LICENSED";
            }
            return new Verdict(decision, reason, null, InstantOf(endsAt));
        }

        /// <summary>
        /// Nothing believed allows the use any more: stops, unless the user can do something about it.
        /// </summary>
        private Verdict Ended(string reason)
        {
            if (isClockAhead) return new Verdict(Decision.Ask, "CLOCK_WRONG");
            return missed == null || missed == "NOT_REACHED" ? new Verdict(Decision.Stop, reason)
                                                             : new Verdict(Decision.Ask, missed);
        }

        private Dictionary<string, object> NewestGrant()
        {
            Dictionary<string, object> entitlement = Content("entitlement"), offline = Content("offline");
            var isOfflineNewer = !(Millis(entitlement, "issued_at") >= Millis(offline, "issued_at"));
            return offline != null && isOfflineNewer ? offline : entitlement;
        }

        /// <summary>The newest believed response that grants something.</summary>
        private Dictionary<string, object> Grant()
        {
            if (holding != "seat") return NewestGrant();
            var newest = used;
            foreach (var slot in new[] { "lease", "checkout" })
            {
                var one = Content(slot);
                if (newest == null || Millis(one, "issued_at") > Millis(newest, "issued_at")) newest = one;
            }
            return newest;
        }

        // ---- When to ask next ----

        private void Plan(string operation, Believed got)
        {
            // With a seat only its lease counts: a validation puts off no heartbeat, unless it is refused.
            var isOfSeat = operation == "validate" && holding == "seat";
            // What refuses the license may be lifted: it is asked again soon, whatever was refused.
            var isEnd = got.Refused && RuleOf(got.Code).Reach == "license";
            if (!isEnd && (!Keeping.Contains(operation) || (isOfSeat && !got.Refused))) return;
            failures = got.Granted ? 0 : failures + 1;
            plannedAt = Now();
            due = plannedAt + (got.Granted ? WaitOf(got.Content) : RetryWait(got));
            // The application that calls WakeAsync knows that the machine is online: a retry need not wait as long.
            var isMissed = !got.Granted && !got.Refused;
            wakeAt = isMissed ? plannedAt + Math.Max(got.RetryAfter, 10000) : double.PositiveInfinity;
            if (planned.CurrentCount == 0) planned.Release();
        }

        private double RetryWait(Believed got)
        {
            if (got.Code == "LICENSE_REVOKED") return double.PositiveInfinity;
            var most = Seat() == null ? Hour : Math.Min(WaitOf(Seat()), Hour);
            var backoff = Math.Min(10000 * Math.Pow(2, Math.Min(failures - 1, 20)), most);
            var spread = 0.2 * options.RandomBytes(1)[0] / 255;
            var asked = got.RetryAfter;
            if (got.Refused && Member(got.Content, "retry_after_seconds") is long seconds) asked = seconds * 1000.0;
            // Perhaps days: a vendor may lift the refusal before, and a seat needs its heartbeats.
            return Math.Max(Math.Min(asked, most), backoff * (1 - spread));
        }

        /// <summary>By the service's own instants, because this machine's clock may differ.</summary>
        private static double WaitOf(Dictionary<string, object> content)
        {
            var issued = Millis(content, "issued_at");
            var leaseEnd = Millis(content, "lease_expires_at");
            var wait = (leaseEnd - issued) / 3;
            var left = Millis(content, "expires_at") - issued;
            if (double.IsNaN(leaseEnd))
            {
                wait = Millis(content, "next_check_at") - issued;
                // Perhaps a renewal has moved the expiry, and no grace period begins.
                if (left > 0 && left < wait) wait = left;
            }
            // Shortly before its end a heartbeat makes a borrowed seat an ordinary one without a gap.
            else if (leaseEnd <= Millis(content, "borrowed_until")) wait = leaseEnd - issued - 30000;
            return Math.Max(double.IsNaN(wait) ? Hour : wait, 5000);
        }

        // ---- Outcomes ----

        /// <summary>The stricter of the refusal's own or the given decision, and the verdict after it.</summary>
        private Outcome OutcomeOf(Believed got, Decision? given = null)
        {
            var verdict = Verdict;
            if (got.Granted)
                return new Outcome { Granted = true, Decision = verdict.Decision, Reason = verdict.Reason,
                    Data = got.Content, Refusal = verdict.Refusal };
            if (got.Refused)
            {
                var own = given ?? RuleOf(got.Code).Decision;
                var stricter = verdict.Decision > own ? verdict : verdict.With(own, got.Code);
                return new Outcome { Decision = stricter.Decision, Reason = stricter.Reason, Refusal = got.Content };
            }
            return new Outcome { Decision = verdict.Decision, Reason = verdict.MayRun ? got.Reason : verdict.Reason,
                Refusal = verdict.Refusal, BrokenRule = got.Rule, Problem = got.Problem, Status = got.Status };
        }

        // ---- HTTP ----

        /// <summary>
        /// Follows no redirect, which would carry the license key to another host, and verifies certificates.
        /// </summary>
        private sealed class HttpSender : IDisposable
        {
            private readonly HttpClient client =
                new HttpClient(new HttpClientHandler { AllowAutoRedirect = false, UseCookies = false }) {
                    Timeout = System.Threading.Timeout.InfiniteTimeSpan
                };

            public void Dispose() => client.Dispose();

            public async Task<Reply> SendAsync(
                string url, IReadOnlyDictionary<string, string> headers, string body, TimeSpan timeout)
            {
                using (var ends = new CancellationTokenSource())
                {
                    var asked = ExchangeAsync(url, headers, body, ends.Token);
                    // Reading a body does not heed the token in all of these runtimes.
                    var first = await Task.WhenAny(asked, Task.Delay(timeout, ends.Token)).ConfigureAwait(false);
                    ends.Cancel();
                    return first == asked ? await asked.ConfigureAwait(false) : new Reply("timeout");
                }
            }

            private async Task<Reply> ExchangeAsync(
                string url, IReadOnlyDictionary<string, string> headers, string body, CancellationToken ends)
            {
                try
                {
                    using (var request = new HttpRequestMessage(body == null ? HttpMethod.Get : HttpMethod.Post, url))
                    {
                        if (body != null) request.Content = new StringContent(body, Encoding.UTF8, "application/json");
                        request.Headers.ExpectContinue = false;
                        foreach (var header in headers)
                            request.Headers.TryAddWithoutValidation(header.Key, header.Value);
                        const HttpCompletionOption early = HttpCompletionOption.ResponseHeadersRead;
                        using (var response = await client.SendAsync(request, early, ends).ConfigureAwait(false))
                        using (ends.Register(response.Dispose))
                        {
                            var received = await ReadAsync(response, ends).ConfigureAwait(false);
                            if (received == null) return new Reply("response");
                            return new Reply((int)response.StatusCode, received, RetryAfterOf(response));
                        }
                    }
                }
                catch (Exception problem)
                {
                    return new Reply(ProblemOf(problem));
                }
            }

            private static string RetryAfterOf(HttpResponseMessage response) =>
                response.Headers.TryGetValues("Retry-After", out var values) ? values.First() : "";

            /// <summary>A body of at most 1 MiB; null if it is larger.</summary>
            private static async Task<byte[]> ReadAsync(HttpResponseMessage response, CancellationToken ends)
            {
                var received = new MemoryStream();
                var buffer = new byte[8192];
                using (var stream = await response.Content.ReadAsStreamAsync().ConfigureAwait(false))
                {
                    while (true)
                    {
                        var count = await stream.ReadAsync(buffer, 0, buffer.Length, ends).ConfigureAwait(false);
                        if (count == 0) return received.ToArray();
                        if (received.Length + count > Verifier.BodyBytesMax) return null;
                        received.Write(buffer, 0, count);
                    }
                }
            }

            private static string ProblemOf(Exception failure)
            {
                for (var cause = failure; cause != null; cause = cause.InnerException)
                {
                    if (cause is AuthenticationException) return "tls";
                    if (cause is SocketException socket)
                    {
                        if (socket.SocketErrorCode == SocketError.ConnectionRefused) return "refused";
                        var isUnknown = socket.SocketErrorCode == SocketError.HostNotFound ||
                                        socket.SocketErrorCode == SocketError.TryAgain ||
                                        socket.SocketErrorCode == SocketError.NoData;
                        return isUnknown ? "dns" : "network";
                    }
                    // What .NET Framework and Mono have.
                    var status = (cause as WebException)?.Status;
                    if (status == WebExceptionStatus.NameResolutionFailure) return "dns";
                    if (status == WebExceptionStatus.TrustFailure || status == WebExceptionStatus.SecureChannelFailure)
                        return "tls";
                }
                return "network";
            }
        }

        // ---- Texts ----

        /// <summary>What comes along with a text from the clipboard: the same in every kit.</summary>
        private static readonly char[] WhiteSpace = (
            "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" +
            "\u2028\u2029\u202f\u205f\u3000\ufeff").ToCharArray();

        /// <summary>A license key as a person types it, in the form as issued.</summary>
        public static string LicenseKeyOf(string typed)
        {
            var text = typed.Trim(WhiteSpace);
            var symbols = Regex.Replace(text, "[- ]", "").ToUpperInvariant();
            if (text.Length > 64 || !Regex.IsMatch(symbols, @"\A[L1I]K[0-9A-TV-Z]{30}\z")) return text;
            var body = symbols.Substring(2).Replace('O', '0').Replace('I', '1').Replace('L', '1');
            return "LK" + Regex.Replace(body, ".{5}", "-$0");
        }

        /// <summary>
        /// The envelope in a text: alone, or as the data of a whole response. Editors add white space and byte order
        /// marks.
        /// </summary>
        private static byte[] EnvelopeIn(string text)
        {
            var trimmed = text.Trim(WhiteSpace);
            try
            {
                var found = Json.Members(Utf8(trimmed));
                var isAlone = found.ContainsKey("ciphertext") || !found.ContainsKey("data");
                return Utf8(isAlone ? trimmed : found["data"].Raw);
            }
            catch (FormatException)
            {
                return Utf8(trimmed);
            }
        }

        private static string CodeIn(byte[] body)
        {
            try
            {
                var found = Json.Members(body);
                return found.TryGetValue("error", out var error) ? Member(ObjectOf(error.Value), "code") as string
                                                                 : null;
            }
            catch (FormatException)
            {
                return null;
            }
        }

        private static Dictionary<string, object> ObjectIn(string text)
        {
            try
            {
                if (text != null && text.Length <= StoredLengthMax)
                    return Json.Members(text).ToDictionary(member => member.Key, member => member.Value.Value);
            }
            catch (FormatException)
            {
                // As if nothing were stored.
            }
            return new Dictionary<string, object>();
        }

        private static Dictionary<string, string> KeysIn(object listed)
        {
            var found = new Dictionary<string, string>();
            foreach (var entry in listed as List<object> ?? new List<object>())
            {
                var isKey = Member(ObjectOf(entry), "public_key") is string;
                if (isKey && Member(ObjectOf(entry), "kid") is string kid && found.Count < 64)
                    found[kid] = (string)Member(ObjectOf(entry), "public_key");
            }
            return found;
        }

        private static readonly Dictionary<string, object> Nothing = new Dictionary<string, object>();

        private static Dictionary<string, object> ObjectOf(object value) =>
            value as Dictionary<string, object> ?? Nothing;

        /// <summary>Null if there is none.</summary>
        private static object Member(IReadOnlyDictionary<string, object> content, string name) =>
            content != null && content.TryGetValue(name, out var value) ? value : null;

        private static byte[] Utf8(string text) => Encoding.UTF8.GetBytes(text);

        private double Now() => options.Now().ToUnixTimeMilliseconds();

        /// <summary>
        /// Milliseconds of an instant as the service writes it, or NaN: comparisons with it are false.
        /// </summary>
        private static double MillisOf(object value)
        {
            const string form = @"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z\z";
            const DateTimeStyles utc = DateTimeStyles.AssumeUniversal | DateTimeStyles.AdjustToUniversal;
            if (!(value is string text) || !Regex.IsMatch(text, form)) return double.NaN;
            var isInstant = DateTimeOffset.TryParse(text, CultureInfo.InvariantCulture, utc, out var instant);
            return isInstant ? instant.ToUnixTimeMilliseconds() : double.NaN;
        }

        private static double Millis(IReadOnlyDictionary<string, object> content, string name) =>
            MillisOf(Member(content, name));

        /// <summary>The last instant that DateTimeOffset has.</summary>
        private static readonly double MillisMax = DateTimeOffset.MaxValue.ToUnixTimeMilliseconds();

        private static DateTimeOffset? InstantOf(double millis) =>
            double.IsNaN(millis) || double.IsInfinity(millis)
                ? (DateTimeOffset?)null
                : DateTimeOffset.FromUnixTimeMilliseconds((long)Math.Min(millis, MillisMax));

        private static string Iso(double millis) =>
            InstantOf(millis)?.UtcDateTime.ToString("yyyy-MM-dd'T'HH:mm:ss.fff'Z'", CultureInfo.InvariantCulture);

        private static double Finite(double millis) => double.IsNaN(millis) ? double.NegativeInfinity : millis;
    }
}
