package loop_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

var update = flag.Bool("update", false, "write journals of this version that are not there; those that are stay")

// journals holds logs as the versions of this program wrote them, in a folder for each version of the
// stored form. They are never written again: each later version must read them.
const journals = "testdata/journals"

// F17: what an earlier version has written can be read, comes to the same state, and can be gone on
// with. Each member of each record is still known by its name.
func TestF17_JournalsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	if *update {
		writeJournals(t)
	}
	files, err := filepath.Glob(filepath.Join(journals, "*", "*.jsonl"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d journals, %v", len(files), err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		l := readJournal(t, file)
		for i, e := range l.events(t) {
			seen[e.Data.EventType()] = true
			if gone := unknown(t, &e, l.lines[i]); len(gone) > 0 {
				t.Errorf("%s:%d: not known any more: %v", file, i+1, gone)
			}
		}
		state := l.fold(t)
		want, err := os.ReadFile(strings.TrimSuffix(file, ".jsonl") + ".state")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), describe(state)); diff != "" {
			t.Errorf("%s comes to another state (-then +now):\n%s", file, diff)
		}
		if state.Finished == nil {
			goesOn(t, file, l)
		}
	}
	for _, name := range event.Types() {
		if live := strings.HasSuffix(name, "Delta") || name == "ToolCallProgress"; !seen[name] && !live {
			t.Errorf("no journal has a %s", name)
		}
	}
}

func readJournal(t *testing.T, file string) *log {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return &log{lines: strings.Split(strings.TrimSpace(string(b)), "\n")}
}

// unknown says which members of a record are not known by their names any more, or have other values.
// There may be more of them by now.
func unknown(t *testing.T, e *event.Event, line string) []string {
	t.Helper()
	now, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return lacks(e.Data.EventType(), decoded(t, []byte(line)), decoded(t, now))
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func lacks(where string, then, now any) (out []string) {
	switch old := then.(type) {
	case map[string]any:
		have, _ := now.(map[string]any)
		for name, v := range old {
			if _, there := have[name]; !there {
				out = append(out, where+"."+name)
				continue
			}
			out = append(out, lacks(where+"."+name, v, have[name])...)
		}
	case []any:
		have, _ := now.([]any)
		if len(old) != len(have) {
			return append(out, where)
		}
		for i := range old {
			out = append(out, lacks(fmt.Sprintf("%s[%d]", where, i), old[i], have[i])...)
		}
	default:
		if !reflect.DeepEqual(then, now) {
			out = append(out, where)
		}
	}
	return out
}

// goesOn resumes the run of a journal that has no end. A call that was begun and writes is not made again.
func goesOn(t *testing.T, file string, l *log) {
	t.Helper()
	w, begun := &world{}, l.fold(t).Open
	answers := map[string]lathe.Output{"m": {Data: json.RawMessage(`"theirs"`)}}
	var res *event.Result
	for range 2 { // the second time with the result of the client's call, where the first has made it
		if res == nil || res.Reason == lathe.ReasonAwaitingToolResults {
			res = l.run(t, journalLoop(t, w, yes), &loop.Input{Resume: l.fold(t), Answers: answers}, 1_000)
		}
	}
	if res == nil || res.Answer != "done" {
		t.Fatalf("%s: %+v", file, res)
	}
	for _, o := range begun {
		if o.Begun && len(w.done[o.ID]) != 0 {
			t.Errorf("%s: %s was done again", file, o.ID)
		}
	}
}

// describe says what a state is, for people and for comparison.
func describe(s *loop.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s request %s session %s principal %s depth %d labels %v target %s\n",
		s.Run.RunID, s.Run.RequestID, s.Run.SessionID, s.Run.Principal, s.Run.Depth, s.Run.Labels, s.Target)
	fmt.Fprintf(&b, "last %d turn %d attempt %d planned %d started from %d messages\n", s.LastID, s.Turn, s.Attempt, s.Planned, s.Start)
	fmt.Fprintf(&b, "history %s\n", shape(s.Messages))
	u := s.Usage // field by field: the members that it gets later are not in the journals
	fmt.Fprintf(&b, "usage {InputTokens:%d OutputTokens:%d TotalTokens:%d CachedTokens:%d ReasoningTokens:%d} cost %v\n",
		u.InputTokens, u.OutputTokens, u.TotalTokens, u.CachedTokens, u.ReasoningTokens, s.Cost)
	for _, c := range s.Trace {
		fmt.Fprintf(&b, "turn %d: %s, %s, %d messages, %d tools, %d ignored, calls %+v\n", c.Turn, c.Model, c.Finish, c.Messages, c.Tools, c.IgnoredToolCalls, c.Calls)
	}
	for i := range s.Open {
		o := &s.Open[i]
		fmt.Fprintf(&b, "open %s %s %s seq %d planned %v asked %v digest %.8s expires %d begun %v refused %q\n",
			o.ID, o.Name, o.Arguments, o.Seq, o.Planned, o.Asked, o.Digest, o.ExpiresAt.Unix(), o.Begun, o.Refused)
	}
	if len(s.Loaded) > 0 {
		fmt.Fprintf(&b, "loaded %q\n", s.Loaded)
	}
	fmt.Fprintf(&b, "paused %q\n", s.Paused)
	if f := s.Finished; f != nil {
		fmt.Fprintf(&b, "finished %s %s after %d turns and %d calls: %q %s %s\n", f.Reason, f.Status, f.Turns, f.ToolCalls, f.Answer, f.ErrorCode, f.Limit)
	}
	return b.String()
}

func journalLoop(t *testing.T, w *world, a approve) *loop.Loop {
	t.Helper()
	turns := byHistory{
		ask(call("r", "read", `{"n":1}`), call("begun", "write", `{"n":2}`)).cost(0.25),
		ask(call("asked", "asked", `{"n":3}`), call("held", "write", `{"n":4}`), call("m", "mine", `{"n":5}`), call("u", "nothing", `{}`)),
		textTurn("done"),
	}
	lp, err := loop.New(turns, newRunner(t, &tool.Options{Policy: askOf{"asked"}, Approver: a, Now: func() time.Time { return time.Unix(1_000_000, 0) }},
		w.tool("read", lathe.ReadOnly), w.tool("write", lathe.Writes), w.tool("asked", lathe.Writes)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return lp
}

func journalInput() *loop.Input {
	in := user("x")
	in.Park, in.Target, runinput.Of(in).User = true, "main", "ann"
	in.Run.Principal, in.Run.Labels, in.Run.SessionID = "key 1", map[string]string{"team": "a"}, "s"
	in.ClientTools = []*lathe.ToolSpec{{Name: "mine", Schema: json.RawMessage(`{"type":"object"}`)}}
	in.Settings, in.Limits = &lathe.Settings{MaxParallel: 2}, &lathe.Limits{MaxIterations: 5, ApprovalTTL: 24 * time.Hour}
	in.Allow = []string{"read", "write", "asked"}
	return in
}

// writeJournals writes what this version writes of runs in several states, and a journal in which every
// field of every record has a value.
func writeJournals(t *testing.T) {
	t.Helper()
	until := func(last func(event.Data) bool) *log {
		for n := 1; n < 100; n++ {
			l := &log{}
			l.run(t, journalLoop(t, &world{}, notYet), journalInput(), n)
			if events := l.events(t); last(events[len(events)-1].Data) {
				return l
			}
		}
		t.Fatal("it never comes to that")
		return nil
	}
	waits := func() *log {
		return until(func(d event.Data) bool { _, ok := d.(*event.RunPaused); return ok })
	}
	answered := waits()
	answers := map[string]lathe.Output{"m": {Data: json.RawMessage(`"theirs"`)}}
	answered.run(t, journalLoop(t, &world{}, yes), &loop.Input{Resume: answered.fold(t), Answers: answers}, 1_000)
	denied := waits()
	no := func() (lathe.Approval, error) { return lathe.Approval{By: "bob", ReasonCode: "denied_by_user"}, nil }
	denied.run(t, journalLoop(t, &world{}, no), &loop.Input{Resume: denied.fold(t), Answers: answers}, 1_000)
	searchInput := journalInput()
	searchInput.Allow = nil
	searched, model := &log{}, byHistory{ask(call("s", tool.SearchName, `{"names":["tool_02"]}`)), ask(call("a", "tool_02", `{"n":1}`)), textTurn("done")}
	searched.run(t, searchLoop(t, model, searchedSet(t, 5, tool.Search{Mode: tool.SearchOn})), searchInput, 1_000)
	for name, l := range map[string]*log{
		"loads-tools": searched, "answered": answered, "denied": denied, "waits": waits(), "everything": everything(t),
		"killed-in-a-model-call": until(func(d event.Data) bool { _, ok := d.(*event.ModelCallStarted); return ok }),
		"killed-in-a-write": until(func(d event.Data) bool {
			p, ok := d.(*event.ToolCallPlanned)
			return ok && p.ToolCallID == "begun"
		}),
	} {
		path := filepath.Join(journals, "v1", name)
		if _, err := os.Stat(path + ".jsonl"); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		for ext, text := range map[string]string{".jsonl": strings.Join(l.lines, "\n") + "\n", ".state": describe(l.fold(t))} {
			if err := os.WriteFile(path+ext, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// everything is a log that has each record with a value in each of its fields.
func everything(t *testing.T) *log {
	t.Helper()
	l := &log{}
	for i, d := range []event.Data{&event.RunStarted{}, &event.ModelCallStarted{}, &event.ToolCallParseError{}, &event.ModelCallFinished{},
		&event.ToolCallProposed{}, &event.ToolCallPlanned{}, &event.ApprovalRequested{}, &event.RunPaused{}, &event.RunResumed{}, &event.ApprovalResolved{},
		&event.ToolCallExecuted{}, &event.ToolsLoaded{}, &event.ToolCallResult{}, &event.RunFinished{}} {
		fill(reflect.ValueOf(d).Elem())
		switch d := d.(type) {
		case *event.RunStarted:
			d.Messages = []lathe.Message{lathe.User("x")}
			d.Input = json.RawMessage(`{"version":1,"depth":1,"client_tools":[{"Name":"mine"}],"allow":["x"],"settings":{},"limits":{},"sampling":{},"user":"x"}`)
		case *event.ModelCallFinished:
			d.Status = "success"
			d.Message = &lathe.Message{Role: lathe.RoleAssistant, Name: "x", Synthetic: true, Extra: []lathe.Member{{Name: "x", Value: json.RawMessage(`1`)}}, Parts: []lathe.Part{
				lathe.Text{Text: "x", Commentary: true}, lathe.Reasoning{Text: "x", Field: "thinking"}, lathe.Refusal{Text: "x"},
				lathe.Blob{MediaType: "image/png", Data: []byte{0}, Name: "x", Detail: "low", Raw: json.RawMessage(`1`)},
				lathe.ToolCall{ID: "x", Name: "x", Arguments: "{}", Dialect: "tags", Deprecated: true, Recovered: true, Incomplete: true, ParseError: lathe.CodePayloadParseError,
					Extra: []lathe.Member{{Name: "x", Value: json.RawMessage(`1`)}}}}}
		case *event.RunFinished:
			d.Result = nil
		}
		line, err := json.Marshal(event.Event{ID: int64(i) + 1, Time: time.Unix(1, 0).UTC(), RunID: "run_1", RequestID: "req_1", SessionID: "s", Turn: min(i, 1), Data: d})
		if err != nil {
			t.Fatal(err)
		}
		l.lines = append(l.lines, string(line))
	}
	return l
}

// fill gives each field a value: the text x, the number 1, one element.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		if v.Type() != reflect.TypeFor[*event.Result]() && v.Type() != reflect.TypeFor[*lathe.Message]() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		}
	case reflect.Slice:
		switch {
		case v.Type() == reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(`{"x":1}`))
		case v.Type().Elem().Kind() == reflect.Uint8:
			v.SetBytes([]byte{1})
		case v.Type() != reflect.TypeFor[[]lathe.Message]():
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(2, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f)
			}
		}
	default:
		panic("no way to fill a " + v.Type().String())
	}
}

// A member that is renamed is found, at any depth.
func TestF17_RenamedMembersAreFound(t *testing.T) {
	t.Parallel()
	l := readJournal(t, filepath.Join(journals, "v1", "everything.jsonl"))
	for i, e := range l.events(t) {
		for _, from := range []string{`"data":{`, `"content":{`} {
			line := strings.Replace(l.lines[i], from, from+`"renamed":1,`, 1)
			if got := unknown(t, &e, line); line != l.lines[i] && !slices.Equal(got, []string{e.Data.EventType() + "." + from[1:len(from)-3] + ".renamed"}) {
				t.Errorf("%s: %v", line, got)
			}
		}
	}
}
