// Checks Licensing.cs and LicenseKit.cs against the published test vectors, and uses them with a service. An
// application does not need it.
//
//   mcs -define:LICENSING_CHECK -main:Licensing.LicenseKitCheck -r:System.Net.Http.dll -out:check.exe \
//     Licensing.cs LicenseKit.cs LicenseKitCheck.cs && mono check.exe vectors schema/vectors
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Text;
using System.Threading.Tasks;

namespace Licensing
{
    internal static class LicenseKitCheck
    {
        private static int differences;

        private static void Report(string title, object given, object wanted, string shown)
        {
            // Both are written with their names sorted.
            var same = Json.Write(given) == Json.Write(wanted);
            if (!same) differences++;
            Console.WriteLine(
                title + ": " + (same ? shown : Json.Write(given) + ", but it should be " + Json.Write(wanted)));
        }

        private static Dictionary<string, object> Object(object value) =>
            value as Dictionary<string, object> ?? new Dictionary<string, object>();

        private static List<object> Items(object value) => value as List<object> ?? new List<object>();

        private static object Member(Dictionary<string, object> content, string name) =>
            content.TryGetValue(name, out var value) ? value : null;

        private static Dictionary<string, object> ObjectIn(string text) =>
            Json.Members(text).ToDictionary(member => member.Key, member => member.Value.Value);

        private static string Lower(Decision decision) => decision.ToString().ToLowerInvariant();

        private sealed class MemoryStore : IStore
        {
            public string Text;

            public string Read() => Text;

            public void Write(string text) => Text = text;
        }

        /// <summary>
        /// A machine with the clock, the network, the store and the randomness that a scenario gives.
        /// </summary>
        private sealed class Machine
        {
            private readonly Dictionary<string, object> file, responses, options;
            private readonly byte random;
            private readonly MemoryStore store = new MemoryStore();
            private readonly Queue<object> given = new Queue<object>();
            private readonly List<object> asked = new List<object>();
            private DateTimeOffset now;
            private LicenseKit kit;

            public Machine(Dictionary<string, object> file, Dictionary<string, object> scenario)
            {
                this.file = file;
                responses = Object(file["responses"]);
                options = new Dictionary<string, object>(Object(file["options"]));
                Change(scenario);
                random = (byte)((long?)Member(scenario, "random") ?? 0);
            }

            private void Change(Dictionary<string, object> by)
            {
                foreach (var option in Object(Member(by, "options"))) options[option.Key] = option.Value;
            }

            public Dictionary<string, object> Take(Dictionary<string, object> step)
            {
                now = InstantOf(step["at"]);
                given.Clear();
                foreach (var one in Items(Member(step, "given"))) given.Enqueue(one);
                asked.Clear();
                var operation = (string)step["do"];
                if (operation == "open") Open(step);
                var outcome = Operate(operation, Object(Member(step, "with")));
                var verdict = kit.Verdict;
                var found = new Dictionary<string, object>();
                if (outcome != null)
                {
                    var word = outcome.Granted ? "granted" : outcome.Refusal != null ? "refused" : "missed";
                    found["outcome"] = word + " " + Lower(outcome.Decision) + " " + outcome.Reason;
                    found["broken_rule"] = outcome.BrokenRule;
                    found["problem"] = outcome.Problem;
                }
                found["decision"] = Lower(verdict.Decision);
                found["reason"] = verdict.Reason;
                found["ends_at"] =
                    verdict.EndsAt?.ToString("yyyy-MM-dd'T'HH:mm:ss.fff'Z'", CultureInfo.InvariantCulture);
                var features = kit.Features.Select(WordsOf).ToList<object>();
                if (features.Count > 0) found["features"] = features;
                if (asked.Count > 0) found["asked"] = asked.ToList();
                if (store.Text != null) found["stored"] = Summary(store.Text);
                return found.Where(one => one.Value != null).ToDictionary(one => one.Key, one => one.Value);
            }

            private static string WordsOf(IReadOnlyDictionary<string, object> feature)
            {
                var rest = feature.ContainsKey("is_usage_unknown") ? "unknown"
                    : feature.TryGetValue("remaining", out var remaining) ? remaining : null;
                return feature["code"] + (rest == null ? "" : " " + rest);
            }

            private static DateTimeOffset InstantOf(object text) =>
                DateTimeOffset.Parse((string)text, CultureInfo.InvariantCulture);

            private void Open(Dictionary<string, object> step)
            {
                Change(step);
                if (step.ContainsKey("store")) store.Text = (string)step["store"];
                if (step.ContainsKey("forget") || step.ContainsKey("put"))
                {
                    var edited = ObjectIn(store.Text);
                    var kept = Object(Member(edited, "responses"));
                    foreach (var slot in Items(Member(step, "forget"))) kept.Remove((string)slot);
                    foreach (var put in Object(Member(step, "put"))) kept[put.Key] = responses[(string)put.Value];
                    store.Text = Json.Write(edited);
                }
                var keys = Items(file["keys"])
                               .Select(Object)
                               .Where(key => Items(options["built_in"]).Contains(key["kid"]))
                               .ToDictionary(key => (string)key["kid"], key => (string)key["public_key"]);
                var fingerprint = (string)Object(options["binding"])["fingerprint"];
                kit = new LicenseKit(new KitOptions("https://licenses.example.com", (string)options["product_code"],
                    keys, Binding.Hardware(fingerprint), store) {
                    Tolerance = TimeSpan.FromHours((long)options["tolerance_hours"]),
                    TrustPublishedKeys = (bool)options["trust_published_keys"], Now = () => now, Send = Respond,
                    RandomBytes = count => count == 1 ? new[] { random } : new byte[count]
                });
            }

            private Outcome Operate(string operation, Dictionary<string, object> with)
            {
                Func<string, string> text = name => Member(with, name) as string;
                var key = text("license_key");
                switch (operation)
                {
                case "open":
                case "look": return null;
                case "wake": kit.WakeAsync().GetAwaiter().GetResult(); return null;
                case "activate": return Done(kit.ActivateAsync(key));
                case "checkout":
                    return Done(kit.CheckoutAsync(
                        key, text("until") == null ? (DateTimeOffset?)null : InstantOf(text("until"))));
                case "validate": return Done(kit.ValidateAsync());
                case "check": return Done(kit.CheckAsync());
                case "consume":
                    return Done(
                        kit.ConsumeAsync(text("feature_code"), (long?)Member(with, "amount"), text("event_id")));
                case "reverse": return Done(kit.ReverseAsync(text("feature_code"), text("event_id")));
                case "issue_offline": return Done(kit.IssueOfflineAsync());
                case "open_offline":
                    return Done(kit.OpenOfflineAsync(
                        Member(responses, text("file") ?? "") as string ?? "", key));
                case "start_trial": return Done(kit.StartTrialAsync(text("policy_code")));
                case "list_devices": return Done(kit.ListDevicesAsync(key));
                case "deactivate_device": return Done(kit.DeactivateDeviceAsync(text("device_id"), key));
                case "deactivate": return Done(kit.DeactivateAsync());
                case "checkin": return Done(kit.CheckinAsync());
                default: throw new ArgumentException(operation);
                }
            }

            private Task<Reply> Respond(
                string url, IReadOnlyDictionary<string, string> headers, string body, TimeSpan timeout)
            {
                var path = url.Split('?')[0].Substring(url.IndexOf("/api/v1/", StringComparison.Ordinal) + 8);
                var words = path.StartsWith("license/", StringComparison.Ordinal) ? path.Substring(8) : path;
                var sent = ObjectIn(body ?? "{}");
                foreach (var name in new[] { "event_id", "until", "policy_code" })
                    if (sent.ContainsKey(name)) words += " " + sent[name];
                asked.Add(words);
                var next = given.Count == 0 ? new Dictionary<string, object> { { "fails", "refused" } }
                                            : Object(given.Dequeue());
                if (next.ContainsKey("fails")) return Task.FromResult(new Reply((string)next["fails"]));
                var text = Encoding.UTF8.GetBytes((string)responses[(string)next["response"]]);
                var status = (int)((long?)Member(next, "status") ?? 200);
                return Task.FromResult(new Reply(status, text, Convert.ToString(Member(next, "retry_after")) ?? ""));
            }

            /// <summary>The stored text with the names of the responses in place of their texts.</summary>
            private Dictionary<string, object> Summary(string text)
            {
                Dictionary<string, object> found;
                try
                {
                    found = ObjectIn(text);
                }
                catch (FormatException)
                {
                    return new Dictionary<string, object> { { "malformed", true } };
                }
                var kids = Items(Member(found, "published_keys")).Select(key => (string)Object(key)["kid"]).ToList();
                kids.Sort(StringComparer.Ordinal);
                found.Remove("published_keys");
                if (kids.Count > 0) found["published_keys"] = kids.ToList<object>();
                found["responses"] = Object(Member(found, "responses"))
                                         .ToDictionary(kept => kept.Key, kept => (object)NameOf(kept.Value));
                return found;
            }

            private string NameOf(object response) =>
                responses.FirstOrDefault(one => one.Value.Equals(response)).Key ?? "unknown";
        }

        private static Outcome Done(Task<Outcome> asked) => asked.GetAwaiter().GetResult();

        private static int Vectors(string folder)
        {
            var file = ObjectIn(File.ReadAllText(Path.Combine(folder, "decisions.json")));
            foreach (var scenario in Items(file["scenarios"]).Select(Object))
            {
                var machine = new Machine(file, scenario);
                var number = 0;
                foreach (var step in Items(scenario["steps"]).Select(Object))
                {
                    var title = "decisions: " + scenario["name"] + ", step " + ++number;
                    Report(title, machine.Take(step), step["expected"], "as expected");
                }
            }
            foreach (var one in Items(ObjectIn(File.ReadAllText(Path.Combine(folder, "license-keys.json")))["valid"]))
            {
                var input = (string)Object(one)["input"];
                var key = LicenseKit.LicenseKeyOf(input);
                Report("license-keys: " + input, key, Object(one)["canonical"], key);
            }
            var all = differences + Check.Vectors(folder);
            Console.WriteLine(all + " differences");
            return all == 0 ? 0 : 1;
        }

        private static void Say(string title, Outcome outcome)
        {
            var granted = outcome.Granted ? "granted" : "not granted";
            var problem = outcome.Problem == null ? "" : ", " + outcome.Problem;
            Console.WriteLine(title + ": " + granted + ", " + Lower(outcome.Decision) + " " + outcome.Reason + problem);
        }

        private static void Say(string title, Verdict verdict, string more = "") =>
            Console.WriteLine(title + ": " + Lower(verdict.Decision) + " " + verdict.Reason + more);

        /// <summary>A life of an application at a running service, and with servers that are none.</summary>
        private static async Task LiveAsync(string[] arguments)
        {
            string url = arguments[1], hostile = arguments[2], licenseKey = arguments[3], product = arguments[4];
            var keys = new Dictionary<string, string> { { arguments[6], arguments[7] } };
            var store = new FileStore(arguments[8]);
            var binding = Binding.Hardware(arguments[5]);
            Func<string, IStore, KitOptions> options = (at, kept) => new KitOptions(at, product, keys, binding, kept);
            var kit = new LicenseKit(options(url, store));
            Say("activate", await kit.ActivateAsync(licenseKey.ToLowerInvariant()));
            Say("validate", await kit.ValidateAsync());
            var eventId = arguments[5] + " 1";
            Say("consume", await kit.ConsumeAsync("export", 2, eventId));
            Say("consume again", await kit.ConsumeAsync("export", 2, eventId));
            Console.WriteLine("remaining: " + kit.Feature("export")["remaining"]);
            Say("consume too much", await kit.ConsumeAsync("export", 1000, "too much"));
            Say("offline", await kit.IssueOfflineAsync());
            Say("restart", new LicenseKit(options(hostile + "/none", store)).Verdict);
            var other = new Dictionary<string, string> { { arguments[6], "-----BEGIN " + arguments[7] } };
            try
            {
                new LicenseKit(new KitOptions(url, product, other, binding, store));
                Console.WriteLine("a key in another form: opened");
            }
            catch (ArgumentException)
            {
                Console.WriteLine("a key in another form: not opened");
            }
            foreach (var name in new[] { "redirect", "large", "page", "slow", "closed" })
            {
                var given = options(hostile + "/" + name, new MemoryStore { Text = store.Read() });
                if (name == "slow") given.Timeout = TimeSpan.FromMilliseconds(500);
                using (var misled = new LicenseKit(given)) Say(name, await misled.ValidateAsync());
            }
            foreach (var name in new[] { "redirect", "closed" })
            {
                try
                {
                    await new Client(hostile + "/" + name, licenseKey, product, keys, binding).ValidateAsync();
                }
                catch (Exception none) when (none is DistrustedException || none is HttpRequestException)
                {
                    // As it should be.
                }
            }
            Say("devices", await kit.ListDevicesAsync(limit: 10));
            Say("other device", await kit.DeactivateDeviceAsync("none/of these"));
            Say("deactivate", await kit.DeactivateAsync());
            Say("checkout", await kit.CheckoutAsync());
            kit.Start();
            // After a start with a seat, a heartbeat is due at once.
            var last = new LicenseKit(options(url, store));
            last.Start();
            await Task.WhenAll(Enumerable.Range(0, 4).Select(_ => Task.Run(async () =>
            {
                for (var time = 0; time < 3; time++)
                {
                    await last.CheckAsync();
                    Console.Write(last.Features.Count == 0 ? "No features. " : "");
                }
            })));
            last.Stop();
            kit.Dispose();
            Say("threads", last.Verdict, ", " + last.Feature("export")["remaining"]);
            Say("checkin", await last.CheckinAsync());
            last.Dispose();
            var tried = new LicenseKit(options(url, new MemoryStore()));
            Say("trial", await tried.StartTrialAsync("trial"));
            Say("trial again", await new LicenseKit(options(url, new MemoryStore())).StartTrialAsync("trial"));
            var devices = (await tried.ListDevicesAsync()).Data["devices"];
            Console.WriteLine("devices: " + ((List<object>)devices).Count);
        }

        private static int Main(string[] arguments)
        {
            Console.OutputEncoding = new UTF8Encoding(false);
            if (arguments.Length == 2 && arguments[0] == "vectors") return Vectors(arguments[1]);
            if (arguments.Length != 9 || arguments[0] != "live") return Check.Main(arguments);
            LiveAsync(arguments).GetAwaiter().GetResult();
            return 0;
        }
    }
}
