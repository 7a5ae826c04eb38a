package gemini

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

// roundTrip encodes a parsed request and parses it again.
func roundTrip(t *testing.T, name, body string) {
	t.Helper()
	var compacted bytes.Buffer
	if err := json.Compact(&compacted, []byte(body)); err != nil {
		t.Fatal(err)
	}
	first := mustParse(t, compacted.String())
	first.Overrides = first.Unknown
	again, dropped := encode(t, &first.Request, nil)
	for _, m := range first.Hosted {
		first.HostedTools = append(first.HostedTools, m.JSON)
	}
	if len(dropped) > 0 && first.ParallelToolCalls == nil {
		t.Errorf("%s: dropped %v", name, dropped)
	}
	second := mustParse(t, again)
	same(t, name, second.Messages, first.Messages)
	same(t, name, second.Tools, first.Tools)
	same(t, name, second.Sampling, first.Sampling)
	same(t, name, second.ToolChoice, first.ToolChoice)
	same(t, name, second.Unknown, first.Unknown)
	if third, _ := encode(t, &second.Request, nil); third != again && len(second.Unknown) == 0 {
		t.Errorf("%s: the bytes differ:\n%s\n%s", name, again, third)
	}
}

func TestRoundTripOfRecordedRequests(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gemini-cli-0.61.0-turn1.json", "gemini-cli-0.61.0-turn2-parallel.json"} {
		roundTrip(t, name, agentRequest(t, name))
	}
	dir := testdata.Dir(t, "wires", "agentgateway", "requests", "gemini")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, filepath.Base(file), string(b))
	}
}

func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "wires", "agentgateway", "response", "vertex-gemini")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, f, err := Codec{}.NewAssembler(nil).Complete(nil, b)
		if err != nil || len(f.Message.Parts) == 0 || f.Usage.TotalTokens == 0 || f.RawReason != "STOP" || len(f.Faults) > 0 {
			t.Errorf("%s: %v %+v", filepath.Base(file), err, f)
		}
	}
}

// The literals of the translator tests are not all whole requests: each is parsed, or refused by name.
func TestLiteralsOfTranslatorTests(t *testing.T) {
	t.Parallel()
	requests, refused, answers := 0, 0, 0
	for line := range strings.Lines(string(readShared(t, "cliproxyapi", "cases.jsonl"))) {
		var c struct {
			ID, Upstream, Client, Dir string
			Inputs                    []struct {
				Kind string
				JSON json.RawMessage
				Text string
			}
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		for _, in := range c.Inputs {
			switch {
			case c.Dir == "request" && strings.HasPrefix(c.Client, "gemini") && in.Kind == "json":
				var probe map[string]json.RawMessage
				if json.Unmarshal(in.JSON, &probe) != nil {
					continue
				}
				if inner, ok := probe["request"]; ok {
					in.JSON = inner
				}
				req, err := Codec{}.ParseRequest(in.JSON)
				if err != nil {
					refused++
					t.Logf("%s: %s: %s", c.ID, err.(*wire.APIError).Param, err.(*wire.APIError).Message)
					continue
				}
				requests++
				_, _ = encode(t, &req.Request, nil)
			case c.Dir == "response" && (c.Upstream == "gemini" || c.Upstream == "antigravity") && in.Kind == "json":
				body := in.JSON
				var probe map[string]json.RawMessage
				if json.Unmarshal(body, &probe) == nil && probe["response"] != nil {
					body = probe["response"]
				}
				if bytes.Contains(body, []byte(`"candidates"`)) {
					answers++
					if _, _, err := (Codec{}).NewAssembler(nil).Complete(nil, body); err != nil && err != wire.ErrIncomplete {
						t.Errorf("%s: %v", c.ID, err)
					}
				}
			}
		}
	}
	t.Logf("%d requests read, %d refused, %d answers read", requests, refused, answers)
	if requests < 5 || answers < 5 || refused > requests {
		t.Errorf("%d requests read, %d refused, %d answers", requests, refused, answers)
	}
}
