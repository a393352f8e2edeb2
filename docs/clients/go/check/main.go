// Command check tests the package against the published test vectors, and calls a service with it.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"licensing"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

type vectorFile struct {
	Keys []struct {
		Kid       string
		PublicKey string `json:"public_key"`
	}
	Expected                                      map[string]json.RawMessage
	LicenseKey                                    string `json:"license_key"`
	Vectors, Responses, Envelopes, Valid, Invalid []vector
	Requests                                      []struct {
		Name, Request string
		Binding       map[string]any
		ProductCode   string `json:"product_code"`
	}
}

type vector struct {
	Name, Response, Canonical, Rule, Verdict, Kind, Hash, Scheme, Reason string
	LicenseKey                                                           string `json:"license_key"`
	Signature, Envelope, Body, Request                                   json.RawMessage
	Expected                                                             map[string]json.RawMessage
	Secrets                                                              []string
	Headers                                                              map[string]string
	Now                                                                  int64
}

func (v vector) wanted() string {
	for _, wanted := range []string{v.Rule, v.Reason, v.Verdict} {
		if wanted != "" {
			return wanted
		}
	}
	return ""
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func read(folder, name string) (file vectorFile, keys licensing.Keys) {
	if err := json.Unmarshal(must(os.ReadFile(filepath.Join(folder, name+".json"))), &file); err != nil {
		panic(err)
	}
	keys = licensing.Keys{}
	for _, key := range file.Keys {
		keys[key.Kid] = key.PublicKey
	}
	return file, keys
}

// text is the text that a JSON value is, empty for any other value.
func text(value json.RawMessage) (found string) {
	_ = json.Unmarshal(value, &found)
	return found
}

func expectedOf(shared, own map[string]json.RawMessage) (expected licensing.Expected) {
	all := map[string]json.RawMessage{}
	for _, given := range []map[string]json.RawMessage{shared, own} {
		for name, value := range given {
			all[name] = value
		}
	}
	expected = licensing.Expected{
		Kind: text(all["kind"]), LicenseID: text(all["license_id"]), ProductID: text(all["product_id"]),
		ProductCode: text(all["product_code"]), Nonce: text(all["nonce"]),
	}
	var clock struct {
		Now             time.Time
		HighestIssuedAt time.Time `json:"highest_issued_at"`
	}
	must(0, json.Unmarshal(all["clock"], &clock))
	expected.Now, expected.HighestIssuedAt = clock.Now, clock.HighestIssuedAt
	must(0, json.Unmarshal(all["binding"], &expected.Binding))
	return expected
}

func joined(input json.RawMessage) []byte {
	var chunks []struct {
		Base64 string
		Times  int
	}
	must(0, json.Unmarshal(input, &chunks))
	var out bytes.Buffer
	for _, chunk := range chunks {
		out.Write(bytes.Repeat(must(base64.StdEncoding.DecodeString(chunk.Base64)), chunk.Times))
	}
	return out.Bytes()
}

func bindingOf(request map[string]any) licensing.Binding {
	ids := map[string]string{}
	for name, value := range request {
		if id, isText := value.(string); isText {
			ids[name] = id
		}
	}
	if fingerprint, isHardware := ids["fingerprint"]; isHardware {
		return licensing.Hardware(fingerprint)
	}
	return licensing.Container(ids)
}

func ruleOf(_ *licensing.Answer, err error) string {
	var distrusted *licensing.Distrusted
	if errors.As(err, &distrusted) {
		return distrusted.Rule
	} else if err != nil {
		return "failed: " + err.Error()
	}
	return "believe"
}

// checkVectors calls report with each vector's verdict and the wanted one.
func checkVectors(folder string, report func(file, name, given, wanted string)) {
	file, keys := read(folder, "signatures")
	for wanted, group := range map[string][]vector{"believe": file.Valid, "signature": file.Invalid} {
		for _, one := range group {
			body := fmt.Sprintf(`{"data":%s,"signature":%s}`, one.Canonical, one.Signature)
			report("signatures", one.Name, ruleOf(licensing.Judge(keys, []byte(body), licensing.Expected{})), wanted)
		}
	}
	file, keys = read(folder, "responses")
	for _, one := range file.Vectors {
		given := ruleOf(licensing.Judge(keys, []byte(one.Response), expectedOf(file.Expected, one.Expected)))
		report("responses", one.Name, given, one.wanted())
	}
	file, keys = read(folder, "hostile")
	for _, one := range file.Responses {
		given := ruleOf(licensing.Judge(keys, joined(one.Body), expectedOf(file.Expected, one.Expected)))
		report("hostile responses", one.Name, given, one.wanted())
	}
	for _, name := range []string{"hostile", "air-gap"} {
		file, keys = read(folder, name)
		for _, one := range file.Envelopes {
			expected := expectedOf(file.Expected, one.Expected)
			given := ruleOf(licensing.OpenOffline(keys, file.LicenseKey, joined(one.Envelope), expected))
			report(name+" envelopes", one.Name, given, one.wanted())
		}
	}
	for _, one := range file.Requests {
		report("air-gap requests", one.Name, licensing.OfflineRequest(bindingOf(one.Binding), one.ProductCode), one.Request)
	}
	file, keys = read(folder, "offline-envelopes")
	for wanted, group := range map[string][]vector{"believe": file.Valid, "envelope": file.Invalid} {
		for _, one := range group {
			given := ruleOf(licensing.OpenOffline(keys, one.LicenseKey, one.Envelope, licensing.Expected{}))
			report("offline-envelopes", one.Name, given, wanted)
		}
	}
	file, _ = read(folder, "bindings")
	for _, one := range file.Vectors {
		var request map[string]any
		must(0, json.Unmarshal(one.Request, &request))
		binding := bindingOf(request)
		report("bindings", one.Name, binding.Kind+" "+binding.Hash(), one.Kind+" "+one.Hash)
	}
	file, _ = read(folder, "webhooks")
	for _, one := range file.Vectors {
		headers := http.Header{}
		for name, value := range one.Headers {
			headers.Set(name, value)
		}
		verify := licensing.VerifyWebhook
		if one.Scheme == "standard" {
			verify = licensing.VerifyStandardWebhook
		}
		var encoded string
		must(0, json.Unmarshal(one.Body, &encoded))
		body := must(base64.StdEncoding.DecodeString(encoded))
		given := "genuine"
		if _, err := verify(one.Secrets, headers, body, time.Unix(one.Now, 0)); err != nil {
			given = err.Error()
		}
		report("webhooks "+one.Scheme, one.Name, given, one.wanted())
	}
}

func main() {
	switch arguments := os.Args[1:]; {
	case len(arguments) == 2 && arguments[0] == "vectors":
		differences := 0
		report := func(file, name, given, wanted string) {
			note := ""
			if given != wanted {
				differences++
				note = ", but it should be " + wanted
			}
			fmt.Printf("%s: %s: %s%s\n", file, name, given, note)
		}
		checkVectors(arguments[1], report)
		checkDecisions(arguments[1], report)
		fmt.Println(differences, "differences")
		if differences > 0 {
			os.Exit(1)
		}
	case (len(arguments) == 7 || len(arguments) == 8) && arguments[0] == "call":
		client := &licensing.Client{
			BaseURL: arguments[1], LicenseKey: arguments[2], ProductCode: arguments[3],
			Binding: licensing.Hardware(arguments[4]), Keys: licensing.Keys{arguments[5]: arguments[6]},
		}
		show := func(operation string, answer *licensing.Answer, err error) {
			if err != nil {
				fmt.Printf("%s: distrusted %s\n", operation, ruleOf(nil, err))
			} else if answer.Member == "error" {
				fmt.Printf("%s: error %s\n", operation, answer.Text("code"))
			} else {
				fmt.Printf("%s: data %s\n", operation, answer.Text("status"))
			}
		}
		answer, err := client.Activate(context.Background())
		show("activate", answer, err)
		answer, err = client.Validate(context.Background())
		show("validate", answer, err)
		for _, envelope := range arguments[7:] {
			answer, err = client.OpenOffline([]byte(envelope))
			show("open_offline", answer, err)
		}
	case len(arguments) == 9 && arguments[0] == "live":
		live(arguments[1:])
	default:
		fmt.Println("usage: vectors FOLDER | call URL LICENSE_KEY PRODUCT_CODE FINGERPRINT KID PUBLIC_KEY [ENVELOPE]")
		os.Exit(2)
	}
}
