package licensing

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	hourMillis = 3_600_000.0
	skewMillis = 300_000.0
	// instantMax is the end of the year 9999, which is the last one of a payload.
	instantMax     = 253_402_300_799_999.0
	storedBytesMax = 1 << 24
)

// Decision is what the application should do.
type Decision string

// Run: continue. Warn: continue, and tell the user. Ask: the user has to act first. Stop: end the licensed use.
const (
	Run  Decision = "run"
	Warn Decision = "warn"
	Ask  Decision = "ask"
	Stop Decision = "stop"
)

var severities = map[Decision]int{Run: 0, Warn: 1, Ask: 2, Stop: 3}

func (d Decision) isStricter(other Decision) bool { return severities[d] > severities[other] }

// rule is what a refusal ends: the license, the activation, the seat, or only the request. What is again is taken again
// once.
type rule struct {
	decision Decision
	reach    string
	again    bool
}

var rules = map[string]rule{
	"LICENSE_REVOKED":          {Stop, "license", false},
	"LICENSE_SUSPENDED":        {Stop, "license", false},
	"LICENSE_EXPIRED":          {Ask, "license", false},
	"LICENSE_NOT_STARTED":      {Ask, "license", false},
	"PRODUCT_MISMATCH":         {Ask, "license", false},
	"DEVICE_BLACKLISTED":       {Stop, "license", false},
	"VM_NOT_ALLOWED":           {Stop, "license", false},
	"CONTAINER_NOT_ALLOWED":    {Stop, "license", false},
	"VERSION_UNKNOWN":          {Ask, "license", false},
	"VERSION_NOT_ENTITLED":     {Ask, "license", false},
	"DEVICE_NOT_FOUND":         {Stop, "activation", true},
	"DEVICE_NOT_ACTIVE":        {Stop, "activation", true},
	"HEARTBEAT_OVERDUE":        {Stop, "activation", true},
	"ACTIVATION_LIMIT_REACHED": {Ask, "activation", false},
	"CONTAINER_LIMIT_REACHED":  {Ask, "activation", false},
	"FLOATING_LIMIT_REACHED":   {Ask, "seat", false},
	"FLOATING_NOT_ENABLED":     {Ask, "seat", false},
	"LEASE_EXPIRED":            {Stop, "seat", true},
	"LEASE_NOT_ACTIVE":         {Stop, "seat", true},
	"LEASE_NOT_FOUND":          {Stop, "seat", true},
	"DEVICE_STATE_CONFLICT":    {Run, "request", false},
}

// ruleOf: a code that is not in the table, as FEATURE_DISABLED or one of a later service, ends nothing.
func ruleOf(code string) rule {
	if found, known := rules[code]; known {
		return found
	}
	return rule{Warn, "request", false}
}

// Verdict is what the application should do now, and why.
type Verdict struct {
	Decision Decision
	Reason   string
	// Refusal is the signed refusal that decides, with what explains it.
	Refusal map[string]any
	// EndsAt is until when the application may run if no further response comes; zero if it must not run.
	EndsAt time.Time
}

// MayRun reports whether the application may continue.
func (v Verdict) MayRun() bool { return v.Decision == Run || v.Decision == Warn }

// Outcome is what an operation came to. Decision and Reason hold for the application after it.
type Outcome struct {
	Verdict
	Granted bool
	// Data is the signed payload.
	Data map[string]any
	// BrokenRule is the rule of VERIFYING.md that the response broke, if one came that was not believed.
	BrokenRule string
	// Problem is why no believed response came: dns, refused, tls, timeout, response or network.
	Problem string
	// Status is the HTTP status of a response that was not believed.
	Status int
	// EventID is that of a consumption: use it again to repeat the same one.
	EventID string
}

// Feature is a feature as the newest believed response says.
type Feature struct {
	Code         string
	Enabled      bool
	Quota        *int64
	Consumed     *int64
	Remaining    *int64
	ExtraCredits *int64 `json:"extra_credits"`
	Overage      *int64
	ResetsAt     string `json:"resets_at"`
	ExpiresAt    string `json:"expires_at"`
	// IsUsageUnknown is set if a new period of the quota has begun since the response.
	IsUsageUnknown bool `json:"-"`
}

// Store keeps one text for the application. It has the license key: keep it where only the user can read it.
type Store interface {
	// Read returns what was written, or "".
	Read() (string, error)
	Write(text string) error
}

// FileStore keeps the text in the file of this path.
type FileStore string

// Read returns "" if there is no file.
func (path FileStore) Read() (string, error) {
	text, err := os.ReadFile(string(path))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// Write replaces the file at once. It writes a file of its own before, because other processes of the application may be
// writing.
func (path FileStore) Write(text string) error {
	folder, name := filepath.Split(string(path))
	file, err := os.CreateTemp(cmp.Or(folder, "."), name+".*.new")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), string(path))
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

// Options are what the application gives the kit. The first five are required.
type Options struct {
	BaseURL, ProductCode string
	Keys                 Keys
	Binding              Binding
	Store                Store
	AppVersion           string
	// Tolerance is how long the application may go on after next_check_at without the service: 72 hours if 0, none if
	// negative.
	Tolerance time.Duration
	// Timeout is how long a request may take: 15 seconds if 0.
	Timeout time.Duration
	// TrustPublishedKeys also trusts keys that the service publishes later, over TLS.
	TrustPublishedKeys bool
	// OnVerdict is called when the decision or its reason changes. It may use the kit.
	OnVerdict func(Verdict)
	// Transport, Now and Random replace network, clock and randomness.
	Transport http.RoundTripper
	Now       func() time.Time
	Random    io.Reader
}

type identity struct{ licenseKey, licenseID, productID string }

type kept struct {
	text    string
	content map[string]any
}

// Kit is one machine's use of one license: it asks, believes or not, stores what is believed, and decides. It may be used
// by several goroutines: requests are sent one after another, and Verdict and Features never wait for one. Use one kit for
// each machine and license.
type Kit struct {
	options Options
	client  *http.Client
	// asking is full during an operation, state is held while what follows is read or changed.
	asking        chan struct{}
	state         sync.Mutex
	who           *identity
	holding       string
	highest, due  float64
	plannedAt     float64
	wakeAt        float64
	published     Keys
	missed        string
	isClockAhead  bool
	isStoreFailed bool
	used          map[string]any
	responses     map[string]kept
	failures      int
	keysFetchedAt float64
	told          string
	cancel        context.CancelFunc
	planned       chan struct{}
}

var (
	keyForm     = regexp.MustCompile(`^[A-Za-z0-9+/]{43}=$`)
	baseURLForm = regexp.MustCompile(`^https?://[^/?#@\s]+(/[^?#\s]*)?$`)
	apiPath     = regexp.MustCompile(`/api(/v\d+)?/*$`)
	safeURL     = regexp.MustCompile(`^(https:|http://(localhost|127\.0\.0\.1|\[::1\])([:/]|$))`)
)

func allMatch(form *regexp.Regexp, keys Keys) bool {
	for _, key := range keys {
		if !form.MatchString(key) {
			return false
		}
	}
	return true
}

// Open reads the store, and believes of it what keeps the rules. It sends nothing. An error says which option is wrong.
func Open(options Options) (*Kit, error) {
	switch {
	case !baseURLForm.MatchString(options.BaseURL) || apiPath.MatchString(options.BaseURL):
		return nil, errors.New("licensing: BaseURL is the service's address, as https://licenses.example.com, before /api/v1")
	case len(options.Keys) == 0 && !options.TrustPublishedKeys:
		return nil, errors.New("licensing: Keys needs the keys of GET /api/v1/system/public-keys")
	case !allMatch(keyForm, options.Keys):
		return nil, errors.New("licensing: Keys has for each kid its public_key of GET /api/v1/system/public-keys: 32 bytes as base64")
	case options.Binding.Key == "" || options.Store == nil || options.ProductCode == "":
		return nil, errors.New("licensing: ProductCode, Binding and Store are required")
	}
	options.BaseURL = strings.TrimRight(options.BaseURL, "/")
	if options.Timeout == 0 {
		options.Timeout = 15 * time.Second
	}
	if options.Tolerance == 0 {
		options.Tolerance = 72 * time.Hour
	}
	options.Tolerance = max(options.Tolerance, 0)
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	kit := &Kit{
		options: options,
		client: &http.Client{
			Transport: options.Transport,
			Timeout:   options.Timeout,
			// A redirect must not carry the license key to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		keysFetchedAt: math.Inf(-1),
		wakeAt:        math.Inf(1),
		asking:        make(chan struct{}, 1),
		planned:       make(chan struct{}, 1),
	}
	kit.load()
	kit.told = kit.verdict().String()
	return kit, nil
}

// String is the decision and the reason.
func (v Verdict) String() string { return string(v.Decision) + " " + v.Reason }

// Verdict is what the application should do now.
func (k *Kit) Verdict() Verdict {
	k.state.Lock()
	defer k.state.Unlock()
	return k.verdict()
}

// Holding is device, seat or "".
func (k *Kit) Holding() string {
	k.state.Lock()
	defer k.state.Unlock()
	return k.holding
}

// License is what the newest believed response says of the license, for an About box; nil if there is none.
func (k *Kit) License() map[string]any {
	k.state.Lock()
	defer k.state.Unlock()
	return maps.Clone(k.grant())
}

// Features are those that the application may use now: none if it must not run.
func (k *Kit) Features() []Feature {
	k.state.Lock()
	defer k.state.Unlock()
	if !k.verdict().MayRun() {
		return nil
	}
	listed, has := k.grant()["features"]
	if !has {
		listed = k.content("checkout")["features"]
	}
	encoded, _ := json.Marshal(listed)
	var all, current []Feature
	if json.Unmarshal(encoded, &all) != nil {
		return nil
	}
	now := k.now()
	for _, feature := range all {
		if now >= millisOf(feature.ExpiresAt) {
			continue
		}
		if now >= millisOf(feature.ResetsAt) {
			feature.Consumed, feature.Remaining, feature.Overage, feature.IsUsageUnknown = nil, nil, nil, true
		}
		current = append(current, feature)
	}
	return current
}

// Feature is one of Features.
func (k *Kit) Feature(code string) (Feature, bool) {
	for _, feature := range k.Features() {
		if feature.Code == code {
			return feature, true
		}
	}
	return Feature{}, false
}

// Activate activates this machine with the license key, or with "" again with the stored one.
func (k *Kit) Activate(ctx context.Context, licenseKey string) Outcome {
	return k.alone(ctx, func() Outcome { return k.enter(ctx, "activate", "device", licenseKey, nil) })
}

// StartTrial starts this machine's one trial of the product under this policy, without a license key. It is refused with
// TRIAL_ALREADY_USED or TRIAL_NOT_ALLOWED.
func (k *Kit) StartTrial(ctx context.Context, policyCode string) Outcome {
	return k.alone(ctx, func() Outcome {
		got := k.send(ctx, question{
			path: "trial", kind: "entitlement", binding: &k.options.Binding,
			fields: map[string]any{"policy_code": policyCode, "binding": k.machine()},
		}, identity{})
		key := ""
		if got.granted() {
			key = got.answer.Text("license_key")
		}
		return k.enterWith("activate", "device", key, got)
	})
}

// Checkout takes a floating seat, or borrows it until a time that is not zero.
func (k *Kit) Checkout(ctx context.Context, licenseKey string, until time.Time) Outcome {
	more := map[string]any{}
	if !until.IsZero() {
		more["until"] = isoOf(float64(until.UnixMilli()))
	}
	return k.alone(ctx, func() Outcome { return k.enter(ctx, "floating/checkout", "seat", licenseKey, more) })
}

// Validate asks whether the application may go on. It is the heartbeat of an activation.
func (k *Kit) Validate(ctx context.Context) Outcome {
	return k.alone(ctx, func() Outcome { return k.use(ctx, "validate", nil) })
}

// Check asks the same, and writes nothing at the service.
func (k *Kit) Check(ctx context.Context) Outcome {
	return k.alone(ctx, func() Outcome { return k.use(ctx, "check", nil) })
}

// Consume counts use: one if amount is 0. Unless it is granted nothing is known to be counted: repeat it with the
// outcome's EventID. With "" it makes a new one.
func (k *Kit) Consume(ctx context.Context, featureCode string, amount int64, eventID string) Outcome {
	if eventID == "" {
		eventID = fmt.Sprintf("%x", k.random(16))
	}
	more := map[string]any{"feature_code": featureCode, "event_id": eventID}
	if amount != 0 {
		more["amount"] = amount
	}
	return k.counted(ctx, eventID, more)
}

// Reverse takes a whole consumption back. A repetition takes back nothing more.
func (k *Kit) Reverse(ctx context.Context, featureCode, eventID string) Outcome {
	own := eventID + ":reversed"
	return k.counted(ctx, own, map[string]any{"feature_code": featureCode, "reverses": eventID, "event_id": own})
}

func (k *Kit) counted(ctx context.Context, eventID string, more map[string]any) Outcome {
	outcome := k.alone(ctx, func() Outcome { return k.use(ctx, "consume", more) })
	outcome.EventID = eventID
	return outcome
}

// IssueOffline gets an offline envelope for this machine, and uses it from now on.
func (k *Kit) IssueOffline(ctx context.Context) Outcome {
	return k.alone(ctx, func() Outcome { return k.use(ctx, "offline", nil) })
}

// OfflineRequest is the request of a machine without a network, as a text for a file or a QR code.
func (k *Kit) OfflineRequest() string {
	binding := k.options.Binding
	binding.Request = k.machine()
	return OfflineRequest(binding, k.options.ProductCode)
}

// OpenOffline uses an offline envelope that was brought to this machine: alone, or in the whole response.
func (k *Kit) OpenOffline(envelope, licenseKey string) Outcome {
	return k.alone(context.Background(), func() Outcome { return k.open(envelope, licenseKey) })
}

// ListDevices lists the license's devices in the outcome's Data, the newest first: with "" with the stored license key,
// after the next_cursor of the page before unless it is "", and at most limit unless it is 0. It needs no activation, and
// changes nothing.
func (k *Kit) ListDevices(ctx context.Context, licenseKey, cursor string, limit int) Outcome {
	page := map[string]any{}
	if cursor != "" {
		page["cursor"] = cursor
	}
	if limit != 0 {
		page["limit"] = limit
	}
	return k.askAside(ctx, licenseKey, question{path: "devices", kind: "devices", fields: page, isRead: true})
}

// DeactivateDevice deactivates another device of the license, which was lost: its slot becomes free.
func (k *Kit) DeactivateDevice(ctx context.Context, deviceID, licenseKey string) Outcome {
	path := "devices/" + url.PathEscape(deviceID) + "/deactivate"
	return k.askAside(ctx, licenseKey, question{path: path, kind: "deactivation", deviceID: deviceID})
}

// Deactivate gives the activation back.
func (k *Kit) Deactivate(ctx context.Context) Outcome {
	return k.alone(ctx, func() Outcome { return k.giveBack(ctx, "deactivate", nil) })
}

// Checkin gives the seat back.
func (k *Kit) Checkin(ctx context.Context) Outcome {
	return k.alone(ctx, func() Outcome {
		return k.giveBack(ctx, "floating/checkin", map[string]any{"lease_token": k.leaseToken()})
	})
}

// Start begins to validate at next_check_at and to send the seat's heartbeats, until Shutdown.
func (k *Kit) Start() {
	k.state.Lock()
	defer k.state.Unlock()
	if k.cancel == nil {
		var ctx context.Context
		ctx, k.cancel = context.WithCancel(context.Background())
		go k.run(ctx)
	}
}

// Shutdown ends what Start began. It gives nothing back.
func (k *Kit) Shutdown() {
	k.state.Lock()
	defer k.state.Unlock()
	if k.cancel != nil {
		k.cancel()
		k.cancel = nil
	}
}

func (k *Kit) run(ctx context.Context) {
	for {
		k.keep(ctx, false)
		k.state.Lock()
		wait := time.Duration(max(min(k.due-k.now(), 60_000), 1_000)) * time.Millisecond
		k.state.Unlock()
		// Timers stand still while a machine sleeps: the clock is read again at least each minute.
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-k.planned:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Wake does at once what is due, and a retry that waits: after the machine slept, or when it is online again.
func (k *Kit) Wake(ctx context.Context) {
	k.keep(ctx, true)
}

func (k *Kit) keep(ctx context.Context, isWoken bool) {
	k.alone(ctx, func() Outcome {
		k.state.Lock()
		now := k.now()
		// A clock that was set back was ahead when the request was planned.
		isDue := now >= k.due || now < k.plannedAt || isWoken && now >= k.wakeAt
		isDue, holding := isDue && k.holding != "", k.holding
		_, isRefused := k.responses["refusal"]
		k.state.Unlock()
		switch token := k.leaseToken(); {
		case !isDue:
			return Outcome{}
		case holding == "device":
			return k.use(ctx, "validate", nil)
		// A heartbeat is granted without a check of the version and the machine, so it lifts no refusal.
		case token == nil || isRefused:
			return k.enter(ctx, "floating/checkout", "seat", "", nil)
		default:
			return k.use(ctx, "floating/heartbeat", map[string]any{"lease_token": token})
		}
	})
}

// ---- Asking, one request after another ----

func (k *Kit) alone(ctx context.Context, ask func() Outcome) Outcome {
	outcome := func() Outcome {
		select {
		case k.asking <- struct{}{}:
			defer func() { <-k.asking }()
			return ask()
		case <-ctx.Done():
			return k.outcomeOf(believed{reason: "NOT_REACHED", problem: problemOf(ctx.Err())})
		}
	}()
	// Outside of the locks: the application may use the kit in its callback.
	k.state.Lock()
	verdict := k.verdict()
	isNew := verdict.String() != k.told
	k.told = verdict.String()
	k.state.Unlock()
	if isNew && k.options.OnVerdict != nil {
		k.options.OnVerdict(verdict)
	}
	return outcome
}

// believed is a believed response, or why there is none.
type believed struct {
	answer                *Answer
	text                  string
	reason, rule, problem string
	status                int
	retryAfter            float64
}

func (b believed) granted() bool { return b.answer != nil && b.answer.Member == "data" }
func (b believed) refused() bool { return b.answer != nil && b.answer.Member == "error" }

func (b believed) code() string {
	if b.refused() {
		return b.answer.Text("code")
	}
	return ""
}

func (b believed) why() string {
	if b.answer == nil {
		return b.reason
	}
	return b.code()
}

func (k *Kit) enter(ctx context.Context, operation, holding, licenseKey string, more map[string]any) Outcome {
	who := k.identityOf(licenseKey)
	if who == nil {
		return k.outcomeOf(believed{reason: "NOT_ACTIVATED"})
	}
	got := k.ask(ctx, operation, more, *who)
	if known := k.identityOf(""); known == nil || known.licenseKey != who.licenseKey {
		return k.enterWith(operation, holding, who.licenseKey, got)
	}
	if !got.granted() {
		holding = ""
	}
	return k.settle(operation, got, holding)
}

// enterWith is for another license than before: until it is granted the one before stays.
func (k *Kit) enterWith(operation, holding, licenseKey string, got believed) Outcome {
	k.state.Lock()
	if got.granted() {
		k.begin(licenseKey)
	} else if k.holding == "" {
		k.missed = got.why()
	}
	if got.refused() {
		k.save()
	}
	k.state.Unlock()
	if !got.granted() {
		return k.outcomeOf(got)
	}
	return k.settle(operation, got, holding)
}

// askAside sends a request about the license's other devices. Its refusal is not about this one, so it only warns.
func (k *Kit) askAside(ctx context.Context, licenseKey string, asked question) Outcome {
	return k.alone(ctx, func() Outcome {
		who := k.identityOf(licenseKey)
		if who == nil {
			return k.outcomeOf(believed{reason: "NOT_ACTIVATED"})
		}
		got := k.send(ctx, asked, *who)
		k.state.Lock()
		defer k.state.Unlock()
		if got.answer != nil {
			k.save()
		}
		return k.outcomeWith(got, Warn)
	})
}

// use sends a request of what is held. What the service has forgotten is taken again, once.
func (k *Kit) use(ctx context.Context, operation string, more map[string]any) Outcome {
	who, holding := k.identityOf(""), k.Holding()
	if holding == "" || who == nil {
		return k.outcomeOf(believed{reason: "NOT_ACTIVATED"})
	}
	got := k.ask(ctx, operation, more, *who)
	if !got.refused() || !ruleOf(got.code()).again {
		return k.settle(operation, got, "")
	}
	if operation == "offline" && holding == "seat" {
		// Only an activation gets an envelope: its refusal is not about the seat.
		k.settle(operation, got, "")
		k.state.Lock()
		defer k.state.Unlock()
		return k.outcomeWith(got, Warn)
	}
	regaining := "activate"
	if holding == "seat" {
		regaining = "floating/checkout"
	}
	regained := k.ask(ctx, regaining, nil, *who)
	outcome := k.settle(regaining, regained, "")
	if !regained.granted() || operation != "consume" && operation != "offline" {
		return outcome
	}
	return k.settle(operation, k.ask(ctx, operation, more, *k.identityOf("")), "")
}

func (k *Kit) open(envelope, licenseKey string) Outcome {
	who := k.identityOf(licenseKey)
	if who == nil {
		return k.outcomeOf(believed{reason: "NOT_ACTIVATED"})
	}
	expected := k.expected("offline", *who, "", &k.options.Binding)
	got := k.believing(context.Background(), nil, false, func() (*Answer, string, error) {
		return k.opened(envelopeIn(envelope), who.licenseKey, expected)
	})
	k.state.Lock()
	if got.granted() {
		if k.who == nil || k.who.licenseKey != who.licenseKey {
			k.begin(who.licenseKey)
		}
		k.grantFromFile(got)
		k.save()
	}
	k.state.Unlock()
	return k.outcomeOf(got)
}

func (k *Kit) giveBack(ctx context.Context, operation string, more map[string]any) Outcome {
	who := k.identityOf("")
	if who == nil {
		return k.outcomeOf(believed{reason: "NOT_ACTIVATED"})
	}
	// A seat that was lost has no token: nothing is left to give back.
	isGone := operation == "floating/checkin" && more["lease_token"] == nil
	var got believed
	if !isGone {
		got = k.ask(ctx, operation, more, *who)
	}
	isNothing := isGone || got.code() == "DEVICE_STATE_CONFLICT" || got.code() == "DEVICE_NOT_FOUND" ||
		strings.HasPrefix(got.code(), "LEASE_")
	k.state.Lock()
	defer k.state.Unlock()
	given := "seat"
	if operation == "deactivate" {
		given = "device"
	}
	if got.granted() || isNothing {
		k.release(given)
	} else if got.refused() {
		k.plan(operation, got)
		k.refuse(got)
	}
	k.save()
	if !got.granted() && !isNothing {
		return k.outcome(got)
	}
	outcome := Outcome{Verdict: k.verdict(), Granted: true}
	if got.granted() {
		outcome.Data = got.answer.Content
	}
	return outcome
}

var kinds = map[string]string{
	"activate": "entitlement", "validate": "entitlement", "check": "entitlement", "consume": "entitlement",
	"deactivate": "deactivation", "offline": "offline", "floating/checkout": "floating_checkout",
	"floating/heartbeat": "floating_lease", "floating/checkin": "floating_lease",
}

// machine is what requests say of this machine.
func (k *Kit) machine() map[string]any {
	request := maps.Clone(k.options.Binding.Request)
	if k.options.AppVersion != "" {
		request["app_version"] = k.options.AppVersion
	}
	return request
}

// question is what is asked, and what its answer must be.
type question struct {
	path, kind string
	fields     map[string]any
	// binding is nil where the answer has none, or that of another device.
	binding  *Binding
	deviceID string
	// isRead is set for a GET, which has the fields in its query.
	isRead bool
}

func (k *Kit) ask(ctx context.Context, operation string, more map[string]any, who identity) believed {
	fields := map[string]any{}
	if operation != "floating/heartbeat" && operation != "floating/checkin" {
		fields = k.machine()
	}
	maps.Copy(fields, more)
	asked := question{path: operation, kind: kinds[operation], fields: fields, binding: &k.options.Binding}
	return k.send(ctx, asked, who)
}

// sendableKey: no header and no license has another one, such as one with the dashes of a word processor.
var sendableKey = regexp.MustCompile(`^[ -~]*$`)

// send: without an identity the request has no license key.
func (k *Kit) send(ctx context.Context, asked question, who identity) believed {
	if !sendableKey.MatchString(who.licenseKey) {
		return believed{reason: "LICENSE_KEY_INVALID"}
	}
	nonce := base64.StdEncoding.EncodeToString(k.random(16))
	fields := map[string]any{}
	maps.Copy(fields, asked.fields)
	fields["nonce"], fields["product_code"] = nonce, k.options.ProductCode
	path, query := "/api/v1/license/"+asked.path, url.Values{}
	var body []byte
	if asked.isRead {
		for name, value := range fields {
			query.Set(name, fmt.Sprint(value))
		}
		path += "?" + query.Encode()
	} else {
		var err error
		if body, err = json.Marshal(fields); err != nil {
			return believed{reason: "NOT_REACHED", problem: "network"}
		}
	}
	reply := k.exchange(ctx, path, who.licenseKey, body)
	if reply.problem != "" {
		return believed{reason: "NOT_REACHED", problem: reply.problem, status: reply.status}
	}
	expected := k.expected(asked.kind, who, nonce, asked.binding)
	return k.believing(ctx, &reply, asked.path == "trial", func() (*Answer, string, error) {
		keys := k.keys()
		if asked.kind == "offline" {
			// The envelope is signed, and so is what is in it.
			outer, err := Judge(keys, reply.body, Expected{})
			if err != nil {
				return nil, "", err
			}
			if outer.Member == "data" {
				return k.opened(outer.Bytes, who.licenseKey, expected)
			}
		}
		answer, err := Judge(keys, reply.body, expected)
		isDeactivation := err == nil && answer.Member == "data" && asked.deviceID != ""
		if isDeactivation && answer.Text("device_id") != asked.deviceID {
			err = distrust("binding", "another device answered")
		}
		return answer, string(reply.body), err
	})
}

// reply is what a request got: a status and a body, or the problem that prevented it.
type reply struct {
	status     int
	body       []byte
	retryAfter string
	problem    string
}

func (k *Kit) exchange(ctx context.Context, path, licenseKey string, body []byte) reply {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, k.options.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return reply{problem: "network"}
	}
	if licenseKey != "" {
		request.Header.Set("Authorization", "License "+licenseKey)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := k.client.Do(request)
	if err != nil {
		return reply{problem: problemOf(err)}
	}
	defer response.Body.Close()
	received, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMax+1))
	if err != nil || len(received) > bodyBytesMax {
		problem := "response"
		if err != nil && problemOf(err) == "timeout" {
			problem = "timeout"
		}
		return reply{status: response.StatusCode, problem: problem}
	}
	return reply{response.StatusCode, received, response.Header.Get("Retry-After"), ""}
}

func problemOf(err error) string {
	var dns *net.DNSError
	var unverified *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var asked *url.Error
	switch {
	case errors.As(err, &dns):
		return "dns"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &unverified) || errors.As(err, &record):
		return "tls"
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &asked) && asked.Timeout():
		return "timeout"
	}
	return "network"
}

func (k *Kit) opened(envelope []byte, licenseKey string, expected Expected) (*Answer, string, error) {
	text, err := decrypt(licenseKey, envelope)
	if err != nil {
		return nil, "", distrust("envelope", "the offline envelope does not open: %v", err)
	}
	answer, err := Judge(k.keys(), text, expected)
	return answer, string(text), err
}

func (k *Kit) expected(kind string, who identity, nonce string, binding *Binding) Expected {
	k.state.Lock()
	defer k.state.Unlock()
	expected := Expected{
		Kind: kind, LicenseID: who.licenseID, ProductID: who.productID, ProductCode: k.options.ProductCode,
		Nonce: nonce, Binding: binding, Now: k.options.Now(),
	}
	if !math.IsInf(k.highest, -1) {
		expected.HighestIssuedAt = timeOf(k.highest)
	}
	return expected
}

var retryAfterForm = regexp.MustCompile(`^[0-9]{1,9}$`)

func (k *Kit) believing(
	ctx context.Context, got *reply, isTrial bool, judged func() (*Answer, string, error),
) believed {
	answer, text, err := judged()
	var distrusted *Distrusted
	if errors.As(err, &distrusted) && distrusted.Rule == "kid" && k.fetchKeys(ctx) {
		answer, text, err = judged()
	}
	if err == nil {
		k.state.Lock()
		k.see(answer.Text("issued_at"))
		k.state.Unlock()
		return believed{answer: answer, text: text}
	}
	if !errors.As(err, &distrusted) {
		return believed{reason: "NOT_REACHED", rule: "signature"}
	}
	missed := believed{reason: "NOT_REACHED", rule: distrusted.Rule}
	if missed.rule == "times" {
		missed.reason = "CLOCK_WRONG"
		return missed
	}
	if got == nil {
		return missed
	}
	if retryAfterForm.MatchString(got.retryAfter) {
		seconds, _ := strconv.ParseFloat(got.retryAfter, 64)
		missed.retryAfter = min(seconds*1000, hourMillis)
	}
	code := codeIn(got.body)
	// Only these unsigned codes ask the user for something. A trial that is refused takes nothing away.
	isTold := got.status == http.StatusUnauthorized && (code == "LICENSE_KEY_INVALID" || code == "LICENSE_KEY_MISSING")
	if isTrial {
		isTold = got.status == http.StatusForbidden && code != ""
	}
	if missed.rule == "signature" && isTold {
		return believed{reason: code, retryAfter: missed.retryAfter}
	}
	missed.problem, missed.status = "response", got.status
	return missed
}

// fetchKeys: only over TLS, or on this machine, does the connection vouch for the keys. At most once in ten minutes.
func (k *Kit) fetchKeys(ctx context.Context) bool {
	now := k.now()
	if !k.options.TrustPublishedKeys || !safeURL.MatchString(k.options.BaseURL) ||
		math.Abs(now-k.keysFetchedAt) < 600_000 {
		return false
	}
	k.keysFetchedAt = now
	got := k.exchange(ctx, "/api/v1/system/public-keys", "", nil)
	if got.problem != "" || got.status != http.StatusOK {
		return false
	}
	found, err := members(got.body)
	if err != nil {
		return false
	}
	k.state.Lock()
	defer k.state.Unlock()
	k.published = keysIn(found["data"])
	return true
}

// keys: one that is built in is never replaced.
func (k *Kit) keys() Keys {
	k.state.Lock()
	defer k.state.Unlock()
	return k.trusted()
}

func (k *Kit) trusted() Keys {
	all := Keys{}
	if k.options.TrustPublishedKeys {
		maps.Copy(all, k.published)
	}
	maps.Copy(all, k.options.Keys)
	return all
}

// ---- Memory: what is believed. All below need the lock of the state. ----

var kindOfSlot = map[string]string{
	"entitlement": "entitlement", "offline": "offline", "checkout": "floating_checkout", "lease": "floating_lease",
}

var slotOfKind = map[string]string{
	"entitlement": "entitlement", "offline": "offline", "floating_checkout": "checkout", "floating_lease": "lease",
}

// publishedKey is an entry of GET /api/v1/system/public-keys.
type publishedKey struct {
	Kid       string `json:"kid"`
	PublicKey string `json:"public_key"`
}

// stored is the text that the store keeps. Members of a wrong type are ignored one by one.
type stored struct {
	LicenseKey      string            `json:"license_key,omitempty"`
	LicenseID       string            `json:"license_id,omitempty"`
	ProductID       string            `json:"product_id,omitempty"`
	Holding         string            `json:"holding,omitempty"`
	HighestIssuedAt string            `json:"highest_issued_at,omitempty"`
	DueAt           string            `json:"due_at,omitempty"`
	PublishedKeys   []publishedKey    `json:"published_keys"`
	Responses       map[string]string `json:"responses"`
}

func (k *Kit) load() {
	written, err := k.options.Store.Read()
	k.isStoreFailed = err != nil
	found := map[string]json.RawMessage{}
	if len(written) <= storedBytesMax && json.Unmarshal([]byte(written), &found) != nil {
		found = map[string]json.RawMessage{}
	}
	k.responses, k.highest, k.due = map[string]kept{}, math.Inf(-1), math.Inf(1)
	k.published = keysIn(found["published_keys"])
	who := identity{text(found["license_key"]), text(found["license_id"]), text(found["product_id"])}
	if holding := text(found["holding"]); who.licenseKey != "" {
		k.who = &who
		if holding == "device" || holding == "seat" {
			k.holding = holding
		}
	}
	k.see(text(found["highest_issued_at"]))
	texts := map[string]json.RawMessage{}
	_ = json.Unmarshal(found["responses"], &texts)
	for _, slot := range []string{"entitlement", "offline", "checkout", "lease", "refusal"} {
		response := text(texts[slot])
		answer, err := Judge(k.trusted(), []byte(response), Expected{
			Kind: kindOfSlot[slot], LicenseID: who.licenseID, ProductID: who.productID,
			ProductCode: k.options.ProductCode, Binding: &k.options.Binding,
		})
		if err == nil && (answer.Member == "error") == (slot == "refusal") {
			k.responses[slot] = kept{response, answer.Content}
			k.see(answer.Text("issued_at"))
		}
	}
	if k.holding == "" {
		return
	}
	// The service is asked at once if nothing stored is believed, and for a seat, unless it is borrowed.
	_, isWaiting := k.seat()["borrowed_until"]
	if k.holding == "device" {
		isWaiting = len(k.responses) > 0
	}
	next := millis(k.seat(), "lease_expires_at")
	if entitlement := k.content("entitlement"); entitlement != nil {
		next = millis(entitlement, "next_check_at")
	}
	// A plan that is later than the service's own, and than any retry, was made while the clock was ahead.
	due := millisOf(text(found["due_at"]))
	isPlausible := due <= k.now()+hourMillis || due <= next+skewMillis
	k.due = 0
	// What ended the use has perhaps ended since: the license was renewed, or the network is back.
	if isPlausible && isWaiting && k.verdict().MayRun() {
		k.due = due
	}
}

func (k *Kit) content(slot string) map[string]any { return k.responses[slot].content }

// seat is the one that is held.
func (k *Kit) seat() map[string]any {
	if k.holding != "seat" {
		return nil
	}
	if lease := k.content("lease"); lease != nil {
		return lease
	}
	return k.content("checkout")
}

func (k *Kit) leaseToken() any {
	k.state.Lock()
	defer k.state.Unlock()
	return k.content("checkout")["lease_token"]
}

func (k *Kit) identityOf(licenseKey string) *identity {
	k.state.Lock()
	defer k.state.Unlock()
	if key := LicenseKeyOf(licenseKey); licenseKey != "" && (k.who == nil || k.who.licenseKey != key) {
		return &identity{licenseKey: key}
	}
	if k.who == nil {
		return nil
	}
	who := *k.who
	return &who
}

func (k *Kit) settle(operation string, got believed, holding string) Outcome {
	k.state.Lock()
	defer k.state.Unlock()
	k.plan(operation, got)
	if got.granted() {
		k.take(got, k.now(), holding)
	} else if got.refused() {
		k.refuse(got)
	}
	k.missed = ""
	if k.holding == "" || got.answer == nil {
		k.missed = got.why()
	}
	k.save()
	return k.outcome(got)
}

// take believes a grant. holding is what it gives; without it the response only updates what is held.
func (k *Kit) take(got believed, now float64, holding string) {
	content := got.answer.Content
	if k.who != nil {
		k.who = &identity{k.who.licenseKey, got.answer.Text("license_id"), got.answer.Text("product_id")}
	}
	delete(k.responses, "refusal")
	k.isClockAhead = now-millis(content, "issued_at") > skewMillis
	slot := slotOfKind[got.answer.Text("kind")]
	if slot == "offline" {
		// Only an activation gets an envelope: also beside a seat the machine has one.
		holding = "device"
	}
	if k.holding == "" {
		// Why nothing was held until now.
		k.missed = ""
	}
	if holding != "" && holding != k.holding {
		k.forget(holding == "device")
	}
	if holding != "" {
		k.holding = holding
	}
	// An entitlement to the holder of a seat outlasts the seat: the seat alone decides.
	if slot == "entitlement" && k.holding == "seat" {
		k.used = content
	}
	if isOfSeat := slot == "checkout" || slot == "lease"; slot == "" || isOfSeat != (k.holding == "seat") {
		return
	}
	if slot == "checkout" {
		delete(k.responses, "lease")
	}
	k.responses[slot] = kept{got.text, content}
	if checkAt := millis(content, "next_check_at"); slot == "offline" && checkAt < k.due {
		k.due = checkAt
	}
}

// grantFromFile: a file was issued before, and changes neither the clock nor a newer refusal.
func (k *Kit) grantFromFile(got believed) {
	isAhead := k.isClockAhead
	refusal, isRefused := k.responses["refusal"]
	k.take(got, 0, "")
	k.isClockAhead = isAhead
	if isRefused && millis(refusal.content, "issued_at") > millis(got.answer.Content, "issued_at") {
		k.forget(true)
		k.responses["refusal"] = refusal
	}
}

// refuse forgets what the refusal ends, so that removing the refusal from the store gives nothing back.
func (k *Kit) refuse(got believed) {
	reach := ruleOf(got.code()).reach
	isOfHolding := map[string]bool{"license": true, "activation": k.holding == "device", "seat": k.holding == "seat"}
	if isOfHolding[reach] {
		isBorrowed := millis(k.content("checkout"), "borrowed_until") > millis(got.answer.Content, "issued_at")
		// Only a revocation ends a borrowed seat: after any other refusal it can still be given back.
		k.forget(isBorrowed && got.code() != "LICENSE_REVOKED")
		k.responses["refusal"] = kept{got.text, got.answer.Content}
	}
}

// release: the activation or the seat was given back; the other one stays.
func (k *Kit) release(given string) {
	if given == "seat" {
		delete(k.responses, "checkout")
	}
	if given == k.holding {
		k.forget(true)
		k.holding, k.missed, k.due = "", "", math.Inf(1)
	}
}

func (k *Kit) begin(licenseKey string) {
	k.release(k.holding)
	clear(k.responses)
	k.who = &identity{licenseKey: licenseKey}
}

// forget: only the token in the checkout gives a seat back, also beside an activation.
func (k *Kit) forget(keepsToken bool) {
	k.used = nil
	for slot := range kindOfSlot {
		if slot != "checkout" || !keepsToken {
			delete(k.responses, slot)
		}
	}
}

// see is for every believed answer, also one that changes nothing else: the clock must not fall behind it.
func (k *Kit) see(issuedAt string) {
	if instant := millisOf(issuedAt); instant > k.highest {
		k.highest = instant
	}
}

func (k *Kit) save() {
	written := stored{
		Holding: k.holding, HighestIssuedAt: isoOf(k.highest), DueAt: isoOf(k.due),
		PublishedKeys: []publishedKey{}, Responses: map[string]string{},
	}
	if k.who != nil {
		written.LicenseKey, written.LicenseID, written.ProductID = k.who.licenseKey, k.who.licenseID, k.who.productID
	}
	if k.options.TrustPublishedKeys {
		for kid, key := range k.published {
			written.PublishedKeys = append(written.PublishedKeys, publishedKey{kid, key})
		}
	}
	for slot, response := range k.responses {
		written.Responses[slot] = response.text
	}
	text, err := json.Marshal(written)
	k.isStoreFailed = err != nil || k.options.Store.Write(string(text)) != nil
}

// ---- Deciding: a function of what is believed and the time ----

func (k *Kit) verdict() Verdict {
	verdict := k.decide(k.now())
	if verdict.Decision == Run && k.isStoreFailed {
		verdict.Decision, verdict.Reason = Warn, "STORE_FAILED"
	}
	return verdict
}

func (k *Kit) decide(now float64) Verdict {
	refusal, isRefused := k.responses["refusal"]
	code, _ := refusal.content["code"].(string)
	switch {
	case now < k.highest-skewMillis:
		return Verdict{Decision: Ask, Reason: "CLOCK_WRONG"}
	case isRefused:
		return Verdict{Decision: ruleOf(code).decision, Reason: code, Refusal: refusal.content}
	case k.holding == "seat":
		return k.seatVerdict(now)
	case k.holding == "device":
		return k.deviceVerdict(now)
	case k.missed != "":
		return Verdict{Decision: Ask, Reason: k.missed}
	}
	return Verdict{Decision: Ask, Reason: "NOT_ACTIVATED"}
}

func (k *Kit) seatVerdict(now float64) Verdict {
	seat := k.seat()
	endsAt := millis(seat, "lease_expires_at")
	if !(now < endsAt) {
		return k.ended("SEAT_ENDED")
	}
	// A heartbeat is due after a third of the term: after two thirds at least one was missed. A borrowed seat needs none.
	term := endsAt - millis(seat, "issued_at")
	return k.living(seat, now, endsAt, math.Max(endsAt-term/3, finite(millis(seat, "borrowed_until"))))
}

func (k *Kit) deviceVerdict(now float64) Verdict {
	grant := k.newestGrant()
	if grant == nil {
		return k.ended("NOT_REACHED")
	}
	accessEnd := math.Inf(1)
	for _, name := range []string{"access_ends_at", "expires_at"} {
		if _, has := grant[name]; has {
			accessEnd = millis(grant, name)
			break
		}
	}
	if now >= accessEnd && k.isClockAhead {
		return Verdict{Decision: Ask, Reason: "CLOCK_WRONG"}
	}
	if now >= accessEnd {
		return Verdict{Decision: Ask, Reason: "LICENSE_EXPIRED"}
	}
	checkAt := millis(k.content("entitlement"), "next_check_at")
	offlineEnd := millis(k.content("offline"), "offline_expires_at")
	tolerance := float64(k.options.Tolerance.Milliseconds())
	endsAt := math.Min(math.Max(finite(checkAt)+tolerance, finite(offlineEnd)), math.Min(accessEnd, instantMax))
	if !(now < endsAt) {
		return k.ended("NOT_REACHED")
	}
	verdict := k.living(grant, now, endsAt, math.Max(finite(checkAt), finite(offlineEnd)))
	if !(now < checkAt) && now < offlineEnd && verdict.Reason == "LICENSED" {
		verdict.Reason = "OFFLINE"
	}
	return verdict
}

// living runs until warnAt, then warns.
func (k *Kit) living(content map[string]any, now, endsAt, warnAt float64) Verdict {
	verdict := Verdict{Decision: Warn, EndsAt: timeOf(endsAt)}
	switch {
	case content["status"] == "grace_period" || now >= millis(content, "expires_at"):
		verdict.Reason = "GRACE_PERIOD"
	case k.isClockAhead:
		verdict.Reason = "CLOCK_WRONG"
	case k.missed != "" && k.missed != "NOT_REACHED":
		verdict.Reason = k.missed
	case now < warnAt:
		verdict.Decision, verdict.Reason = Run, "LICENSED"
	default:
		verdict.Reason = "NOT_REACHED"
	}
	return verdict
}

// ended: nothing believed allows the use any more. It stops, unless the user can do something about it.
func (k *Kit) ended(reason string) Verdict {
	switch {
	case k.isClockAhead:
		return Verdict{Decision: Ask, Reason: "CLOCK_WRONG"}
	case k.missed == "" || k.missed == "NOT_REACHED":
		return Verdict{Decision: Stop, Reason: reason}
	}
	return Verdict{Decision: Ask, Reason: k.missed}
}

func (k *Kit) newestGrant() map[string]any {
	entitlement, offline := k.content("entitlement"), k.content("offline")
	if offline != nil && !(millis(entitlement, "issued_at") >= millis(offline, "issued_at")) {
		return offline
	}
	return entitlement
}

// grant is the newest believed response that grants something.
func (k *Kit) grant() map[string]any {
	if k.holding != "seat" {
		return k.newestGrant()
	}
	newest := k.used
	for _, slot := range []string{"lease", "checkout"} {
		if one := k.content(slot); newest == nil || millis(one, "issued_at") > millis(newest, "issued_at") {
			newest = one
		}
	}
	return newest
}

// ---- When to ask next ----

var keeping = map[string]bool{"activate": true, "validate": true, "floating/checkout": true, "floating/heartbeat": true}

func (k *Kit) plan(operation string, got believed) {
	// With a seat only its lease counts: a validation does not put off the next heartbeat, unless it is refused.
	isOfSeat := operation == "validate" && k.holding == "seat"
	// What refuses the license may be lifted: it is asked again soon, whatever was refused.
	isEnd := got.refused() && ruleOf(got.code()).reach == "license"
	if !isEnd && (!keeping[operation] || isOfSeat && !got.refused()) {
		return
	}
	k.plannedAt = k.now()
	if got.granted() {
		k.failures = 0
		k.due = k.plannedAt + waitOf(got.answer.Content)
	} else {
		k.failures++
		k.due = k.plannedAt + k.retryWait(got)
	}
	k.wakeAt = math.Inf(1)
	if !got.granted() && !got.refused() {
		// The application that calls Wake knows that the machine is online: a retry need not wait as long.
		k.wakeAt = k.plannedAt + math.Max(got.retryAfter, 10_000)
	}
	select {
	case k.planned <- struct{}{}:
	default:
	}
}

func (k *Kit) retryWait(got believed) float64 {
	if got.code() == "LICENSE_REVOKED" {
		return math.Inf(1)
	}
	most := hourMillis
	if seat := k.seat(); seat != nil {
		most = math.Min(waitOf(seat), hourMillis)
	}
	backoff := math.Min(10_000*math.Pow(2, float64(min(k.failures-1, 20))), most)
	spread := 0.2 * float64(k.random(1)[0]) / 255
	asked := got.retryAfter
	if got.refused() {
		seconds, _ := got.answer.Content["retry_after_seconds"].(float64)
		asked = seconds * 1000
	}
	// Perhaps days: a vendor may lift the refusal before, and a seat needs its heartbeats.
	return math.Max(math.Min(asked, most), backoff*(1-spread))
}

// waitOf goes by the service's own instants, because this machine's clock may differ.
func waitOf(content map[string]any) float64 {
	issued, leaseEnd := millis(content, "issued_at"), millis(content, "lease_expires_at")
	wait := (leaseEnd - issued) / 3
	if math.IsNaN(leaseEnd) {
		wait = millis(content, "next_check_at") - issued
		// Perhaps a renewal has moved the expiry, and no grace period begins.
		if left := millis(content, "expires_at") - issued; left > 0 && left < wait {
			wait = left
		}
	} else if leaseEnd <= millis(content, "borrowed_until") {
		// Shortly before its end a heartbeat makes a borrowed seat an ordinary one without a gap.
		wait = leaseEnd - issued - 30_000
	}
	if math.IsNaN(wait) {
		wait = hourMillis
	}
	return math.Max(wait, 5_000)
}

// ---- Outcomes ----

func (k *Kit) outcomeOf(got believed) Outcome {
	k.state.Lock()
	defer k.state.Unlock()
	return k.outcome(got)
}

func (k *Kit) outcome(got believed) Outcome { return k.outcomeWith(got, ruleOf(got.code()).decision) }

// outcomeWith has the stricter of the refusal's decision and the verdict after it.
func (k *Kit) outcomeWith(got believed, decision Decision) Outcome {
	outcome := Outcome{Verdict: k.verdict()}
	switch {
	case got.granted():
		outcome.Granted, outcome.Data = true, got.answer.Content
	case got.refused():
		if !outcome.Decision.isStricter(decision) {
			outcome.Decision, outcome.Reason = decision, got.code()
		}
		outcome.Refusal = got.answer.Content
	default:
		if outcome.MayRun() {
			outcome.Reason = got.reason
		}
		outcome.BrokenRule, outcome.Problem, outcome.Status = got.rule, got.problem, got.status
	}
	return outcome
}

// ---- Texts ----

var issuedForm = regexp.MustCompile(`^[L1I]K[0-9A-TV-Z]{30}$`)

// whiteSpace comes along with a text from the clipboard: the same in every kit.
const whiteSpace = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" +
	"\u2028\u2029\u202f\u205f\u3000\ufeff"

// LicenseKeyOf is a license key as a person types it, in the form as issued.
func LicenseKeyOf(typed string) string {
	trimmed := strings.Trim(typed, whiteSpace)
	symbols := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(trimmed))
	if len(trimmed) > 64 || !issuedForm.MatchString(symbols) {
		return trimmed
	}
	body := strings.NewReplacer("O", "0", "I", "1", "L", "1").Replace(symbols[2:])
	groups := []string{"LK"}
	for at := 0; at < len(body); at += 5 {
		groups = append(groups, body[at:at+5])
	}
	return strings.Join(groups, "-")
}

// envelopeIn is the envelope in a text: alone, or as the data of a whole response. Editors add white space and byte order
// marks.
func envelopeIn(text string) []byte {
	trimmed := []byte(strings.Trim(text, whiteSpace))
	found, err := members(trimmed)
	if _, isAlone := found["ciphertext"]; err != nil || isAlone || found["data"] == nil {
		return trimmed
	}
	return found["data"]
}

func codeIn(body []byte) string {
	found, err := members(body)
	if err != nil {
		return ""
	}
	refusal, err := members(found["error"])
	if err != nil {
		return ""
	}
	return text(refusal["code"])
}

func keysIn(listed json.RawMessage) Keys {
	var entries []json.RawMessage
	_ = json.Unmarshal(listed, &entries)
	found := Keys{}
	for _, entry := range entries {
		var key publishedKey
		if json.Unmarshal(entry, &key) == nil && key.Kid != "" && key.PublicKey != "" && len(found) < 64 {
			found[key.Kid] = key.PublicKey
		}
	}
	return found
}

func (k *Kit) now() float64 { return float64(k.options.Now().UnixMilli()) }

func (k *Kit) random(count int) []byte {
	bytes := make([]byte, count)
	if _, err := io.ReadFull(k.options.Random, bytes); err != nil {
		panic("licensing: no randomness: " + err.Error())
	}
	return bytes
}

var instantForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`)

// millisOf is an instant as the service writes it in milliseconds, or NaN: comparisons with it are false.
func millisOf(written string) float64 {
	if !instantForm.MatchString(written) {
		return math.NaN()
	}
	moment, err := time.Parse(time.RFC3339Nano, written)
	if err != nil {
		return math.NaN()
	}
	return float64(moment.UnixMilli())
}

func millis(content map[string]any, name string) float64 {
	written, _ := content[name].(string)
	return millisOf(written)
}

func timeOf(millis float64) time.Time { return time.UnixMilli(int64(millis)).UTC() }

func isoOf(millis float64) string {
	if math.IsInf(millis, 0) || math.IsNaN(millis) {
		return ""
	}
	return timeOf(millis).Format("2006-01-02T15:04:05.000Z")
}

func finite(millis float64) float64 {
	if math.IsNaN(millis) {
		return math.Inf(-1)
	}
	return millis
}
