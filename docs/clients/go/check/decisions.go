package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"licensing"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	ProductCode string `json:"product_code"`
	Binding     struct{ Fingerprint string }
	Tolerance   float64  `json:"tolerance_hours"`
	BuiltIn     []string `json:"built_in"`
	Trust       bool     `json:"trust_published_keys"`
}

type given struct {
	Response, Fails string
	Status          int
	RetryAfter      int `json:"retry_after"`
}

type step struct {
	At       time.Time
	Do       string
	With     map[string]any
	Given    []given
	Store    *string
	Forget   []string
	Put      map[string]string
	Options  json.RawMessage
	Expected map[string]any
}

type decisions struct {
	Keys []struct {
		Kid       string
		PublicKey string `json:"public_key"`
	}
	Options   options
	Responses map[string]string
	Scenarios []struct {
		Name    string
		Random  byte
		Options json.RawMessage
		Steps   []step
	}
}

// machine has the clock, the network, the store and the randomness that a scenario gives.
type machine struct {
	file    *decisions
	options options
	random  byte
	now     time.Time
	given   []given
	asked   []any
	stored  *string
	kit     *licensing.Kit
}

func (m *machine) Read(into []byte) (int, error) {
	clear(into)
	if len(into) == 1 {
		into[0] = m.random
	}
	return len(into), nil
}

func (m *machine) RoundTrip(request *http.Request) (*http.Response, error) {
	_, path, _ := strings.Cut(request.URL.EscapedPath(), "/api/v1/")
	words := []string{strings.TrimPrefix(path, "license/")}
	sent := map[string]any{}
	_ = json.NewDecoder(request.Body).Decode(&sent)
	for _, name := range []string{"event_id", "until", "policy_code"} {
		if value, has := sent[name].(string); has {
			words = append(words, value)
		}
	}
	m.asked = append(m.asked, strings.Join(words, " "))
	reply := given{Fails: "refused"}
	if len(m.given) > 0 {
		reply, m.given = m.given[0], m.given[1:]
	}
	switch reply.Fails {
	case "refused":
		return nil, syscall.ECONNREFUSED
	case "timeout":
		return nil, context.DeadlineExceeded
	}
	headers := http.Header{}
	if reply.RetryAfter > 0 {
		headers.Set("Retry-After", strconv.Itoa(reply.RetryAfter))
	}
	body := io.NopCloser(strings.NewReader(m.file.Responses[reply.Response]))
	return &http.Response{StatusCode: max(reply.Status, 200), Header: headers, Body: body}, nil
}

type memory struct{ *machine }

func (m memory) Read() (string, error) {
	if m.stored == nil {
		return "", nil
	}
	return *m.stored, nil
}

func (m memory) Write(text string) error {
	m.stored = &text
	return nil
}

func (m *machine) take(one step) map[string]any {
	m.now, m.given, m.asked = one.At, one.Given, nil
	if one.Do == "open" {
		m.open(one)
	}
	outcome := m.operate(one)
	verdict := m.kit.Verdict()
	found := map[string]any{"decision": string(verdict.Decision), "reason": verdict.Reason}
	if outcome != nil {
		word := "missed"
		if outcome.Granted {
			word = "granted"
		} else if outcome.Refusal != nil {
			word = "refused"
		}
		found["outcome"] = fmt.Sprintf("%s %s %s", word, outcome.Decision, outcome.Reason)
		for name, value := range map[string]string{"broken_rule": outcome.BrokenRule, "problem": outcome.Problem} {
			if value != "" {
				found[name] = value
			}
		}
	}
	if !verdict.EndsAt.IsZero() {
		found["ends_at"] = verdict.EndsAt.Format("2006-01-02T15:04:05.000Z")
	}
	features := []any{}
	for _, feature := range m.kit.Features() {
		words := feature.Code
		if feature.IsUsageUnknown {
			words += " unknown"
		} else if feature.Remaining != nil {
			words += " " + strconv.FormatInt(*feature.Remaining, 10)
		}
		features = append(features, words)
	}
	if len(features) > 0 {
		found["features"] = features
	}
	if len(m.asked) > 0 {
		found["asked"] = m.asked
	}
	if m.stored != nil {
		found["stored"] = m.summary(*m.stored)
	}
	return found
}

func (m *machine) open(one step) {
	if one.Options != nil {
		must(0, json.Unmarshal(one.Options, &m.options))
	}
	if one.Store != nil {
		m.stored = one.Store
	}
	if len(one.Forget)+len(one.Put) > 0 {
		edited := map[string]any{}
		must(0, json.Unmarshal([]byte(*m.stored), &edited))
		responses := edited["responses"].(map[string]any)
		for _, slot := range one.Forget {
			delete(responses, slot)
		}
		for slot, name := range one.Put {
			responses[slot] = m.file.Responses[name]
		}
		text := string(must(json.Marshal(edited)))
		m.stored = &text
	}
	keys := licensing.Keys{}
	for _, key := range m.file.Keys {
		for _, kid := range m.options.BuiltIn {
			if kid == key.Kid {
				keys[kid] = key.PublicKey
			}
		}
	}
	tolerance := time.Duration(m.options.Tolerance * float64(time.Hour))
	if tolerance == 0 {
		tolerance = -1
	}
	m.kit = must(licensing.Open(licensing.Options{
		BaseURL: "https://licenses.example.com", ProductCode: m.options.ProductCode, Keys: keys,
		Binding: licensing.Hardware(m.options.Binding.Fingerprint), Store: memory{m}, Tolerance: tolerance,
		TrustPublishedKeys: m.options.Trust, Transport: m, Now: func() time.Time { return m.now }, Random: m,
	}))
}

func (m *machine) operate(one step) *licensing.Outcome {
	ctx, kit := context.Background(), m.kit
	word := func(name string) string {
		value, _ := one.With[name].(string)
		return value
	}
	var outcome licensing.Outcome
	switch key := word("license_key"); one.Do {
	case "open", "look":
		return nil
	case "wake":
		kit.Wake(ctx)
		return nil
	case "activate":
		outcome = kit.Activate(ctx, key)
	case "checkout":
		until, _ := time.Parse(time.RFC3339, word("until"))
		outcome = kit.Checkout(ctx, key, until)
	case "validate":
		outcome = kit.Validate(ctx)
	case "check":
		outcome = kit.Check(ctx)
	case "consume":
		amount, _ := one.With["amount"].(float64)
		outcome = kit.Consume(ctx, word("feature_code"), int64(amount), word("event_id"))
	case "reverse":
		outcome = kit.Reverse(ctx, word("feature_code"), word("event_id"))
	case "issue_offline":
		outcome = kit.IssueOffline(ctx)
	case "open_offline":
		outcome = kit.OpenOffline(m.file.Responses[word("file")], key)
	case "start_trial":
		outcome = kit.StartTrial(ctx, word("policy_code"))
	case "list_devices":
		outcome = kit.ListDevices(ctx, key, "", 0)
	case "deactivate_device":
		outcome = kit.DeactivateDevice(ctx, word("device_id"), key)
	case "deactivate":
		outcome = kit.Deactivate(ctx)
	case "checkin":
		outcome = kit.Checkin(ctx)
	default:
		panic("no operation " + one.Do)
	}
	return &outcome
}

// summary is the stored text with the names of the responses in place of their texts.
func (m *machine) summary(text string) map[string]any {
	found := map[string]any{}
	if json.Unmarshal([]byte(text), &found) != nil {
		return map[string]any{"malformed": true}
	}
	kids := []any{}
	if published, has := found["published_keys"].([]any); has {
		for _, key := range published {
			kids = append(kids, key.(map[string]any)["kid"])
		}
	}
	slices.SortFunc(kids, func(one, other any) int { return strings.Compare(one.(string), other.(string)) })
	delete(found, "published_keys")
	if len(kids) > 0 {
		found["published_keys"] = kids
	}
	kept := map[string]any{}
	if responses, has := found["responses"].(map[string]any); has {
		for slot, response := range responses {
			kept[slot] = "unknown"
			for name, text := range m.file.Responses {
				if text == response {
					kept[slot] = name
				}
			}
		}
	}
	found["responses"] = kept
	return found
}

func checkDecisions(folder string, report func(file, name, given, wanted string)) {
	var file decisions
	must(0, json.Unmarshal(must(os.ReadFile(filepath.Join(folder, "decisions.json"))), &file))
	for _, scenario := range file.Scenarios {
		m := &machine{file: &file, options: file.Options, random: scenario.Random}
		if scenario.Options != nil {
			must(0, json.Unmarshal(scenario.Options, &m.options))
		}
		for index, one := range scenario.Steps {
			found, wanted := m.take(one), "as expected"
			given := wanted
			if !reflect.DeepEqual(found, one.Expected) {
				given, wanted = string(must(json.Marshal(found))), string(must(json.Marshal(one.Expected)))
			}
			report("decisions", fmt.Sprintf("%s, step %d", scenario.Name, index+1), given, wanted)
		}
	}
	var keys struct {
		Valid []struct{ Input, Canonical string }
	}
	must(0, json.Unmarshal(must(os.ReadFile(filepath.Join(folder, "license-keys.json"))), &keys))
	for _, one := range keys.Valid {
		report("license-keys", one.Input, licensing.LicenseKeyOf(one.Input), one.Canonical)
	}
}

// live is a life of an application at a running service, and with servers that are none.
func live(arguments []string) {
	url, hostile, licenseKey, product := arguments[0], arguments[1], arguments[2], arguments[3]
	fingerprint, kid, publicKey, path := arguments[4], arguments[5], arguments[6], arguments[7]
	ctx := context.Background()
	opened := func(baseURL string, store licensing.Store, timeout time.Duration) *licensing.Kit {
		return must(licensing.Open(licensing.Options{
			BaseURL: baseURL, ProductCode: product, Keys: licensing.Keys{kid: publicKey}, Store: store,
			Binding: licensing.Hardware(fingerprint), Timeout: timeout,
		}))
	}
	say := func(title string, outcome licensing.Outcome) {
		granted, problem := "not granted", ""
		if outcome.Granted {
			granted = "granted"
		}
		if outcome.Problem != "" {
			problem = ", " + outcome.Problem
		}
		fmt.Printf("%s: %s, %s %s%s\n", title, granted, outcome.Decision, outcome.Reason, problem)
	}
	store := licensing.FileStore(path)
	kit := opened(url, store, 0)
	say("activate", kit.Activate(ctx, strings.ToLower(licenseKey)))
	say("validate", kit.Validate(ctx))
	used := kit.Consume(ctx, "export", 2, "")
	say("consume", used)
	say("consume again", kit.Consume(ctx, "export", 2, used.EventID))
	feature, _ := kit.Feature("export")
	fmt.Printf("remaining: %d\n", *feature.Remaining)
	say("consume too much", kit.Consume(ctx, "export", 1000, ""))
	say("offline", kit.IssueOffline(ctx))
	again := opened(hostile+"/none", store, 0).Verdict()
	fmt.Printf("restart: %s %s\n", again.Decision, again.Reason)
	_, err := licensing.Open(licensing.Options{
		BaseURL: url, ProductCode: product, Keys: licensing.Keys{kid: "-----BEGIN " + publicKey},
		Binding: licensing.Hardware(fingerprint), Store: store,
	})
	fmt.Println(map[bool]string{true: "a key in another form: opened", false: "a key in another form: not opened"}[err == nil])
	copied := memory{&machine{stored: new(string)}}
	for _, name := range []string{"redirect", "large", "page", "slow", "closed"} {
		*copied.stored = must(store.Read())
		var timeout time.Duration
		if name == "slow" {
			timeout = time.Second / 2
		}
		say(name, opened(hostile+"/"+name, copied, timeout).Validate(ctx))
	}
	say("devices", kit.ListDevices(ctx, "", "", 10))
	say("other device", kit.DeactivateDevice(ctx, "none/of these", ""))
	say("deactivate", kit.Deactivate(ctx))
	say("checkout", kit.Checkout(ctx, "", time.Time{}))
	kit.Start()
	last := opened(url, store, 0)
	// After a start with a seat, a heartbeat is due at once.
	last.Start()
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 3 {
				last.Check(ctx)
				last.Features()
			}
		}()
	}
	group.Wait()
	last.Shutdown()
	kit.Shutdown()
	feature, _ = last.Feature("export")
	fmt.Printf("threads: %s, %d\n", last.Verdict(), *feature.Remaining)
	say("checkin", last.Checkin(ctx))
	checkWaiting(licensing.Options{
		BaseURL: url, ProductCode: product, Keys: licensing.Keys{kid: publicKey}, Store: memory{&machine{}},
		Binding: licensing.Hardware(fingerprint),
	})
	tried := opened(url, memory{&machine{}}, 0)
	say("trial", tried.StartTrial(ctx, "trial"))
	say("trial again", opened(url, memory{&machine{}}, 0).StartTrial(ctx, "trial"))
	fmt.Printf("devices: %d\n", len(tried.ListDevices(ctx, "", "", 0).Data["devices"].([]any)))
}

type held struct{ asked, answered chan struct{} }

func (h held) RoundTrip(*http.Request) (*http.Response, error) {
	close(h.asked)
	<-h.answered
	return nil, io.ErrUnexpectedEOF
}

// checkWaiting panics if an operation whose context has ended waits for another goroutine's request.
func checkWaiting(options licensing.Options) {
	request := held{make(chan struct{}), make(chan struct{})}
	options.Transport = request
	kit := must(licensing.Open(options))
	go kit.Activate(context.Background(), "a license key")
	<-request.asked
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if outcome := kit.Activate(ended, "a license key"); outcome.Granted || outcome.Problem != "network" {
		panic(outcome.Problem)
	}
	close(request.answered)
}
