package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

func toolMessage(r lathe.ToolResult) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{r}}
}

func message(parts ...lathe.Part) lathe.Message {
	return lathe.Message{Role: lathe.RoleAssistant, Parts: parts}
}

func TestSessionHistory(t *testing.T) {
	t.Parallel()
	thought, text := lathe.Reasoning{Text: "hm"}, lathe.Text{Text: "a"}
	commentary := lathe.Text{Text: "I look.", Commentary: true}
	synthetic := lathe.User("Please.")
	synthetic.Synthetic = true
	blob := func(n int) lathe.Blob { return lathe.Blob{Data: make([]byte, n)} }
	member := func(name string) lathe.Member { return lathe.Member{Name: name, Value: json.RawMessage(`1`)} }
	extra := message(text)
	extra.Extra = []lathe.Member{member("reasoning_details"), member("audio"), member("thinking_blocks")}
	plain := message(text)
	plain.Extra = []lathe.Member{member("audio")}
	a := call("a", "echo", ` { "n":1 } `)
	u := lathe.User("x")
	result := func(content string, blobs ...lathe.Blob) lathe.Message {
		return toolMessage(lathe.ToolResult{CallID: "a", Name: "echo", Content: content, Blobs: blobs})
	}
	failed := toolMessage(lathe.ToolResult{CallID: "a", Content: strings.Repeat("e", 65), IsError: true, Code: lathe.CodeTimeout})
	failedCut := toolMessage(lathe.ToolResult{CallID: "a", Content: strings.Repeat("e", 38) + "\n[27 of 65 bytes left out]", IsError: true, Code: lathe.CodeTimeout})
	few := &loop.Retention{MaxOutputBytes: 64}
	for _, tc := range []struct {
		name     string
		opts     *loop.Retention
		in, want []lathe.Message
	}{
		{name: "nothing", in: nil, want: []lathe.Message{}},
		{name: "a conversation stays", in: []lathe.Message{lathe.System("s"), u, message(text)}, want: []lathe.Message{lathe.System("s"), u, message(text)}},
		{name: "reasoning goes", in: []lathe.Message{u, message(thought, text, thought)}, want: []lathe.Message{u, message(text)}},
		{name: "reasoning before a call goes", in: []lathe.Message{u, message(thought, a), result("1")}, want: []lathe.Message{u, message(a), result("1")}},
		{name: "reasoning in the server's own members goes", in: []lathe.Message{extra}, want: []lathe.Message{plain}},
		{name: "a message of reasoning goes", in: []lathe.Message{u, message(thought), u}, want: []lathe.Message{u, u}},
		{name: "and one with blank text", in: []lathe.Message{u, message(thought, lathe.Text{Text: "\n"})}, want: []lathe.Message{u}},
		{name: "commentary goes", in: []lathe.Message{message(thought, commentary, lathe.Text{Text: "So."})}, want: []lathe.Message{message(lathe.Text{Text: "So."})}},
		{name: "commentary stays", opts: &loop.Retention{Mode: loop.RawEphemeral}, in: []lathe.Message{message(thought, commentary)}, want: []lathe.Message{message(commentary)}},
		{name: "a refusal stays", in: []lathe.Message{message(lathe.Refusal{Text: "no"})}, want: []lathe.Message{message(lathe.Refusal{Text: "no"})}},
		{name: "what the loop asked goes", in: []lathe.Message{u, synthetic, message(text)}, want: []lathe.Message{u, message(text)}},
		{name: "a pending call stays", in: []lathe.Message{u, message(a)}, want: []lathe.Message{u, message(a)}},
		{name: "one byte less", in: []lathe.Message{message(a), result(strings.Repeat("x", 2047))}, want: []lathe.Message{message(a), result(strings.Repeat("x", 2047))}},
		{name: "as much as may be", in: []lathe.Message{message(a), result(strings.Repeat("x", 2048))}, want: []lathe.Message{message(a), result(strings.Repeat("x", 2048))}},
		{name: "one byte more", in: []lathe.Message{message(a), result(strings.Repeat("x", 2049))},
			want: []lathe.Message{message(a), result(strings.Repeat("x", 2018) + "\n[31 of 2049 bytes left out]")}},
		{name: "raw", opts: &loop.Retention{StoreRaw: true, MaxOutputBytes: 64}, in: []lathe.Message{message(a), result(strings.Repeat("x", 5000), blob(5000))},
			want: []lathe.Message{message(a), result(strings.Repeat("x", 5000), blob(5000))}},
		{name: "failures are cut too", opts: few, in: []lathe.Message{message(a), failed}, want: []lathe.Message{message(a), failedCut}},
		{name: "no rune is cut", opts: few, in: []lathe.Message{message(a), result("x" + strings.Repeat("é", 40))},
			want: []lathe.Message{message(a), result("x" + strings.Repeat("é", 18) + "\n[44 of 81 bytes left out]")}},
		{name: "less than the least", opts: &loop.Retention{MaxOutputBytes: -1}, in: []lathe.Message{message(a), result(strings.Repeat("x", 64))},
			want: []lathe.Message{message(a), result(strings.Repeat("x", 64))}},
		{name: "blobs that fit stay", opts: few, in: []lathe.Message{message(a), result("1", blob(30), blob(33))}, want: []lathe.Message{message(a), result("1", blob(30), blob(33))}},
		{name: "blobs that do not go", opts: few, in: []lathe.Message{message(a), result("1", blob(30), blob(34))}, want: []lathe.Message{message(a), result("1", blob(30))}},
		{name: "text goes before blobs", opts: few, in: []lathe.Message{message(a), result(strings.Repeat("x", 64), blob(1))},
			want: []lathe.Message{message(a), result(strings.Repeat("x", 64))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			before := fmt.Sprintf("%#v", tc.in)
			got := loop.SessionHistory(tc.in, tc.opts)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if after := fmt.Sprintf("%#v", tc.in); after != before {
				t.Errorf("the history was changed:\n%s", cmp.Diff(before, after))
			}
		})
	}
}

// Whatever the history: what is kept can be sent when it could, calls and their arguments stay,
// nothing is longer than it may be, and keeping twice changes nothing.
func TestSessionHistoryStaysSendable(t *testing.T) {
	t.Parallel()
	finish := &lathe.Finish{Message: lathe.Assistant("ok"), Reason: lathe.FinishStop}
	ready := newLoop(t, generator(func(_ context.Context, _ *lathe.Request, yield func(lathe.Delta, error) bool) {
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: finish}, nil)
	}), nil)
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		in := drawHistory(t)
		opts := &loop.Retention{MaxOutputBytes: rapid.IntRange(64, 200).Draw(t, "max"), StoreRaw: rapid.IntRange(0, 4).Draw(t, "raw") == 0}
		got := loop.SessionHistory(in, opts)
		var calls, answered []string
		for i := range got {
			if got[i].Synthetic {
				t.Errorf("message %d is synthetic", i)
			}
			size := 0
			for _, p := range got[i].Parts {
				switch p := p.(type) {
				case lathe.Reasoning:
					t.Errorf("message %d has reasoning", i)
				case lathe.ToolCall:
					calls = append(calls, p.ID+p.Arguments)
				case lathe.ToolResult:
					answered = append(answered, p.CallID)
					size += len(p.Content)
					for _, b := range p.Blobs {
						size += len(b.Data)
					}
					if !utf8.ValidString(p.Content) || p.Content == "" {
						t.Errorf("message %d: content %q", i, p.Content)
					}
				default:
				}
			}
			if size > opts.MaxOutputBytes && !opts.StoreRaw {
				t.Errorf("message %d has %d bytes, where %d are kept", i, size, opts.MaxOutputBytes)
			}
		}
		var want []string
		for i := range in {
			for _, c := range in[i].Calls() {
				want = append(want, c.ID+c.Arguments)
			}
		}
		if diff := cmp.Diff(want, calls); diff != "" || len(answered) != len(calls) {
			t.Errorf("calls (-before +after), %d answered:\n%s", len(answered), diff)
		}
		if diff := cmp.Diff(got, loop.SessionHistory(got, opts)); diff != "" {
			t.Errorf("twice (-once +twice):\n%s", diff)
		}
		// The loop itself says whether it can be sent.
		res, err := ready.Do(ctx, &loop.Input{Messages: append(got, lathe.User("and now?"))})
		if err != nil || res.Answer != "ok" {
			t.Errorf("sent again: %v", err)
		}
	})
}

func drawHistory(t *rapid.T) []lathe.Message {
	text := func(what string) string {
		return strings.Repeat(rapid.SampledFrom([]string{"", " ", "x", "é", "語", "\xff"}).Draw(t, what), rapid.IntRange(0, 150).Draw(t, "times"))
	}
	history := []lathe.Message{lathe.User("x")}
	for n := range rapid.IntRange(0, 6).Draw(t, "turns") {
		var m lathe.Message
		switch rapid.IntRange(0, 3).Draw(t, "speaker") {
		case 0:
			m = lathe.User(text("user"))
			m.Synthetic = rapid.Bool().Draw(t, "synthetic")
			history = append(history, m)
			continue
		case 1:
			m = message(lathe.Text{Text: text("answer")})
		default:
			for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
				m.Parts = append(m.Parts, call(fmt.Sprint("c", n, "_", i), "echo", text("arguments")))
			}
			m.Role, m.Synthetic = lathe.RoleAssistant, false
		}
		if rapid.Bool().Draw(t, "thinks") {
			m.Parts = append([]lathe.Part{lathe.Reasoning{Text: text("thought")}}, m.Parts...)
		}
		history = append(history, m)
		for _, c := range m.Calls() {
			r := lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: "r" + strings.ToValidUTF8(text("result"), "?")}
			for range rapid.IntRange(0, 2).Draw(t, "blobs") {
				r.Blobs = append(r.Blobs, lathe.Blob{Data: make([]byte, rapid.IntRange(0, 100).Draw(t, "bytes"))})
			}
			history = append(history, toolMessage(r))
		}
	}
	return history
}

// What is kept of commentary, by mode.
func TestRetentionModes(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("é", 100) + " the API_KEY is secret " + strings.Repeat("x", 200)
	for mode, want := range map[loop.RetentionMode]string{
		"":                    "",
		loop.MetricsOnly:      "",
		loop.HashedSlice:      "[commentary: 160 characters, 24d6c489ebd3f46d]",
		loop.RedactedSnippets: strings.Repeat("é", 100) + " the API_KEY is [redacted] " + strings.Repeat("x", 33),
		loop.RawEphemeral:     text,
	} {
		in := []lathe.Message{lathe.User("Hi."), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: text, Commentary: true}, lathe.Text{Text: "Done."}}}}
		opts := &loop.Retention{Mode: mode}
		once := loop.SessionHistory(in, opts)
		got := ""
		for _, p := range once[1].Parts {
			if text, ok := p.(lathe.Text); ok && text.Commentary {
				got += text.Text
			}
		}
		if got != want || once[1].Text() != in[1].Text() {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		if diff := cmp.Diff(once, loop.SessionHistory(once, opts)); diff != "" {
			t.Errorf("%s, done twice:\n%s", mode, diff)
		}
	}
}

// Snippets show no secret, in commentary and in excerpts, wherever they are cut, and showing them again changes nothing.
func TestSnippetsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	const s = "c4n4ry-Value9"
	for text, want := range map[string]string{
		"The api_key=sk-" + s + " is set":                    "The api_key=[redacted] is set",
		`secret="` + s + ` and more", then`:                  `secret="[redacted]", then`,
		`{"client_secret": "` + s + `", "a": 1}`:             `{"client_secret": "[redacted]", "a": 1}`,
		`{"client_secret": "` + strings.Repeat("x", 150) + s: `{"client_secret": "[redacted]`,
		strings.Repeat("x", 150) + " token: true, " + s:      strings.Repeat("x", 150) + " token: ",
		`{\"db\":\"https://u:` + s + `@host\"}`:              `{\"db\":\"https://[redacted]@host\"}`,
		"Set-Cookie: id=" + s + "; Path=/":                   "Set-Cookie: [redacted]",
		"token: ghp_" + s:                                    "token: [redacted]",
		"the password is " + s + "; go on":                   "the password is [redacted]; go on",
		"Authorization: Bearer eyJ" + s:                      "Authorization: Bearer [redacted]",
		"sent Bearer " + s + " again":                        "sent Bearer [redacted] again",
		"the user wrote to " + s + "@mail.example.org":       "the user wrote to [redacted]",
		"AKIA" + s + " works":                                "[redacted] works",
		"the user has a token limit":                         "the user has a token limit",
		strings.Repeat("x", 150) + " password " + s:          strings.Repeat("x", 150) + " password ",
		strings.Repeat("x", 140) + " password=" + s:          strings.Repeat("x", 140) + " password=[redacted]",
		strings.Repeat("x", 145) + " password=" + s:          strings.Repeat("x", 145) + " password=",
		strings.Repeat("x", 150) + " Bearer " + s:            strings.Repeat("x", 150) + " Bearer ",
	} {
		opts := &loop.Retention{Mode: loop.RedactedSnippets}
		once := opts.CompactEvent(event.Event{Data: &event.ToolCallParseError{RawExcerpt: text}})
		if got := once.Data.(*event.ToolCallParseError).RawExcerpt; got != want {
			t.Errorf("excerpt %q: %q, want %q", text, got, want)
		}
		history := []lathe.Message{{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: text, Commentary: true}, lathe.Text{Text: "Done."}}}}
		for range 2 {
			history = loop.SessionHistory(history, opts)
			if got := history[0].Parts[0].(lathe.Text).Text; got != want {
				t.Errorf("commentary %q: %q, want %q", text, got, want)
			}
		}
	}
}

// The turn that goes on stays whole, and what stood before it is kept as settings say.
func TestKeptHistoryLeavesAnOpenTurn(t *testing.T) {
	t.Parallel()
	thought, a, b, u := lathe.Reasoning{Text: "hm"}, call("a", "echo", "{}"), call("b", "ask", "{}"), lathe.User("x")
	note := lathe.User("Please.")
	note.Synthetic = true
	result := toolMessage(lathe.ToolResult{CallID: "a", Name: "echo", Content: strings.Repeat("x", 100)})
	over := []lathe.Message{u, message(thought, a), result, message(thought, lathe.Text{Text: "Done."})}
	cut := []lathe.Message{u, message(a), toolMessage(lathe.ToolResult{CallID: "a", Name: "echo", Content: strings.Repeat("x", 36) + "\n[64 of 100 bytes left out]"}), message(lathe.Text{Text: "Done."})}
	open := []lathe.Message{u, message(thought, a), result, note, message(thought, a, b), result}
	keeps := (&loop.Retention{MaxOutputBytes: 64}).RunRetention()
	for _, tc := range []struct {
		name     string
		in, want []lathe.Message
	}{
		{"nothing", nil, []lathe.Message{}},
		{"a turn that is over", over, cut},
		{"an open turn", open, open},
		{"an open turn without its user", open[1:], open[1:]},
		{"both", append(over[:4:4], open...), append(cut[:4:4], open...)},
		{"a call that was never answered, before a later turn", append(open[:6:6], u), loop.SessionHistory(append(open[:6:6], u), &loop.Retention{MaxOutputBytes: 64})},
	} {
		if diff := cmp.Diff(tc.want, loop.KeptHistory(tc.in, keeps)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.name, diff)
		}
	}
	if got := loop.KeptHistory(over, nil); len(got) != len(over) || &got[0] != &over[0] {
		t.Error("without settings, the messages are not those that were given")
	}
}
