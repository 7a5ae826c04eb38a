// Package sim is the simulated model: a model server in this process, without weights and without a network, for first steps, tests and
// demonstrations. It is a part of the product, and its models are recognizable by their names sim/….
//
//   - sim/demo selects tools by name and description, fills their arguments from the prompt by their
//     schema, and answers from the results. Equal conversations get equal answers.
//   - sim/script returns the turns of a [Script]; [ReplayScript] converts a recorded run to one.
//   - sim/slow is sim/demo with a pause between tokens.
//   - sim/thinking is sim/demo with reasoning, which it signs on the wires that have signatures.
//   - sim/eval follows the prompts of evaluations, and sim/eval-NAME fails to do so in one way;
//     [Misbehaviours] lists them.
//   - sim/obedient follows instructions in any text, and sim/careful only those of its users.
//   - sim/fault-NAME is sim/demo with one fault of real servers on its wire; [Faults] lists them.
//   - A name followed by +DIALECT, such as sim/demo+hermes, is that model with calls as text. It
//     reads tools and results from the text of the request if the wire does not carry them.
//
// [Sim.Model] is a model in this process. [Sim.Handler] serves four wires over HTTP, streamed and not, with the same answers: chat
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

// DemoModel is the name of the model that selects tools by their names and descriptions, fills their arguments from the prompt, and answers
// from their results, all by fixed rules.
const DemoModel = "sim/demo"

// ThinkingModel is the name of the rule-based model that reasons before it answers, and signs the reasoning on the wires that have
// signatures.
const ThinkingModel = "sim/thinking"

// Provider is the name of the provider of all simulated models.
const Provider = "sim"

// Options configure a [Sim]. The zero value is useful.
type Options struct {
	// Scripts are the scripts by name: "NAME" is the script of the model sim/script-NAME, "" that of sim/script.
	Scripts map[string]*Script
	// TokenDelay is the pause between the tokens of sim/slow; 0: 30 ms. It has no effect on other models.
	TokenDelay time.Duration
	// Now returns the time of `created` in answers; nil: a fixed time in 2023, so that answers do not change.
	Now func() time.Time
}

// A Sim is a simulated model server in this process, with models that follow fixed rules. It may be used by several goroutines at once.
type Sim struct {
	opts     Options
	requests atomic.Int64
	failed   failures
}

// failures stores which requests have failed, for faults that fail every second equal request. A request is identified by its body, so
// that concurrent clients do not affect each other.
type failures struct {
	mu   sync.Mutex
	seen map[uint64]bool
}

const maxRemembered = 4096 // number of requests; at this number all are deleted

// next reports whether the request with this body fails now. It alternates for equal bodies.
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

// Names returns the names of the models of this Sim, sorted. It does not list the variants with a dialect, such as "sim/demo+hermes".
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

// A spec is the parsed name of a model. Apart from the dialect, it has only the properties of one model; that of sim/demo has none.
type spec struct {
	dialect *dialect.Dialect // nil: native calls
	fault   *Fault
	script  *Script
	slow    bool   // sim/slow
	thinks  bool   // sim/thinking
	eval    bool   // sim/eval
	how     string // the name of the misbehaviour; "" if it has none
	obeys   bool   // sim/obedient or sim/careful
	careful bool   // sim/careful
}

// unknownModel returns the error for a name that no simulated model has.
func unknownModel(name string) error {
	return fmt.Errorf("no simulated model %q; there are sim/demo, sim/slow, sim/thinking, sim/eval, sim/eval-NAME, sim/obedient, sim/careful, sim/script and sim/fault-NAME, each also with +DIALECT", name)
}

// on returns an error if the model has a fault that is not for the wire.
func (sp *spec) on(p *protocol) error {
	f := sp.fault
	if f == nil || f.On(p.Wire()) {
		return nil
	}
	var wires []string
	for _, w := range f.Wires {
		wires = append(wires, string(w))
	}
	return fmt.Errorf("the fault %s is not for this wire: it is for %s", f.Name, strings.Join(wires, ", "))
}

// parse returns the spec of a model by its name.
func (s *Sim) parse(name string) (spec, error) {
	if name == "" {
		name = DemoModel
	}
	base, written, isText := strings.Cut(name, "+")
	sp := spec{}
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
			return sp, unknownModel(name)
		}
	case base == "sim/script" || strings.HasPrefix(base, "sim/script-"):
		key := strings.TrimPrefix(strings.TrimPrefix(base, "sim/script"), "-")
		if sp.script = s.opts.Scripts[key]; sp.script == nil {
			return sp, unknownModel(name)
		}
	default:
		return sp, unknownModel(name)
	}
	return sp, nil
}

// A Turn is the output of a simulated model in one turn.
type Turn struct {
	Reasoning string
	Text      string
	Calls     []lathe.ToolCall
	Finish    lathe.FinishReason // "": tool_calls if there are calls, else stop
	Usage     lathe.Usage        // as the server reports it
	Delay     time.Duration      // pause before the first token
	Status    int                // status of an HTTP error instead of an answer; 0 for an answer
	Message   string             // message of the HTTP error
	Cut       bool               // close the connection after the last piece

	hidden   string // reasoning of which only the signature is returned
	redacted bool   // hidden is a block of type redacted_thinking, on the wire Messages
	unsigned bool   // reasoning has no signature
	before   string // the digest to which the signature is bound; see [exchange.before]
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

// pieces divides text after each space or line end.
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

// runeCut returns the largest length of at most n bytes at which s can be cut between runes, but at least one rune.
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

// tokens returns the simulated number of tokens of n bytes: one for every four bytes or part of them.
func tokens(n int) int64 { return int64((n + 3) / 4) }

// inputTokens returns the simulated number of tokens of a request.
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
			default: // does not count
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
