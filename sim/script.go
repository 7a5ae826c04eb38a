package sim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Script is the list of answers of a model sim/script. A request with n assistant messages gets answer n+1. A request beyond the last
// answer is an error, so that a script that ends too early is noticed.
type Script struct {
	turns []scriptTurn
}

type scriptTurn struct {
	Turn
	expect []string // texts that the last message of the request must contain
	line   int      // line of the turn in the script, for errors
}

// Limits of a script.
const (
	maxScriptBytes = 8 << 20
	maxScriptTurns = 10_000
)

// ParseScript reads a script:
//
//	# a comment
//	-- turn --
//	reasoning: I should calculate.
//	text: Let me see.
//	call: calculator {"expression":"7 + 35"}
//	call[call_9]: get_current_time {}
//	-- turn --
//	expect: 42
//	text: The answer is
//	  42.
//	finish: stop
//	usage: 120 15
//
// A line that begins with white space continues the value above it, after a line break. Further keys of a turn are `delay: 50ms` for a
// pause before its first token, `error: 429 slow down` for an HTTP error instead of an answer, and `cut:` to close the connection after
// the last piece. `expect` is a text that the last message of the request must contain: otherwise the answer is an error. Calls without an id
// get one. A script has at most 10,000 turns and 8 MiB. The error names the line.
func ParseScript(r io.Reader) (*Script, error) {
	limited := &io.LimitedReader{R: r, N: maxScriptBytes + 1}
	sc := bufio.NewScanner(limited)
	sc.Buffer(nil, maxScriptBytes)
	p := scriptParser{}
	for n := 1; sc.Scan(); n++ {
		if err := p.read(sc.Text(), n); err != nil {
			return nil, err
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("reading a script: %w", err)
	}
	if limited.N == 0 {
		return nil, fmt.Errorf("a script has at most %d bytes", maxScriptBytes)
	}
	if len(p.turns) == 0 {
		return nil, fmt.Errorf("a script needs at least one `-- turn --`")
	}
	return &p.Script, p.endValue()
}

// A scriptParser reads a script line by line. A value ends where the next key or turn begins, and is then set in the last turn.
type scriptParser struct {
	Script
	key   string   // key of the value that is being read; "": none
	value []string // its lines
	line  int      // number of its first line
}

// read reads line n.
func (p *scriptParser) read(line string, n int) error {
	continues := p.key != "" && strings.TrimLeft(line, " \t") != line
	switch {
	case continues:
		p.value = append(p.value, strings.TrimLeft(line, " \t"))
		return nil
	case strings.TrimSpace(line) == "" || line[0] == '#':
		return nil
	}
	if err := p.endValue(); err != nil {
		return err
	}
	key, value, isPair := strings.Cut(line, ":")
	beginsTurn := strings.TrimSpace(line) == "-- turn --"
	switch {
	case beginsTurn && len(p.turns) == maxScriptTurns:
		return fmt.Errorf("line %d: more than %d turns", n, maxScriptTurns)
	case beginsTurn:
		p.turns = append(p.turns, scriptTurn{line: n})
	case len(p.turns) == 0:
		return fmt.Errorf("line %d: a script starts with `-- turn --`", n)
	case !isPair:
		return fmt.Errorf("line %d: want `key: value`, one of text, reasoning, call, expect, finish, usage, delay, error, cut", n)
	default:
		p.key, p.value, p.line = strings.TrimSpace(key), []string{strings.TrimPrefix(value, " ")}, n
	}
	return nil
}

// endValue sets the value that is being read, if any.
func (p *scriptParser) endValue() error {
	key := p.key
	if key == "" {
		return nil
	}
	p.key = ""
	if err := p.turns[len(p.turns)-1].set(key, strings.Join(p.value, "\n")); err != nil {
		return fmt.Errorf("line %d: %w", p.line, err)
	}
	return nil
}

func (t *scriptTurn) set(key, value string) error {
	id := ""
	if rest, ok := strings.CutPrefix(key, "call["); ok && strings.HasSuffix(rest, "]") {
		key, id = "call", strings.TrimSuffix(rest, "]")
	}
	var err error
	switch key {
	case "text":
		t.Text += value
	case "reasoning":
		t.Reasoning += value
	case "expect":
		t.expect = append(t.expect, value)
	case "call":
		name, args, _ := strings.Cut(value, " ")
		if name == "" {
			return fmt.Errorf("call: want NAME ARGUMENTS")
		}
		t.Calls = append(t.Calls, lathe.ToolCall{ID: id, Name: name, Arguments: args})
	case "finish":
		t.Finish = lathe.FinishReason(strings.TrimSpace(value))
	case "usage":
		in, out, _ := strings.Cut(strings.TrimSpace(value), " ")
		if t.Usage.InputTokens, err = strconv.ParseInt(in, 10, 64); err == nil {
			t.Usage.OutputTokens, err = strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		}
		if err != nil {
			return fmt.Errorf("usage: want two numbers, input and output tokens")
		}
		t.Usage.TotalTokens = t.Usage.InputTokens + t.Usage.OutputTokens
	case "delay":
		if t.Delay, err = time.ParseDuration(strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("delay: want a duration such as 50ms")
		}
	case "error":
		code, msg, _ := strings.Cut(strings.TrimSpace(value), " ")
		if t.Status, err = strconv.Atoi(code); err != nil || t.Status < 400 || t.Status > 599 {
			return fmt.Errorf("error: want an HTTP status from 400 to 599 and a message")
		}
		t.Message = msg
	case "cut":
		t.Cut = true
	default:
		return fmt.Errorf("unknown key %q: there are text, reasoning, call, expect, finish, usage, delay, error, cut", key)
	}
	return nil
}

func (s *Script) next(req *lathe.Request) (*Turn, error) {
	n := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleAssistant {
			n++
		}
	}
	if n >= len(s.turns) {
		return nil, fmt.Errorf("the script has %d turns, and the conversation asks for turn %d", len(s.turns), n+1)
	}
	st := &s.turns[n]
	if len(st.expect) > 0 {
		var last string
		if k := len(req.Messages); k > 0 {
			last = lastText(&req.Messages[k-1])
		}
		for _, want := range st.expect {
			if !strings.Contains(last, want) {
				return nil, fmt.Errorf("turn %d of the script (line %d) expects the last message to hold the text of its expect line, and it does not", n+1, st.line)
			}
		}
	}
	t := st.Turn
	t.Calls = slices.Clone(t.Calls)
	for i := range t.Calls {
		if t.Calls[i].ID == "" {
			t.Calls[i].ID = "call_" + itoa(readConversation(req).total+i+1)
		}
	}
	return &t, nil
}

func lastText(m *lathe.Message) string {
	var b strings.Builder
	b.WriteString(m.Text())
	for _, p := range m.Parts {
		if r, ok := p.(lathe.ToolResult); ok {
			b.WriteString(r.Content)
		}
	}
	return b.String()
}

// ReplayScript returns a script for a recorded run: r contains JSON lines of events with their content, as `lathe run --json` prints
// them. Each successful model call is a turn, at most 10,000. A line may have at most 8 MiB. The error names the line, and wraps
// [lathe.ErrContentRemoved] if a store has removed content of a model call.
func ReplayScript(r io.Reader) (*Script, error) {
	s := &Script{}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxScriptBytes)
	for n := 1; sc.Scan(); n++ {
		if strings.TrimSpace(sc.Text()) == "" {
			continue
		}
		var e event.Event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		f, ok := e.Data.(*event.ModelCallFinished)
		if !ok || f.Status != "success" {
			continue
		}
		if e.Removed > 0 {
			return nil, fmt.Errorf("line %d: %w", n, lathe.ErrContentRemoved)
		}
		if f.Message == nil {
			return nil, fmt.Errorf("line %d: this record has no content, so there is nothing to replay", n)
		}
		if len(s.turns) == maxScriptTurns {
			return nil, fmt.Errorf("line %d: more than %d turns", n, maxScriptTurns)
		}
		s.turns = append(s.turns, scriptTurn{Turn: turnOf(f), line: n})
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("reading a recorded run: %w", err)
	}
	if len(s.turns) == 0 {
		return nil, fmt.Errorf("the record holds no model call that succeeded")
	}
	return s, nil
}

func turnOf(f *event.ModelCallFinished) Turn {
	t := Turn{Text: f.Message.Text(), Calls: f.Message.Calls(), Usage: f.Usage, Finish: f.FinishReason}
	for _, p := range f.Message.Parts {
		if r, ok := p.(lathe.Reasoning); ok {
			t.Reasoning += r.Text
		}
	}
	return t
}
