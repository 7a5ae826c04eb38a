package messages

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

// A converted is one literal of a gateway's tests.
type converted struct {
	ID, Upstream, Client, Dir string
	Inputs                    []struct {
		Kind string
		JSON json.RawMessage
		Text string
	}
}

func gatewayCases(t *testing.T) (list []converted) {
	t.Helper()
	sc := bufio.NewScanner(bytes.NewReader(read(t, testdata.Dir(t, "wires", "cliproxyapi", "cases.jsonl"))))
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var c converted
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// TestGatewayRequests: requests from another gateway's tests are read, or refused by name, and keep their form.
func TestGatewayRequests(t *testing.T) {
	n, refused := 0, 0
	for _, c := range gatewayCases(t) {
		if c.Client != "claude" || c.Dir != "request" {
			continue
		}
		for _, in := range c.Inputs {
			if in.Kind != "json" {
				continue
			}
			var m map[string]json.RawMessage
			if json.Unmarshal(in.JSON, &m) != nil || m["messages"] == nil {
				continue
			}
			if m["max_tokens"] == nil {
				m["max_tokens"] = json.RawMessage("4096")
			}
			if m["model"] == nil {
				m["model"] = json.RawMessage(`"m"`)
			}
			body, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			n++
			r, err := Codec{}.ParseRequest(body)
			if err != nil {
				var e *wire.APIError
				if !errors.As(err, &e) || e.Param == "" {
					t.Errorf("%s: %v", c.ID, err)
				}
				refused++
				t.Logf("%s: %s %s", c.ID, e.Param, e.Message)
				continue
			}
			_ = r
			t.Run(c.ID, func(t *testing.T) { checkSecond(t, body) })
		}
	}
	t.Logf("%d requests, %d refused", n, refused)
	if n == 0 || refused*5 > n {
		t.Errorf("%d of %d requests were refused", refused, n)
	}
}

// checkSecond checks that a request that was written once does not change when it is written again: what the wire cannot
// express is gone the first time.
func checkSecond(t *testing.T, body []byte) {
	t.Helper()
	first, _ := again(t, parseRequest(t, body))
	second, dropped := again(t, first)
	if len(dropped) > 0 {
		t.Errorf("dropped the second time: %v", dropped)
	}
	diffRequests(t, first, second)
}

// TestGatewayStreams: streams from another gateway's tests are read without an error, unless they report one or end early.
func TestGatewayStreams(t *testing.T) {
	n := 0
	for _, c := range gatewayCases(t) {
		if c.Upstream != "claude" || c.Dir != "response" {
			continue
		}
		for _, in := range c.Inputs {
			if in.Kind == "json" {
				continue
			}
			stream := []byte(in.Text)
			if !bytes.Contains(stream, []byte("message_start")) {
				continue
			}
			n++
			deltas, f, err := accumulate(t, append(stream, "\n\n"...))
			if err != nil {
				if !errors.Is(err, wire.ErrIncomplete) || bytes.Contains(stream, []byte("message_stop")) {
					t.Errorf("%s: %v", c.ID, err)
				}
				continue
			}
			t.Run(c.ID, func(t *testing.T) { checkWritten(t, deltas, f) })
		}
	}
	t.Logf("%d streams", n)
}
