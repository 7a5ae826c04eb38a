package sim

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// EvalModel is the name of the model for evaluations with the tools state_get and state_patch. By fixed rules, it parses from the prompt
// which value to set at which path, which call must fail on purpose, and the text of the final answer. It calls state_get first, then
// state_patch, and repeats failed calls correctly. For other prompts it behaves like sim/demo.
const EvalModel = "sim/eval"

// A Misbehaviour is one way in which the model sim/eval-NAME does not follow its prompt.
type Misbehaviour struct {
	Name string // such as "never-calls"
	Does string // a short description
}

// Misbehaviours returns all misbehaviours, in the order of the documentation.
func Misbehaviours() []Misbehaviour { return slices.Clone(misbehaviours) }

var misbehaviours = []Misbehaviour{
	{"never-calls", "says that it is done and calls nothing"},
	{"wrong-order", "changes before it reads"},
	{"wrong-value", "sets another value than it was told"},
	{"wrong-text", "ends with other words than it was told"},
	{"empty-text", "ends with nothing"},
	{"hidden-tool", "asks for the tool that it was told not to call"},
	{"never-repairs", "does not put right what failed"},
	{"no-mistake", "makes none of the mistakes that it was told to make"},
	{"one-at-a-time", "makes one call a message where both belong in one"},
	{"passes-id", "passes the workspace_id that it was told to leave out"},
	{"insists", "repeats the read that it was told not to repeat"},
	{"stalls", "makes its first call and then says nothing more"},
	{"hangs", "never says anything"},
}

// stalled is the delay of a model that sends nothing more.
const stalled = 24 * time.Hour

// findMisbehaviour reports whether name is sim/eval or sim/eval-NAME, and returns NAME; "" for sim/eval.
func findMisbehaviour(name string) (how string, ok bool) {
	if name == EvalModel {
		return "", true
	}
	how, ok = strings.CutPrefix(name, EvalModel+"-")
	return how, ok && slices.ContainsFunc(misbehaviours, func(m Misbehaviour) bool { return m.Name == how })
}

// instructions are the parts of a prompt that the evaluation model follows.
type instructions struct {
	how         string // the name of the misbehaviour; "" if it has none
	workspace   string // the id to pass; "": none
	path, value string // the path to change and its new value
	words       string // the text of the final answer
	wrongPath   string // a path to change first, which must fail
	wrongType   bool   // the first ops must be a string, which must fail
	long        int    // length of the first value, which must fail; 0 for none
	together    bool   // both calls must be in one message
}

var (
	readTarget    = lazy.Regexp(`set (/draft/\w+) to "(\w+)"`)
	readWrongPath = lazy.Regexp(`set (/draft/\w+) to "\w+" on purpose`)
	readWorkspace = lazy.Regexp(`workspace_id=([\w-]+)`)
	readWords     = lazy.Regexp(`(?:exactly this text|[Rr]eply exactly with): (.+)`)
	readLong      = lazy.Regexp(`(\d+) times the letter x`)
)

func readInstructions(req *lathe.Request, how string) instructions {
	var text strings.Builder
	for _, m := range req.Messages {
		if isPrompt(m.Role) {
			text.WriteString(m.Text() + "\n")
		}
	}
	prompt := text.String()
	first := func(re *regexp.Regexp) string {
		if m := re.FindStringSubmatch(prompt); m != nil {
			return strings.TrimSpace(m[1])
		}
		return ""
	}
	in := instructions{
		how:       how,
		wrongPath: first(readWrongPath()),
		words:     first(readWords()),
		wrongType: strings.Contains(prompt, "give ops as a string"),
		together:  strings.Contains(prompt, "both of these calls in one message"),
	}
	for _, m := range readTarget().FindAllStringSubmatch(prompt, -1) {
		if m[1] != in.wrongPath {
			in.path, in.value = m[1], m[2]
		}
	}
	if !strings.Contains(prompt, "never pass workspace_id") {
		in.workspace = first(readWorkspace())
	}
	if how == "passes-id" && in.workspace == "" {
		for _, m := range req.Messages {
			if found := readWorkspace().FindStringSubmatch(m.Text()); found != nil {
				in.workspace = found[1]
			}
		}
	}
	if n, err := strconv.Atoi(first(readLong())); err == nil {
		in.long = min(n, 100_000)
	}
	return in
}

// progress is the state of the calls in the conversation.
type progress struct {
	calls        int
	reads        int  // number of results of state_get
	read         bool // a call of state_get succeeded
	tooLarge     bool // the output of state_get is too large
	changes      int  // number of results of state_patch
	changed      bool // a call of state_patch succeeded
	refused      bool // the last call of state_patch failed
	calledHidden bool // facts_commit was called
}

func readProgress(req *lathe.Request) progress {
	var p progress
	for _, m := range req.Messages {
		for _, part := range m.Parts {
			switch part := part.(type) {
			case lathe.ToolCall:
				p.calls++
				p.calledHidden = p.calledHidden || part.Name == "facts_commit"
			case lathe.ToolResult:
				failed := resultFailed(part)
				switch nameOf(req, part) {
				case "state_get":
					p.reads++
					p.read = p.read || !failed
					p.tooLarge = p.tooLarge || failed && strings.Contains(part.Content, string(lathe.CodeOutputTooLarge))
				case "state_patch":
					p.changes++
					p.changed, p.refused = p.changed || !failed, failed
				}
			default: // not a call or a result
			}
		}
	}
	return p
}

// nameOf returns the name of the tool of a result. On the wire a result has only the id of its call.
func nameOf(req *lathe.Request, r lathe.ToolResult) string {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if c, ok := p.(lathe.ToolCall); ok && c.ID == r.CallID {
				return c.Name
			}
		}
	}
	return r.Name
}

// resultFailed reports whether a result is an error, by its flag or by the JSON in its content.
func resultFailed(r lathe.ToolResult) bool {
	raw := []byte(r.Content)
	if !rawjson.IsObject(raw, rawjson.Limits{}) {
		return r.IsError
	}
	return string(rawjson.At(raw, "ok")) == "false"
}

// maxTries is the maximal number of times that the evaluation model repeats one call.
const maxTries = 3

// evaluated returns the turn of sim/eval, or of sim/eval-NAME if how is NAME.
func evaluated(req *lathe.Request, how string) *Turn {
	in, p := readInstructions(req, how), readProgress(req)
	offered := func(name string) bool {
		return slices.ContainsFunc(req.Tools, func(t *lathe.ToolSpec) bool { return t.Name == name })
	}
	mayCall := offered("state_get") && offered("state_patch") && req.ToolChoice.Mode != lathe.ChoiceNone
	switch {
	case in.words == "" && how == "never-calls":
		return &Turn{Text: "Done."}
	case in.words == "":
		return demo(req)
	case how == "hangs", how == "stalls" && p.calls > 0:
		return &Turn{Delay: stalled}
	case !mayCall, how == "never-calls":
		return &Turn{Text: in.lastWords()}
	}
	return in.nextCalls(&p)
}

// nextCalls returns the turn with the next calls or, if all are made, with the final answer.
func (in *instructions) nextCalls(p *progress) *Turn {
	get := func() lathe.ToolCall { return p.call("state_get", "{"+strings.TrimSuffix(in.id(), ",")+"}") }
	patch := func() lathe.ToolCall { return p.call("state_patch", in.patch(p.changes)) }
	haveRead := p.read || p.tooLarge || p.reads >= maxTries
	givesUp := p.changes >= maxTries || in.how == "never-repairs" && p.refused
	switch {
	case in.how == "hidden-tool" && !p.calledHidden:
		return ask(p.call("facts_commit", `{"workspace_id":"`+in.workspace+`","request_id":"r0","proposal_id":"p1","user_confirmed":true}`))
	case p.calls == 0 && in.together && in.how != "one-at-a-time":
		return ask(get(), patch())
	case in.how == "wrong-order" && p.changes == 0:
		return ask(patch())
	case !haveRead, in.how == "insists" && p.reads < 2:
		return ask(get())
	case !p.changed && !givesUp:
		return ask(patch())
	}
	return &Turn{Text: in.lastWords()}
}

func ask(calls ...lathe.ToolCall) *Turn { return &Turn{Calls: calls} }

// call returns the next call, with an id that contains its number in the conversation.
func (p *progress) call(name, args string) lathe.ToolCall {
	p.calls++
	return lathe.ToolCall{ID: "call_" + itoa(p.calls), Name: name, Arguments: args}
}

func (in *instructions) lastWords() string {
	switch in.how {
	case "wrong-text":
		return "I am sim/eval-wrong-text and end with words of my own."
	case "empty-text":
		return ""
	}
	return in.words
}

// id returns the argument workspace_id followed by a comma; "" if it must not be passed.
func (in *instructions) id() string {
	if in.workspace == "" {
		return ""
	}
	return `"workspace_id":` + quote(in.workspace) + ","
}

// patch returns the arguments of the next call of state_patch; before is the number of those before it. The first contains the mistake
// that the prompt requests.
func (in *instructions) patch(before int) string {
	path, value := in.path, in.value
	if in.how == "wrong-value" {
		value = "other"
	}
	mistake := before == 0 && in.how != "no-mistake"
	ops := ""
	switch {
	case mistake && in.wrongType:
		ops = quote("set " + path)
	case mistake && in.wrongPath != "":
		path = in.wrongPath
	case mistake && in.long > 0:
		value = strings.Repeat("x", in.long)
	}
	if ops == "" {
		ops = `[{"op":"set","path":` + quote(path) + `,"value":` + quote(value) + `}]`
	}
	return "{" + in.id() + `"request_id":"r` + itoa(before+1) + `","ops":` + ops + "}"
}
