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
					case faultDoneMissing, faultIndexMissing: // the recordings leave [DONE] out, Mistral the index
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

// The streams that llama.cpp sent, with the calls as they stand in the chunks, also where the arguments
// are no JSON.
func TestRecordedLlamaCpp(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/llamacpp/*.txt")
	if err != nil || len(files) != 10 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	product := `calculator {"expression": "6 * 7907"}`
	for name, want := range map[string]struct {
		calls           []string
		text, reasoning string
		reason          lathe.FinishReason
		tokens          int64
	}{
		"glm46-unterminated-arguments": {calls: []string{`calculator {"expression":"6 * 7`}, reason: lathe.FinishToolCalls, tokens: 1056},
		"gptoss-call":                  {calls: []string{product}, reasoning: "Need the tool calculator now.", reason: lathe.FinishToolCalls, tokens: 819},
		"nemo-parallel":                {calls: []string{product, `get_current_time {"zone": "Asia/Tokyo"}`}, reason: lathe.FinishToolCalls, tokens: 730},
		"qwen3-call":                   {calls: []string{product}, text: "Let me compute that.\n", reason: lathe.FinishToolCalls, tokens: 1085},
		"qwen3-length-midcall": {calls: []string{`calculator {"expression": "1 + 11 + 48 + 85 + 122 + 159 + 196 + 233 + 270 + 307 + 344 + 381`},
			reason: lathe.FinishLength, tokens: 1070},
		"qwen3-noargs":     {calls: []string{`get_current_time {}`}, reason: lathe.FinishToolCalls, tokens: 1058},
		"qwen3-pings-call": {calls: []string{product}, text: "Let me compute that.\n", reason: lathe.FinishToolCalls, tokens: 1085},
		"qwen3-raw-text-bad-call": {text: "<tool_call>\n{\"name\": \"calculator\", \"arguments\": {\"expression\": 6 * }}\n</tool_call><|im_end|>",
			reason: lathe.FinishStop, tokens: 1060},
		"qwen3coder-unknown-tool-swallowed": {reason: lathe.FinishStop, tokens: 1692},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := dataLines(t, filepath.Join("testdata", "llamacpp", name+".txt"))
			ds, f, err := assemble(lines, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			checkDeltas(t, ds, f)
			got := partsOf(f)
			var calls []string
			for _, c := range got.calls {
				calls = append(calls, c.Name+" "+c.Arguments)
				if c.Incomplete != (want.reason == lathe.FinishLength) { // a model may also end a call early by itself
					t.Errorf("call %q: incomplete %v", c.Arguments, c.Incomplete)
				}
			}
			if d := cmp.Diff(want.calls, calls); d != "" {
				t.Errorf("calls (-want +got)\n%s", d)
			}
			if got.text != want.text || got.reasoning != want.reasoning {
				t.Errorf("text %q, reasoning %q", got.text, got.reasoning)
			}
			if f.Reason != want.reason || f.Usage.TotalTokens != want.tokens {
				t.Errorf("reason %q, usage %+v", f.Reason, f.Usage)
			}
		})
	}
	t.Run("glm46-error-mid-text", func(t *testing.T) {
		t.Parallel()
		lines := dataLines(t, "testdata/llamacpp/glm46-error-mid-text.txt")
		ds, _, err := assemble(lines, nil, true)
		if err == nil || len(ds) == 0 {
			t.Errorf("error %v after %d deltas, want the server's error after its text", err, len(ds))
		}
	})
}

// dataLines returns the data of each event of a recorded body.
func dataLines(t *testing.T, file string) (lines []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			lines = append(lines, data)
		}
	}
	return lines
}

// Where OpenAI's own client understands a stream, the Assembler understands the same.
func TestClientsAgree(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/wire-cases.jsonl")
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
