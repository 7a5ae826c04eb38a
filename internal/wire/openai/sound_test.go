package openai

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// soundLines is an answer as OpenAI's own server streams it.
func soundLines() []string {
	line := func(delta, finish string) string {
		return `{"id":"u","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
	}
	lines := []string{line(`{"role":"assistant","content":""}`, "null"), line(`{"content":"Hel"}`, "null"), line(`{"content":"lo"}`, "null")}
	for i, args := range []string{`{\"a\":1,`, `{\"b\":`} {
		lines = append(lines, line(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":"t%d","arguments":""}}]}`, i, i, i), "null"))
		for _, piece := range []string{args, `\"x\":`[2*i:], "[2,", "3]}"} {
			if i == 1 && piece == `x\":` {
				continue
			}
			lines = append(lines, line(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":"%s"}}]}`, i, piece), "null"))
		}
	}
	return append(lines, line(`{}`, `"tool_calls"`), `{"id":"u","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`, "[DONE]")
}

func frames(lines []string) []byte {
	var b []byte
	for _, l := range lines {
		b = append(append(append(b, "data: "...), l...), "\n\n"...)
	}
	return b
}

// assembled reads frames as a client does.
func assembled(t *testing.T, stream []byte) *lathe.Finish {
	t.Helper()
	a := NewAssembler(nil)
	for _, f := range bytes.Split(bytes.TrimSuffix(stream, []byte("\n\n")), []byte("\n\n")) {
		if _, err := a.Append(nil, bytes.TrimPrefix(f, []byte("data: "))); err != nil {
			t.Fatal(err)
		}
	}
	if !a.Sound() {
		t.Errorf("not sound:\n%s", stream)
	}
	f, err := a.Finish(true)
	if err != nil {
		t.Fatalf("%v:\n%s", err, stream)
	}
	f.Model, f.ResponseID = "", ""
	return f
}

// From whichever event on a stream is written anew, the whole of what the client got is the same answer,
// and sound.
func TestMendingGoesOnFromEveryEvent(t *testing.T) {
	t.Parallel()
	lines := soundLines()
	want := assembled(t, frames(lines))
	for k := range lines {
		a, w := NewAssembler(nil), newChunkWriter("own", true)
		got := frames(lines[:k])
		for i, line := range lines {
			deltas, err := a.Append(nil, []byte(line))
			if err != nil {
				t.Fatal(err)
			}
			if i >= k {
				for _, d := range deltas {
					if !w.passedFinish {
						got = w.AppendDelta(got, d)
					}
				}
				continue
			}
			w.Pass(&lathe.Raw{Deltas: append(a.AppendShown(nil), deltas...), Finished: a.Finished(), UsageOnly: a.UsageOnly()})
		}
		f, err := a.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		got = w.AppendFinish(got, f, nil)
		if d := cmp.Diff(want, assembled(t, got)); d != "" {
			t.Errorf("from event %d on (-want +got):\n%s\n%s", k, d, got)
		}
		for _, once := range []string{`"id":"c0"`, `"id":"c1"`, `"finish_reason":"tool_calls"`, `"role"`, "[DONE]"} {
			if n := strings.Count(string(got), once); n != 1 {
				t.Errorf("from event %d on: %s comes %d times\n%s", k, once, n, got)
			}
		}
	}
}

// A name in several pieces is passed on as it came: the first piece was sent when the others come, so nothing written anew
// could complete the name.
func TestNameInPiecesIsSound(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, delta := range []string{`{"role":"assistant","tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"get_","arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"name":"weather"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}`} {
		lines = append(lines, `{"id":"u","choices":[{"index":0,"delta":`+delta+`,"finish_reason":null}]}`)
	}
	lines = append(lines, `{"id":"u","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")
	calls := assembled(t, frames(lines)).Message.Calls()
	if len(calls) != 1 || calls[0].Name != "get_weather" {
		t.Errorf("the calls are %+v", calls)
	}
}

// Text that comes as one string after the other costs the judgement nothing.
func TestSoundTextDoesNotAllocate(t *testing.T) {
	testdata.CountsAllocations(t)
	a := NewAssembler(nil)
	lines := soundLines()
	for _, l := range lines[:2] {
		if _, err := a.Append(nil, []byte(l)); err != nil {
			t.Fatal(err)
		}
	}
	line, dst := []byte(lines[2]), make([]lathe.Delta, 0, 4)
	if n := testing.AllocsPerRun(100, func() { dst, _ = a.Append(dst[:0], line) }); n > 0.2 {
		t.Errorf("%v allocations", n)
	}
	if !a.Sound() {
		t.Error("not sound")
	}
}
