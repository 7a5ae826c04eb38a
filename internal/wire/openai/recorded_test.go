package openai

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// recordedLines returns the chunks of a recording, one a line or in the frames of a stream.
func recordedLines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, ".sse") {
		return events(t, append(b, '\n'))
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "recorded-streams")
	weather := []string{`weather {"location": "San Francisco"}`}
	compact := []string{`weather {"location":"San Francisco"}`}
	for _, tt := range []struct {
		file, unary     string
		calls           []string
		text, reasoning string // reasoning: how it begins
		field           string
		usage           lathe.Usage
	}{
		{file: "alibaba__alibaba-tool-call.chunks.txt", unary: "alibaba__alibaba-tool-call.json", calls: weather,
			usage: lathe.Usage{InputTokens: 295, OutputTokens: 22, TotalTokens: 317}},
		{file: "mistral__mistral-tool-call.chunks.txt", unary: "mistral__mistral-tool-call.json", calls: weather,
			usage: lathe.Usage{InputTokens: 124, OutputTokens: 22, TotalTokens: 146}},
		{file: "mistral__mistral-incremental-tool-call.chunks.txt", calls: []string{`webSearchTool {"query": "current Berlin weather"}`},
			usage: lathe.Usage{InputTokens: 171, OutputTokens: 14, TotalTokens: 185, CachedTokens: 128}},
		{file: "xai__xai-tool-call.chunks.txt", unary: "xai__xai-tool-call.json", calls: compact, reasoning: "First, the user is", field: "reasoning_content",
			usage: lathe.Usage{InputTokens: 291, OutputTokens: 26, TotalTokens: 513, CachedTokens: 290, ReasoningTokens: 196}},
		{file: "openai-compatible__chat__xai-tool-call.chunks.txt", unary: "openai-compatible__chat__xai-tool-call.json", calls: compact, reasoning: "First, the user is asking", field: "reasoning_content",
			usage: lathe.Usage{InputTokens: 307, OutputTokens: 26, TotalTokens: 560, CachedTokens: 306, ReasoningTokens: 227}},
		{file: "openai-compatible__chat__anthropic-fallback-tool-call.sse", calls: []string{`read_file {"path": "a.txt"}`}, text: "Reading it."},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			lines := recordedLines(t, filepath.Join(dir, tt.file))
			bothWays(t, lines)
			ds, f, err := assemble(lines, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			checkDeltas(t, ds, f)
			check := func(how string, f *lathe.Finish) {
				t.Helper()
				got := partsOf(f)
				var calls []string
				for _, c := range got.calls {
					if c.ID == "" {
						t.Errorf("%s: a call without id", how)
					}
					calls = append(calls, c.Name+" "+c.Arguments)
				}
				if d := cmp.Diff(tt.calls, calls); d != "" {
					t.Errorf("%s: calls (-want +got)\n%s", how, d)
				}
				if got.text != tt.text || !strings.HasPrefix(got.reasoning, tt.reasoning) || (got.reasoning == "") != (tt.reasoning == "") {
					t.Errorf("%s: text %q, reasoning %.40q", how, got.text, got.reasoning)
				}
				if r, ok := f.Message.Parts[0].(lathe.Reasoning); ok && r.Field != tt.field {
					t.Errorf("%s: reasoning in %q, want %q", how, r.Field, tt.field)
				}
				if f.Reason != lathe.FinishToolCalls || f.RawReason != "tool_calls" || f.Model == "" || f.ResponseID == "" {
					t.Errorf("%s: reason %q (%q), model %q, id %q", how, f.Reason, f.RawReason, f.Model, f.ResponseID)
				}
				for _, ft := range f.Faults {
					switch ft.Kind {
					case FaultDoneMissing, FaultIndexMissing: // the recordings leave [DONE] out, Mistral the index
					default:
						t.Errorf("%s: fault %s", how, ft.Kind)
					}
				}
			}
			check("stream", f)
			if f.Usage != tt.usage {
				t.Errorf("usage %+v, want %+v", f.Usage, tt.usage)
			}
			if tt.unary == "" {
				return
			}
			body, err := os.ReadFile(filepath.Join(dir, tt.unary))
			if err != nil {
				t.Fatal(err)
			}
			whole, err := ParseCompletion(body, nil)
			if err != nil {
				t.Fatal(err)
			}
			check("whole", whole)
			if whole.Usage.InputTokens != tt.usage.InputTokens {
				t.Errorf("usage of the whole body %+v", whole.Usage)
			}
		})
	}
}

// Where OpenAI's own client understands a stream, the Assembler understands the same.
func TestClientsAgree(t *testing.T) {
	t.Parallel()
	f, err := os.Open(testdata.Dir(t, "stream-cases", "wire-cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	agreed := 0
	in := bufio.NewScanner(f)
	in.Buffer(nil, 4<<20)
	for in.Scan() {
		var c struct {
			ID, Protocol, Body string
			Clients            map[string]struct {
				OK  bool
				Saw string
			}
		}
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		client, found := c.Clients["openai@7.55.0"]
		if !strings.HasPrefix(c.Protocol, "openai-chat-stream") || !found || !client.OK {
			continue
		}
		var saw struct {
			Text    *string                           `json:"c"`
			Refusal *string                           `json:"ref"`
			Calls   [][]string                        `json:"tc"`
			Legacy  *struct{ Name, Arguments string } `json:"fc"`
		}
		if err := json.NewDecoder(strings.NewReader(client.Saw)).Decode(&saw); err != nil {
			t.Fatalf("%s: %v in %s", c.ID, err, client.Saw)
		}
		_, got, err := assemble(events(t, []byte(c.Body)), nil, true)
		if err != nil {
			t.Errorf("%s: %v; the client saw %s", c.ID, err, client.Saw)
			continue
		}
		deref := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		want := answerParts{text: deref(saw.Text), refusal: deref(saw.Refusal)}
		for _, tc := range saw.Calls {
			if tc[2] == "[object Object]" {
				tc[2] = `{"city":"SF"}` // what was sent as an object; the client loses it
			}
			want.calls = append(want.calls, lathe.ToolCall{ID: tc[0], Name: tc[1], Arguments: tc[2]})
		}
		if saw.Legacy != nil {
			want.calls = append(want.calls, lathe.ToolCall{ID: "call_1", Name: saw.Legacy.Name, Arguments: saw.Legacy.Arguments})
		}
		have := partsOf(got)
		have.reasoning = ""
		for i, c := range have.calls {
			if c.ID == "" && i < len(want.calls) {
				want.calls[i].ID = "" // the client makes one up
			}
		}
		opts := cmp.Options{cmp.AllowUnexported(answerParts{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(lathe.ToolCall{}, "Incomplete")}
		if d := cmp.Diff(want, have, opts); d != "" {
			t.Errorf("%s: (-client +got)\n%s\n%s", c.ID, d, client.Saw)
		}
		agreed++
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	if agreed < 5 {
		t.Errorf("only %d cases compared", agreed)
	}
}
