// Checks recorded histories of licenses for linearizability with Porcupine: there must be one order of the calls of a
// license that agrees with their times and in which the rules below give each answer that was recorded.
//
//	go run . <file of JSON lines> [<folder for drawings of violations>]
//
// A line is one request, see Call. Exit code 1: a history has no such order.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Call is one request of a history. A repeated request is a call of its own.
type Call struct {
	// The license's id.
	History string `json:"history"`
	Client  int    `json:"client"`
	// One of the operations of `decide`, without count.
	Operation string `json:"operation"`
	// Milliseconds. Without an answer a call can take effect at any time after it was sent, or never.
	Sent     int64  `json:"sent"`
	Answered *int64 `json:"answered,omitempty"`
	// acknowledged, refused or unknown.
	Outcome string `json:"outcome"`
	// The code of a refusal.
	Code string `json:"code,omitempty"`
	// The index of the machine that activates, validates or consumes.
	Machine int `json:"machine"`
	// event_id of a consumption, Idempotency-Key of a management call: both take effect once.
	Once   string `json:"once,omitempty"`
	Amount int    `json:"amount,omitempty"`
	// What the answer says is consumed.
	Consumed *int `json:"consumed,omitempty"`
	// Of reset: the new quota, or the count begins at zero.
	Quota         *int `json:"quota,omitempty"`
	ResetConsumed bool `json:"reset_consumed,omitempty"`
	// Of begin and move: the policy's max_activations.
	Activations int `json:"activations,omitempty"`

	once int
}

// state of a license. It is compared, so sets are bits.
type state struct {
	suspended                    bool
	activations, quota, consumed int
	// The machines that are active, and all that ever were.
	active, known uint64
	// The event ids and Idempotency-Keys that took effect.
	used string
}

// step returns whether the state allows the answer, and the state after the call.
func step(before, input, output any) (bool, any) {
	now, call := before.(state), input.(Call)
	after, code := decide(now, call)
	switch call.Outcome {
	case "unknown":
		return true, after
	case "refused":
		return code == call.Code, after
	}
	// A node that repeats a command of another node, with an unknown outcome, finds the slot free already and accepts that.
	if call.Operation == "deactivate" && code == "DEVICE_STATE_CONFLICT" {
		code = ""
	}
	return code == "", after
}

// decide returns the state after a call and the code of its refusal, which changes nothing.
func decide(now state, call Call) (state, string) {
	machine := uint64(1) << call.Machine
	switch call.Operation {
	case "begin":
		return state{activations: call.Activations, quota: *call.Quota}, ""
	case "count":
		if now.consumed != *call.Consumed {
			return now, "another count"
		}
		return now, ""
	case "period end":
		now.consumed = 0
		return now, ""
	case "deactivate":
		if now.known&machine == 0 {
			return now, "DEVICE_NOT_FOUND"
		}
		if now.active&machine == 0 {
			return now, "DEVICE_STATE_CONFLICT"
		}
		now.active &^= machine
		return now, ""
	case "activate", "validate", "consume":
		if now.suspended {
			return now, "LICENSE_SUSPENDED"
		}
		return use(now, call, machine)
	}
	return manage(now, call), ""
}

func use(now state, call Call, machine uint64) (state, string) {
	isActive := now.active&machine != 0
	if call.Operation == "activate" {
		if !isActive && count(now.active) >= now.activations {
			return now, "ACTIVATION_LIMIT_REACHED"
		}
		now.active |= machine
		now.known |= machine
		return now, ""
	}
	if now.known&machine == 0 {
		return now, "DEVICE_NOT_FOUND"
	}
	if !isActive {
		return now, "DEVICE_NOT_ACTIVE"
	}
	if call.Operation == "validate" || isUsed(now.used, call.once) {
		return now, ""
	}
	if now.consumed+call.Amount > now.quota {
		return now, "USAGE_LIMIT_EXCEEDED"
	}
	now.consumed += call.Amount
	now.used = withUsed(now.used, call.once)
	return now, ""
}

// manage applies a call with an Idempotency-Key: a repetition gets the first answer again and changes nothing.
func manage(now state, call Call) state {
	if isUsed(now.used, call.once) {
		return now
	}
	now.used = withUsed(now.used, call.once)
	switch call.Operation {
	case "suspend":
		now.suspended = true
	case "reinstate":
		now.suspended = false
	case "move":
		now.activations = call.Activations
	case "reset":
		if call.Quota != nil {
			now.quota = *call.Quota
		}
		if call.ResetConsumed {
			now.consumed = 0
		}
	default:
		panic("unknown operation " + call.Operation)
	}
	return now
}

func count(bits uint64) int {
	n := 0
	for ; bits != 0; bits &= bits - 1 {
		n++
	}
	return n
}

func isUsed(used string, index int) bool {
	return index/8 < len(used) && used[index/8]&(1<<(index%8)) != 0
}

func withUsed(used string, index int) string {
	bytes := []byte(used)
	for len(bytes) <= index/8 {
		bytes = append(bytes, 0)
	}
	bytes[index/8] |= 1 << (index % 8)
	return string(bytes)
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: step,
	DescribeOperation: func(input, output any) string {
		call := input.(Call)
		text := fmt.Sprintf("%s %s %d", call.Operation, call.Once, call.Amount)
		if call.Consumed != nil {
			text += fmt.Sprintf(" -> consumed %d", *call.Consumed)
		}
		return strings.TrimSpace(text + " " + call.Outcome + " " + call.Code)
	},
	DescribeState: func(at any) string { return fmt.Sprintf("%+v", at) },
}

func operations(calls []Call) []porcupine.Operation {
	sort.SliceStable(calls, func(a, b int) bool { return calls[a].Sent < calls[b].Sent })
	indexes := map[string]int{}
	isRepeated := map[string]bool{}
	var all []porcupine.Operation
	add := func(client int, call Call, end int64) {
		all = append(all, porcupine.Operation{ClientId: client, Input: call, Call: call.Sent, Return: end})
	}
	for _, call := range calls {
		if call.Once != "" {
			if _, isKnown := indexes[call.Once]; !isKnown {
				indexes[call.Once] = len(indexes)
			}
			call.once = indexes[call.Once]
		}
		if call.Answered == nil {
			// Whatever a repetition without an answer may have done, the first call may have done.
			if call.Operation != "validate" && !isRepeated[call.Once] {
				add(call.Client, call, math.MaxInt64)
			}
			isRepeated[call.Once] = call.Once != ""
			continue
		}
		add(call.Client, call, *call.Answered)
		// An answer shows the count at its own time, after the call and perhaps after others, so that is a read of its own.
		if call.Consumed != nil {
			add(call.Client, Call{Operation: "count", Outcome: "acknowledged", Consumed: call.Consumed, Sent: call.Sent}, *call.Answered)
		}
	}
	return all
}

func read(path string) (map[string][]Call, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	histories := map[string][]Call{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call Call
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return nil, err
		}
		histories[call.History] = append(histories[call.History], call)
	}
	return histories, lines.Err()
}

// A history that takes longer is reported as undecided.
const longest = time.Minute

func main() {
	histories, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	names := make([]string, 0, len(histories))
	calls := 0
	for name := range histories {
		names = append(names, name)
		calls += len(histories[name])
	}
	sort.Strings(names)
	counts := map[porcupine.CheckResult]int{}
	for _, name := range names {
		result, info := porcupine.CheckOperationsVerbose(model, operations(histories[name]), longest)
		counts[result]++
		if result == porcupine.Ok {
			continue
		}
		fmt.Printf("%s: %s\n", name, map[bool]string{true: "not linearizable", false: "undecided"}[result == porcupine.Illegal])
		if len(os.Args) > 2 {
			path := filepath.Join(os.Args[2], name+".html")
			if err := porcupine.VisualizePath(model, info, path); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	fmt.Printf("%d histories, %d calls: %d linearizable, %d not, %d undecided\n", len(names), calls,
		counts[porcupine.Ok], counts[porcupine.Illegal], counts[porcupine.Unknown])
	if counts[porcupine.Ok] != len(names) {
		os.Exit(1)
	}
}
