// Package licensing has license checks for an application in Go 1.24 or newer, with the standard library alone. Copy
// licensing.go and kit.go into a folder of the application; check has a program that tests them against the published
// test vectors:
//
//	go run ./check vectors ../../../schema/vectors
//
// Kit decides what the application should do, as docs/guides/kit.md explains:
//
//	kit, err := licensing.Open(licensing.Options{BaseURL: "https://licenses.example.com", ProductCode: "editor-pro",
//		Keys: keys, Binding: licensing.Hardware(fingerprint), Store: licensing.FileStore("license.json")})
//	kit.Start()
//	outcome := kit.Activate(ctx, licenseKey)
//	if kit.Verdict().MayRun() { ... }
//
// Client and Judge are the part below it: they say which answers to believe. Client's err is nil for an answer that keeps
// all rules of VERIFYING.md: data, or a signed refusal whose Text("code") says what to do. Any other err is "the service
// was not reached".
package licensing

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	bodyBytesMax     = 1 << 20
	depthMax         = 32 // levels of objects and arrays, the outermost included
	clockSkewMax     = 5 * time.Minute
	webhookTolerance = 300
)

// Distrusted is an answer that the application must not believe.
type Distrusted struct {
	// Rule is the first rule that the answer breaks.
	Rule, Message string
}

func (d *Distrusted) Error() string { return d.Rule + ": " + d.Message }

func distrust(rule, format string, values ...any) error {
	return &Distrusted{rule, fmt.Sprintf(format, values...)}
}

// Keys maps a kid to its public key in base64, as GET /api/v1/system/public-keys publishes them. Build them in.
type Keys map[string]string

// Binding is this machine or container. Key is hashed; Request is what a request says of it.
type Binding struct {
	Kind, Key string
	Request   map[string]any
}

// Hash is the binding_hash of answers.
func (b Binding) Hash() string { return sha256Hex(b.Key) }

// Hardware is the binding of a machine.
func Hardware(fingerprint string) Binding {
	return Binding{"hardware", fingerprint, map[string]any{"fingerprint": fingerprint}}
}

// Container is the binding of a container, by at least one of cluster_id, namespace, pod_name and container_id.
func Container(ids map[string]string) Binding {
	request := map[string]any{"is_container": true}
	members := []string{}
	for _, name := range []string{"cluster_id", "container_id", "namespace", "pod_name"} {
		if id, given := ids[name]; given {
			request[name] = id
			members = append(members, canonicalText(name)+":"+canonicalText(id))
		}
	}
	return Binding{"container", sha256Hex("{" + strings.Join(members, ",") + "}"), request}
}

// OfflineRequest is the text of a file or QR code for a machine without a network: the body of
// POST /api/v1/license/offline, which a person with the license key sends. OpenOffline opens what comes back.
func OfflineRequest(binding Binding, productCode string) string {
	request := map[string]any{"activate": true, "product_code": productCode}
	maps.Copy(request, binding.Request)
	members := []string{}
	for _, name := range slices.Sorted(maps.Keys(request)) {
		value := "true"
		if text, isText := request[name].(string); isText {
			value = canonicalText(text)
		}
		members = append(members, canonicalText(name)+":"+value)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Expected is what the application knows. A zero value means nothing to compare with, and skips the check.
type Expected struct {
	Kind, LicenseID, ProductID, ProductCode, Nonce string
	Binding                                        *Binding
	// Now is the application's clock. Set it always: without it the times are not checked.
	Now time.Time
	// HighestIssuedAt is the highest issued_at that the application has seen and stored.
	HighestIssuedAt time.Time
}

// Answer is the signed part of an answer: Member is data or error.
type Answer struct {
	Member  string
	Content map[string]any
	// Bytes are the signed bytes of Content, to decode into a struct.
	Bytes    []byte
	IssuedAt time.Time
}

// Text is a member of the content, empty where it is no text.
func (a *Answer) Text(name string) string {
	text, _ := a.Content[name].(string)
	return text
}

// Judge returns the signed part of an answer that keeps all rules, and *Distrusted for any other.
func Judge(keys Keys, body []byte, expected Expected) (*Answer, error) {
	envelope, err := members(body)
	if err != nil {
		return nil, distrust("signature", "the answer is not one JSON object: %v", err)
	}
	member, signed := "data", envelope["data"]
	if _, refused := envelope["error"]; refused {
		member, signed = "error", envelope["error"]
	}
	if _, both := envelope["data"]; signed == nil || both && member == "error" {
		return nil, distrust("signature", "an answer has either data or error")
	}
	if err := checkSignature(keys, signed, envelope["signature"]); err != nil {
		return nil, err
	}
	answer := &Answer{Member: member, Bytes: signed}
	// These are the verified bytes: nothing else of the body is read from here on.
	if signed[0] != '{' || json.Unmarshal(signed, &answer.Content) != nil {
		return nil, distrust("signature", "%s is no object", member)
	}
	if err := checkContent(answer, expected); err != nil {
		return nil, err
	}
	return answer, checkTimes(answer, expected)
}

func checkSignature(keys Keys, signed, member []byte) error {
	signature, err := members(member)
	if err != nil {
		return distrust("signature", "the answer has no signature: %v", err)
	}
	if text(signature["alg"]) != "Ed25519" {
		return distrust("signature", "the algorithm is not Ed25519")
	}
	published, trusted := keys[text(signature["kid"])]
	if !trusted {
		return distrust("kid", "the signing key is not one that the application trusts")
	}
	key, keyErr := strictBase64(published)
	value, valueErr := strictBase64(text(signature["value"]))
	if keyErr != nil || valueErr != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, signed, value) {
		return distrust("signature", "the signature is not valid")
	}
	return nil
}

func checkContent(answer *Answer, expected Expected) error {
	check := func(rule, name, wanted string) error {
		if given, isText := answer.Content[name].(string); wanted != "" && (!isText || given != wanted) {
			return distrust(rule, "%s is not the expected one", name)
		}
		return nil
	}
	binding := Binding{}
	hash := ""
	if expected.Binding != nil {
		binding, hash = *expected.Binding, expected.Binding.Hash()
	}
	// A refusal grants nothing: it has no kind, no product_code and no binding.
	if answer.Member == "error" {
		return first(
			check("license", "license_id", expected.LicenseID),
			check("product", "product_id", expected.ProductID),
			check("nonce", "nonce", expected.Nonce))
	}
	return first(
		check("kind", "kind", expected.Kind),
		check("license", "license_id", expected.LicenseID),
		check("product", "product_id", expected.ProductID),
		check("product", "product_code", expected.ProductCode),
		check("binding", "binding_kind", binding.Kind),
		check("binding", "binding_hash", hash),
		check("nonce", "nonce", expected.Nonce))
}

func first(results ...error) error {
	for _, err := range results {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkTimes(answer *Answer, expected Expected) error {
	if expected.Now.IsZero() {
		return nil
	}
	issuedAt, err := instant(answer.Text("issued_at"))
	if err != nil {
		return distrust("times", "issued_at is no instant")
	}
	answer.IssuedAt = issuedAt
	highest := issuedAt
	if expected.HighestIssuedAt.After(highest) {
		highest = expected.HighestIssuedAt
	}
	if expected.Now.Before(highest.Add(-clockSkewMax)) {
		return distrust("times", "the clock is more than five minutes behind an instant that the service has signed")
	}
	ends := map[string]string{"offline": "offline_expires_at", "floating_checkout": "lease_expires_at"}
	if name, has := ends[answer.Text("kind")]; has {
		if end, err := instant(answer.Text(name)); err != nil || !expected.Now.Before(end) {
			return distrust("times", "%s has passed", name)
		}
	}
	return nil
}

// OpenOffline opens an offline envelope, the JSON of {kid, salt, nonce, ciphertext}, and judges what is in it. The
// license key is the one as issued: LK-, capitals and dashes.
func OpenOffline(keys Keys, licenseKey string, envelope []byte, expected Expected) (*Answer, error) {
	plaintext, err := decrypt(licenseKey, envelope)
	if err != nil {
		return nil, distrust("envelope", "the offline envelope does not open: %v", err)
	}
	return Judge(keys, plaintext, expected)
}

func decrypt(licenseKey string, envelope []byte) ([]byte, error) {
	parts, err := members(envelope)
	if err != nil {
		return nil, err
	}
	salt, saltErr := strictBase64(text(parts["salt"]))
	nonce, nonceErr := strictBase64(text(parts["nonce"]))
	ciphertext, ciphertextErr := strictBase64(text(parts["ciphertext"]))
	// Open panics on a nonce of another length.
	if err := first(saltErr, nonceErr, ciphertextErr); err != nil || len(salt) == 0 || len(nonce) != 12 {
		return nil, errors.New("a part is missing or malformed")
	}
	key, err := hkdf.Key(sha256.New, []byte(licenseKey), salt, "licensing-service/offline/v1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return gcm.Open(nil, nonce, ciphertext, []byte(text(parts["kid"])))
}

// Why a webhook is refused: answer 400.
var (
	ErrHeadersMissing     = errors.New("headers_missing")
	ErrSignatureMalformed = errors.New("signature_malformed")
	ErrTooOldOrNew        = errors.New("too_old_or_new")
	ErrSignatureWrong     = errors.New("signature_wrong")
)

// VerifyWebhook returns the id of a genuine delivery by X-Service-Signature. The same id may arrive again: process it
// once. body is the raw body; secrets holds the endpoint's secret, during a rotation the old and the new one.
func VerifyWebhook(secrets []string, headers http.Header, body []byte, now time.Time) (string, error) {
	id, signature := headers.Values("X-Service-Delivery-Id"), headers.Values("X-Service-Signature")
	if len(id) == 0 || len(signature) == 0 {
		return "", ErrHeadersMissing
	}
	timestamp, given := "", []string{}
	for _, part := range strings.Split(signature[0], ",") {
		name, value, separated := strings.Cut(strings.TrimSpace(part), "=")
		if name == "t" && timestamp == "" {
			timestamp = value
		} else if name == "v1" && separated {
			given = append(given, value)
		}
	}
	return matching(secrets, timestamp, given, id[0], now, func(secret string) string {
		return hex.EncodeToString(hmacOf([]byte(secret), timestamp+"."+id[0]+".", body))
	})
}

// VerifyStandardWebhook does the same by the headers of Standard Webhooks.
func VerifyStandardWebhook(secrets []string, headers http.Header, body []byte, now time.Time) (string, error) {
	id, at := headers.Values("Webhook-Id"), headers.Values("Webhook-Timestamp")
	signature := headers.Values("Webhook-Signature")
	if len(id) == 0 || len(at) == 0 || len(signature) == 0 {
		return "", ErrHeadersMissing
	}
	given := []string{}
	for _, part := range strings.Split(signature[0], " ") {
		if value, isOurs := strings.CutPrefix(part, "v1,"); isOurs {
			given = append(given, value)
		}
	}
	return matching(secrets, at[0], given, id[0], now, func(secret string) string {
		mac := hmacOf(standardKey(secret), id[0]+"."+at[0]+".", body)
		return base64.StdEncoding.EncodeToString(mac)
	})
}

var timestampForm = regexp.MustCompile(`^[0-9]{1,12}$`)

func matching(
	secrets []string, timestamp string, given []string, id string, now time.Time, wanted func(secret string) string,
) (string, error) {
	if !timestampForm.MatchString(timestamp) || len(given) == 0 {
		return "", ErrSignatureMalformed
	}
	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Unix() - seconds; age > webhookTolerance || age < -webhookTolerance {
		return "", ErrTooOldOrNew
	}
	for _, secret := range secrets {
		expected := []byte(wanted(secret))
		for _, value := range given {
			if hmac.Equal(expected, []byte(value)) {
				return id, nil
			}
		}
	}
	return "", ErrSignatureWrong
}

func hmacOf(key []byte, prefix string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(prefix))
	mac.Write(body)
	return mac.Sum(nil)
}

// standardKey is the base64 after whsec_; the whole secret as UTF-8 where there is none.
func standardKey(secret string) []byte {
	if encoded, generated := strings.CutPrefix(secret, "whsec_"); generated && encoded != "" {
		if key, err := strictBase64(encoded); err == nil {
			return key
		}
	}
	return []byte(secret)
}

// Client calls the service. Store LicenseID, ProductID and HighestIssuedAt, and set them again at the next start.
type Client struct {
	BaseURL, LicenseKey, ProductCode string
	Keys                             Keys
	Binding                          Binding
	LicenseID, ProductID             string
	HighestIssuedAt                  time.Time
	// HTTP is used in place of a client with a timeout of 15 seconds.
	HTTP *http.Client
}

// Activate takes a slot for this machine.
func (c *Client) Activate(ctx context.Context) (*Answer, error) {
	return c.Call(ctx, "activate", "entitlement")
}

// Validate asks whether the license still holds.
func (c *Client) Validate(ctx context.Context) (*Answer, error) {
	return c.Call(ctx, "validate", "entitlement")
}

// Call sends a runtime operation and judges its answer.
func (c *Client) Call(ctx context.Context, operation, kind string) (*Answer, error) {
	random := make([]byte, 16)
	rand.Read(random)
	nonce := base64.StdEncoding.EncodeToString(random)
	message := map[string]any{"product_code": c.ProductCode, "nonce": nonce}
	for name, value := range c.Binding.Request {
		message[name] = value
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	url := c.BaseURL + "/api/v1/license/" + operation
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "License "+c.LicenseKey)
	request.Header.Set("Content-Type", "application/json")
	client := c.HTTP
	if client == nil {
		// A redirect must not carry the license key to another host.
		stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		client = &http.Client{Timeout: 15 * time.Second, CheckRedirect: stay}
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	received, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMax+1))
	if err != nil {
		return nil, err
	}
	return c.believed(Judge(c.Keys, received, c.expected(kind, nonce)))
}

// OpenOffline opens an offline envelope that was issued for this machine.
func (c *Client) OpenOffline(envelope []byte) (*Answer, error) {
	return c.believed(OpenOffline(c.Keys, c.LicenseKey, envelope, c.expected("offline", "")))
}

func (c *Client) expected(kind, nonce string) Expected {
	return Expected{
		Kind: kind, LicenseID: c.LicenseID, ProductID: c.ProductID, ProductCode: c.ProductCode, Nonce: nonce,
		Binding: &c.Binding, Now: time.Now(), HighestIssuedAt: c.HighestIssuedAt,
	}
}

func (c *Client) believed(answer *Answer, err error) (*Answer, error) {
	if err != nil {
		return nil, err
	}
	if answer.Member == "data" {
		c.LicenseID, c.ProductID = answer.Text("license_id"), answer.Text("product_id")
	}
	if answer.IssuedAt.After(c.HighestIssuedAt) {
		c.HighestIssuedAt = answer.IssuedAt
	}
	return answer, nil
}

// members are the members of a JSON object: the bytes of each value exactly as received. Structs and maps of
// encoding/json take the last of two equal names, and structs compare names without case: a forged member could pass
// for the signed one.
func members(body []byte) (map[string]json.RawMessage, error) {
	if len(body) > bodyBytesMax || !utf8.Valid(body) {
		return nil, errors.New("too large, or not UTF-8")
	}
	if depthOf(body) > depthMax {
		return nil, errors.New("nested too deep")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	found := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := found[name]; twice {
			return nil, errors.New("a name is there twice")
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		found[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	return found, nil
}

// depthOf counts the levels of objects and arrays of a JSON text.
func depthOf(body []byte) int {
	depth, deepest, isText := 0, 0, false
	for at := 0; at < len(body); at++ {
		switch char := body[at]; {
		case char == '"':
			isText = !isText
		case isText && char == '\\':
			at++
		case !isText && (char == '{' || char == '['):
			depth++
			deepest = max(deepest, depth)
		case !isText && (char == '}' || char == ']'):
			depth--
		}
	}
	return deepest
}

// text is the text that a JSON value is, empty for any other value.
func text(value json.RawMessage) string {
	var found any
	if json.Unmarshal(value, &found) != nil {
		return ""
	}
	result, _ := found.(string)
	return result
}

// strictBase64 takes standard base64 with padding in its one right form.
func strictBase64(encoded string) ([]byte, error) {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil && base64.StdEncoding.EncodeToString(decoded) != encoded {
		err = errors.New("not written as standard base64")
	}
	return decoded, err
}

func instant(written string) (time.Time, error) {
	if !strings.HasSuffix(written, "Z") {
		return time.Time{}, errors.New("not in UTC")
	}
	return time.Parse(time.RFC3339Nano, written)
}

// canonicalText is a JSON text as RFC 8785 writes it; encoding/json escapes more.
func canonicalText(value string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, char := range value {
		switch short := strings.IndexRune("\b\t\n\f\r\"\\", char); {
		case short >= 0:
			out.WriteByte('\\')
			out.WriteByte(`btnfr"\`[short])
		case char < 0x20:
			fmt.Fprintf(&out, `\u%04x`, char)
		default:
			out.WriteRune(char)
		}
	}
	out.WriteByte('"')
	return out.String()
}

func sha256Hex(value string) string {
	digest := sha256.Sum256([]byte(value))
	return hex.EncodeToString(digest[:])
}
