package messages

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An event is one event of a stream.
type event struct {
	typ  string
	data []byte
}

func events(t testing.TB, stream []byte) (list []event) {
	t.Helper()
	r := sse.NewReader(bytes.NewReader(stream), nil)
	for {
		e, err := r.Next()
		if err != nil {
			return list
		}
		list = append(list, event{e.Type, bytes.Clone(e.Data)})
	}
}

// accumulate reads a stream.
func accumulate(t testing.TB, stream []byte) ([]lathe.Delta, *lathe.Finish, error) {
	t.Helper()
	a := Codec{}.NewAssembler(nil)
	var deltas []lathe.Delta
	for _, e := range events(t, stream) {
		var err error
		if deltas, err = a.Append(deltas, e.typ, e.data); err != nil {
			return deltas, nil, err
		}
	}
	f, err := a.Finish(true)
	return deltas, f, err
}

// parseRequest reads a request that must be valid.
func parseRequest(t testing.TB, body []byte) *wire.ClientRequest {
	t.Helper()
	r, err := Codec{}.ParseRequest(body)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, err.(*wire.APIError).Message, body)
	}
	return r
}

// again writes a request that was parsed and parses it again.
func again(t testing.TB, r *wire.ClientRequest) (*wire.ClientRequest, []string) {
	t.Helper()
	in := r.Request
	for _, h := range r.Hosted {
		in.HostedTools = append(in.HostedTools, h.JSON)
	}
	in.Overrides = r.Unknown
	body, dropped := Codec{}.AppendRequest(nil, &in, &wire.EncodeOptions{Stream: r.Stream})
	if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return parseRequest(t, body), dropped
}

// checkRoundTrip checks that a request is the same after it was written.
func checkRoundTrip(t *testing.T, body []byte) {
	t.Helper()
	first := parseRequest(t, body)
	second, dropped := again(t, first)
	if len(dropped) > 0 {
		t.Errorf("dropped: %v", dropped)
	}
	diffRequests(t, first, second)
}

func diffRequests(t *testing.T, first, second *wire.ClientRequest) {
	t.Helper()
	if d := cmp.Diff(first.Request, second.Request); d != "" {
		t.Errorf("the request changed (-read +written and read):\n%s", d)
	}
	if first.Stream != second.Stream || len(first.Hosted) != len(second.Hosted) || len(first.Unknown) != len(second.Unknown) {
		t.Errorf("stream, hosted tools or unknown members changed: %+v, %+v", first, second)
	}
}

// TestRecordedRequestsRoundTrip: requests of real clients keep all that both forms know.
func TestRecordedRequestsRoundTrip(t *testing.T) {
	for _, name := range []string{"claude-code-2.1.197-turn1.json", "claude-code-2.1.197-turn2-parallel.json"} {
		t.Run(name, func(t *testing.T) {
			var record struct{ Body json.RawMessage }
			if err := json.Unmarshal(read(t, testdata.Dir(t, "wires", "agents", name)), &record); err != nil {
				t.Fatal(err)
			}
			checkRoundTrip(t, record.Body)
		})
	}
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t, "wires", "agentgateway", "requests", "messages"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no requests: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			checkRoundTrip(t, read(t, file))
		})
	}
}

// TestRecordedAnswers: answers of the API and of gateways are read, and written again they read the same.
func TestRecordedAnswers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t, "wires", "agentgateway", "response", "anthropic"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no answers: %v", err)
	}
	files = append(files, testdata.Dir(t, "wires", "examples", "messages.sse"))
	for _, file := range files {
		name := filepath.Base(file)
		if name == "count_tokens.json" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := read(t, file)
			var deltas []lathe.Delta
			var f *lathe.Finish
			if strings.HasPrefix(string(b), "event:") {
				deltas, f, err = accumulate(t, b)
			} else {
				deltas, f, err = Codec{}.NewAssembler(nil).Complete(nil, b)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Faults) > 0 {
				t.Errorf("faults: %v", f.Faults)
			}
			checkWritten(t, deltas, f)
		})
	}
}

// checkWritten writes an answer as a stream and whole, and checks that both read as f.
func checkWritten(t testing.TB, deltas []lathe.Delta, f *lathe.Finish) {
	t.Helper()
	head := wire.AnswerHead{RunID: "run_1", Model: f.Model}
	w := Codec{}.NewWriter(&head)
	var stream []byte
	for _, d := range deltas {
		stream = w.AppendDelta(stream, d)
	}
	stream = w.AppendFinish(stream, f, nil)
	_, streamed, err := accumulate(t, stream)
	if err != nil {
		t.Fatalf("%v\n%s", err, stream)
	}
	whole := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: head, Finish: f})
	_, read, err := Codec{}.NewAssembler(nil).Complete(nil, whole)
	if err != nil {
		t.Fatalf("%v\n%s", err, whole)
	}
	want := *f
	want.ResponseID = "msg_1"
	want.RawReason = streamed.RawReason
	want.Faults = nil
	for name, got := range map[string]*lathe.Finish{"streamed": streamed, "whole": read} {
		if d := cmp.Diff(&want, got); d != "" {
			t.Errorf("%s (-answer +read):\n%s", name, d)
		}
	}
}
