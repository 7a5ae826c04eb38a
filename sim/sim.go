// Package sim is the simulated model: a model server in this process, with no weights and no
// network, for first steps, tests and demonstrations. It is a part of the product and says what
// it is: its models are named sim/… everywhere.
//
//   - sim/demo picks tools by name and description, fills their arguments from the prompt by
//     their schema, and answers from the results. The same conversation gives the same reply.
//   - sim/script plays the turns of a [Script]; a recorded run becomes one with [ReplayScript].
//   - sim/slow is sim/demo with a pause between tokens.
//   - sim/thinking is sim/demo with reasoning, which it signs on the wires that have signatures.
//   - sim/eval does what the prompts of evaluations ask for, and sim/eval-NAME fails to in one way;
//     [Misbehaviours] lists them.
//   - sim/obedient does whatever any text tells it, and sim/careful only what its users do.
//   - sim/fault-NAME is sim/demo with one fault of real servers on its wire; [Faults] lists them.
//   - any of them followed by +DIALECT, such as sim/demo+hermes, writes its calls as text, and
//     finds tools and results in the text of the request where the wire does not carry them.
//
// [Sim.Model] is the in-process form. [Sim.Handler] speaks four wires over HTTP, stream and not, with the same replies: chat
// completions and responses of OpenAI, messages of Anthropic, and generateContent of Google.
package sim

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// DemoModel is the name of the rule-based model.
const DemoModel = "sim/demo"

// ThinkingModel is the name of the rule-based model that thinks before it answers, and signs what it thinks on the wires that
// have signatures.
const ThinkingModel = "sim/thinking"

// Provider is the provider name of every simulated model.
const Provider = "sim"

// Options configure a [Sim]. The zero value is useful.
type Options struct {
	// Scripts are the scripts by name: "NAME" is the model sim/script-NAME, "" is sim/script.
	Scripts map[string]*Script
	// TokenDelay is the pause between the tokens of sim/slow; 0: 30 ms.
	TokenDelay time.Duration
	// Now stamps `created` on the wire; nil: a fixed time, so that bytes repeat.
	Now func() time.Time
}

// A Sim is the simulated model server. It is safe for use by several goroutines.
type Sim struct {
	opts     Options
	requests atomic.Int64
	failed   failures
}

// failures remembers which requests failed last, for the faults that fail every other time. It
// goes by the request's body, so that clients side by side do not take each other's turns.
type failures struct {
	mu   sync.Mutex
	seen map[uint64]bool
}

const maxRemembered = 4096 // requests; beyond it everything is forgotten

// next reports whether the request with this body fails now.
func (f *failures) next(body []byte) bool {
	h := fnv.New64a()
	_, _ = h.Write(body) // never fails
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil || len(f.seen) == maxRemembered {
		f.seen = map[uint64]bool{}
	}
	key := h.Sum64()
	if f.seen[key] {
		delete(f.seen, key)
		return false
	}
	f.seen[key] = true
	return true
}

// New returns a Sim. opts may be nil.
func New(opts *Options) *Sim {
	s := &Sim{}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.TokenDelay == 0 {
		s.opts.TokenDelay = 30 * time.Millisecond
	}
	if s.opts.Now == nil {
		s.opts.Now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	}
	return s
}

// Names returns the names of the models that this Sim serves, sorted, dialects left out.
func (s *Sim) Names() []string {
	names := []string{DemoModel, "sim/slow", ThinkingModel, EvalModel, ObedientModel, CarefulModel}
	for _, m := range misbehaviours {
		names = append(names, EvalModel+"-"+m.Name)
	}
	for name := range s.opts.Scripts {
		names = append(names, scriptModel(name))
	}
	for _, f := range Faults() {
		names = append(names, "sim/fault-"+f.Name)
	}
	slices.Sort(names)
	return names
}

func scriptModel(name string) string {
	if name == "" {
		return "sim/script"
	}
	return "sim/script-" + name
}

// A spec is a parsed model name.
type spec struct {
	name    string           // without the dialect
	dialect *dialect.Dialect // nil: native
	fault   *Fault
	script  *Script
	slow    bool
	thinks  bool   // sim/thinking
	eval    bool   // sim/eval
	how     string // it misbehaves
	obeys   bool   // sim/obedient, and sim/careful
	careful bool
}

// unknownModelError says that no simulated model has the name.
type unknownModelError struct{ Name string }

// Error names the models that exist.
func (e *unknownModelError) Error() string {
	return fmt.Sprintf("no simulated model %q; there are sim/demo, sim/slow, sim/thinking, sim/eval, sim/eval-NAME, sim/obedient, sim/careful, sim/script and sim/fault-NAME, each also with +DIALECT", e.Name)
}

// An unknownFaultError says that a fault was asked for on a wire that it is not for.
type unknownFaultError struct {
	Name  string
	Wires []lathe.Wire // that it is for
}

// Error names the wires.
func (e *unknownFaultError) Error() string {
	words := make([]string, 0, len(e.Wires))
	for _, w := range e.Wires {
		words = append(words, string(w))
	}
	return fmt.Sprintf("the fault %s is not for this wire: it is for %s", e.Name, strings.Join(words, ", "))
}

// on returns an error if the model's fault is not for the wire.
func (sp *spec) on(p *protocol) error {
	if sp.fault != nil && !sp.fault.On(p.Wire()) {
		return &unknownFaultError{Name: sp.fault.Name, Wires: sp.fault.Wires}
	}
	return nil
}

func (s *Sim) parse(name string) (spec, error) {
	if name == "" {
		name = DemoModel
	}
	base, written, isText := strings.Cut(name, "+")
	sp := spec{name: base}
	if isText && written != "native" {
		var err error
		if sp.dialect, err = findDialect(written); err != nil {
			return sp, err
		}
	}
	if sp.how, sp.eval = findMisbehaviour(base); sp.eval {
		return sp, nil
	}
	switch {
	case base == DemoModel:
	case base == ObedientModel, base == CarefulModel:
		sp.obeys, sp.careful = true, base == CarefulModel
	case base == ThinkingModel:
		sp.thinks = true
	case base == "sim/slow":
		sp.slow = true
	case strings.HasPrefix(base, "sim/fault-"):
		if sp.fault = findFault(strings.TrimPrefix(base, "sim/fault-")); sp.fault == nil {
			return sp, &unknownModelError{name}
		}
	case base == "sim/script" || strings.HasPrefix(base, "sim/script-"):
		key := strings.TrimPrefix(strings.TrimPrefix(base, "sim/script"), "-")
		if sp.script = s.opts.Scripts[key]; sp.script == nil {
			return sp, &unknownModelError{name}
		}
	default:
		return sp, &unknownModelError{name}
	}
	return sp, nil
}

// A Turn is what a simulated model says in one turn.
type Turn struct {
	Reasoning string
	Text      string
	Calls     []lathe.ToolCall
	Finish    lathe.FinishReason // empty: tool_calls with calls, else stop
	Usage     lathe.Usage
	Delay     time.Duration // before the first token
	Status    int           // an HTTP error instead of an answer
	Message   string        // of that error
	Cut       bool          // the connection breaks off after the last piece

	hidden   string // reasoning that is not shown
	redacted bool   // and is a block of its own type, on the wire of Messages
	unsigned bool   // reasoning has no signature
	before   string // what the signature depends on: see [before]
}

func (t *Turn) finish() lathe.FinishReason {
	switch {
	case t.Finish != "":
		return t.Finish
	case len(t.Calls) > 0:
		return lathe.FinishToolCalls
	default:
		return lathe.FinishStop
	}
}

// pieces cuts text after each space or line end, so that the pieces joined are the text.
func pieces(text string) []string {
	var out []string
	for text != "" {
		i := strings.IndexAny(text, " \n")
		if i < 0 {
			return append(out, text)
		}
		out = append(out, text[:i+1])
		text = text[i+1:]
	}
	return out
}

// runeCut returns the largest cut of s at most n bytes long that does not split a rune, and at
// least one rune.
func runeCut(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(s)
	}
	return n
}

// tokens is the simulated token count of text: about four bytes each.
func tokens(n int) int64 { return int64((n + 3) / 4) }

// inputTokens is the simulated token count of a request.
func inputTokens(req *lathe.Request) int64 {
	in := 0
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case lathe.Text:
				in += len(p.Text)
			case lathe.ToolCall:
				in += len(p.Name) + len(p.Arguments)
			case lathe.ToolResult:
				in += len(p.Content)
			default: // not counted
			}
		}
	}
	for _, sp := range req.Tools {
		in += len(sp.Name) + len(sp.Description) + len(sp.Schema)
	}
	return tokens(in)
}

func usageOf(req *lathe.Request, t *Turn) lathe.Usage {
	if t.Usage != (lathe.Usage{}) {
		return t.Usage
	}
	thoughts := len(t.Reasoning) + len(t.hidden)
	out := len(t.Text) + thoughts
	for _, c := range t.Calls {
		out += len(c.Name) + len(c.Arguments)
	}
	u := lathe.Usage{InputTokens: inputTokens(req), OutputTokens: tokens(out), ReasoningTokens: tokens(thoughts)}
	u.TotalTokens = u.InputTokens + u.OutputTokens
	return u
}
