package provider_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// TestRecordedStreams replays what real servers sent, over the wire and through the whole provider,
// flushed after every piece, for several sizes of piece.
func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "recorded-streams")
	for _, c := range []struct {
		file       string
		call       string // name and arguments
		text       string
		reasoning  string // its start
		tokens     int64
		wantFaults bool
	}{
		{"alibaba__alibaba-tool-call.chunks.txt", `weather {"location": "San Francisco"}`, "", "", 317, false},
		{"mistral__mistral-incremental-tool-call.chunks.txt", `webSearchTool {"query": "current Berlin weather"}`, "", "", 185, false},
		{"mistral__mistral-tool-call.chunks.txt", `weather {"location": "San Francisco"}`, "", "", 146, true},
		{"xai__xai-tool-call.chunks.txt", `weather {"location":"San Francisco"}`, "", "First, the user is", 0, false},
		{"openai-compatible__chat__xai-tool-call.chunks.txt", `weather {"location":"San Francisco"}`, "", "First", 560, false},
		{"openai-compatible__chat__anthropic-fallback-tool-call.sse", `read_file {"path": "a.txt"}`, "Reading it.", "", 0, true},
		{"alibaba__alibaba-tool-call.json", `weather {"location": "San Francisco"}`, "", "", 317, false},
		{"mistral__mistral-tool-call.json", `weather {"location": "San Francisco"}`, "", "", 146, false},
		{"openai-compatible__chat__xai-tool-call.json", `weather {"location":"San Francisco"}`, "", "First, the user is", 0, false},
		{"xai__xai-tool-call.json", `weather {"location":"San Francisco"}`, "", "First, the user is", 0, false},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(filepath.Join(dir, c.file))
			if err != nil {
				t.Fatal(err)
			}
			contentType := "text/event-stream"
			if strings.HasSuffix(c.file, ".txt") {
				b = []byte(data(append(strings.Split(strings.TrimSpace(string(b)), "\n"), done)...))
			} else if strings.HasSuffix(c.file, ".json") {
				contentType = "application/json"
			}
			for _, piece := range []int{1 << 20, 1000, 37} {
				chat := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", contentType)
					for rest := b; len(rest) > 0; {
						n := min(piece, len(rest))
						_, _ = w.Write(rest[:n])
						_ = http.NewResponseController(w).Flush()
						rest = rest[n:]
					}
				}, nil)
				a := ask(t, t.Context(), chat)
				if a.err != nil {
					t.Fatal(a.err)
				}
				if len(a.calls) != 1 || a.calls[0].Name+" "+a.calls[0].Arguments != c.call || a.calls[0].ID == "" {
					t.Errorf("got calls %+v, want %s", a.calls, c.call)
				}
				if !json.Valid([]byte(a.calls[0].Arguments)) || a.finish.Reason != lathe.FinishToolCalls {
					t.Errorf("got %+v", a.finish)
				}
				if a.text != c.text || !strings.HasPrefix(a.reasoning, c.reasoning) || a.reasoning != "" && c.reasoning == "" {
					t.Errorf("got text %q, reasoning %.60q", a.text, a.reasoning)
				}
				if c.tokens != 0 && a.finish.Usage.TotalTokens != c.tokens {
					t.Errorf("got usage %+v", a.finish.Usage)
				}
				if got := len(a.finish.Faults) > 0; got != c.wantFaults {
					t.Errorf("got faults %+v", a.finish.Faults)
				}
			}
		})
	}
}

// TestCutStreams cuts recorded streams at every byte: each time the call ends with an answer or an error,
// never with a call that counts as complete and has other arguments than the whole stream.
func TestCutStreams(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]func(t *testing.T) string{
		"llama.cpp, text and a call": func(t *testing.T) string { return testdata.Own(t, llamaCpp, "qwen3-call.txt") },
		"llama.cpp, two calls":       func(t *testing.T) string { return testdata.Own(t, llamaCpp, "nemo-parallel.txt") },
		"a vendor": func(t *testing.T) string {
			return testdata.Dir(t, "recorded-streams", "openai-compatible__chat__anthropic-fallback-tool-call.sse")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(path(t))
			if err != nil {
				t.Fatal(err)
			}
			whole := ask(t, t.Context(), open(t, cut(b, true), nil)).finish.Message.Calls()
			if len(whole) == 0 {
				t.Fatal("the recording has no call")
			}
			for n := range b {
				for _, clean := range []bool{true, false} {
					a := ask(t, t.Context(), open(t, cut(b[:n], clean), nil))
					switch {
					case a.finish != nil:
						for i, got := range a.finish.Message.Calls() {
							if !got.Incomplete && (i >= len(whole) || got.Name != whole[i].Name || got.Arguments != whole[i].Arguments) {
								t.Errorf("cut at %d (clean %v): got %+v", n, clean, got)
							}
						}
					case clean && a.kind() != lathe.UpstreamBadProtocol, !clean && a.kind() != lathe.UpstreamAborted:
						t.Errorf("cut at %d (clean %v): got %v", n, clean, a.err)
					}
				}
			}
		})
	}
}

// llamaCpp is the folder of the streams that llama.cpp sent.
const llamaCpp = "internal/wire/openai/testdata/llamacpp"

// cut answers with b and then ends, cleanly or not.
func cut(b []byte, clean bool) trip {
	return func(r *http.Request) (*http.Response, error) {
		accept(r)
		return respond(&cutBody{bytes.NewReader(b), clean}), nil
	}
}
