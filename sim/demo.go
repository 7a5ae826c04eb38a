package sim

import (
	"fmt"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// demo returns the turn of the rule-based model, which depends only on the request.
func demo(req *lathe.Request) *Turn {
	conv := readConversation(req)
	tools := req.Tools
	if req.ToolChoice.Mode == lathe.ChoiceNone {
		tools = nil
	}
	if len(tools) > 0 {
		plan := makePlan(conv.prompt, tools, req.ToolChoice)
		if rest := plan[min(conv.asked, len(plan)):]; len(rest) > 0 {
			if req.ParallelToolCalls != nil && !*req.ParallelToolCalls {
				rest = rest[:1]
			}
			t := &Turn{Text: announce(rest)}
			for i, step := range rest {
				t.Calls = append(t.Calls, lathe.ToolCall{
					ID:        fmt.Sprintf("call_%d", conv.total+i+1),
					Name:      step.tool.Name,
					Arguments: step.args,
				})
			}
			return t
		}
	}
	if text := structured(req, conv.prompt); text != "" {
		return &Turn{Text: text}
	}
	return &Turn{Text: answer(conv)}
}

// structured returns a JSON object for the response format of a request that has a schema; "" if it has none.
func structured(req *lathe.Request, prompt string) string {
	format := req.Sampling.ResponseFormat
	if len(format) == 0 || rawjson.Check(format, rawjson.Limits{}) != nil {
		return ""
	}
	if inner := rawjson.At(format, "json_schema"); rawjson.Kind(inner) == '{' {
		format = inner
	}
	schema := rawjson.At(format, "schema")
	if rawjson.Kind(schema) != '{' {
		return ""
	}
	return fillArguments(&lathe.ToolSpec{Schema: schema}, prompt)
}

// conversation is the part of a request that determines the demo model's turn.
type conversation struct {
	prompt  string           // the last user message, apart from the request for a final answer
	calls   []lathe.ToolCall // the calls and results since prompt
	results []lathe.ToolResult
	asked   int // number of calls since prompt
	total   int // number of calls in the whole conversation
}

func readConversation(req *lathe.Request) conversation {
	var c conversation
	for i := range req.Messages {
		m := &req.Messages[i]
		switch m.Role {
		case lathe.RoleUser:
			if text := m.Text(); text != lathe.DefaultFixEmptyFinalText {
				c.prompt, c.calls, c.results, c.asked = text, nil, nil, 0
			}
		case lathe.RoleAssistant:
			calls := m.Calls()
			c.calls = append(c.calls, calls...)
			c.asked += len(calls)
			c.total += len(calls)
		case lathe.RoleTool:
			for _, p := range m.Parts {
				if r, ok := p.(lathe.ToolResult); ok {
					r.Content = strings.TrimSuffix(r.Content, "\n\n"+lathe.DefaultFixEmptyFinalText)
					c.results = append(c.results, r)
				}
			}
		case lathe.RoleSystem, lathe.RoleDeveloper:
		}
	}
	return c
}

func announce(steps []step) string {
	names := make([]string, 0, len(steps))
	for _, s := range steps {
		names = append(names, s.tool.Name)
	}
	if len(names) == 1 {
		return "Let me use " + names[0] + "."
	}
	return "Let me use " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + "."
}

// A step is one call that the demo model plans.
type step struct {
	tool *lathe.ToolSpec
	args string
}

// makePlan divides the prompt into clauses and selects the best tool for each. The plan depends only on the prompt and the tools, so that
// each turn of a conversation computes the same plan.
func makePlan(prompt string, tools []*lathe.ToolSpec, choice lathe.ToolChoice) []step {
	if choice.Mode == lathe.ChoiceFunction {
		for _, t := range tools {
			if t.Name == choice.Name {
				return []step{{t, fillArguments(t, prompt)}}
			}
		}
	}
	var plan []step
	for _, clause := range clauses(prompt) {
		if t := bestTool(clause, tools); t != nil {
			plan = append(plan, step{t, fillArguments(t, clause)})
		}
	}
	if len(plan) == 0 {
		if t := bestTool(prompt, tools); t != nil {
			plan = append(plan, step{t, fillArguments(t, prompt)})
		}
	}
	if len(plan) == 0 && choice.Mode == lathe.ChoiceRequired {
		plan = append(plan, step{tools[0], fillArguments(tools[0], prompt)})
	}
	return plan
}

// clauses divides a prompt at the ends of sentences, and at " and ", " then " and " and then " before a word of clauseOpeners. It never
// divides inside quotes.
func clauses(prompt string) []string {
	var out []string
	start, quote := 0, byte(0)
	cut := func(end, next int) {
		if s := strings.Trim(prompt[start:end], " ,;.?!\n\t"); s != "" {
			out = append(out, s)
		}
		start = next
	}
	for i := 0; i < len(prompt); i++ {
		c := prompt[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '`':
			quote = c
		case endsSentence(prompt[i:]):
			cut(i, i+1)
		default:
			if sep := separator(prompt[i:]); sep != "" {
				cut(i, i+len(sep))
				i += len(sep) - 1
			}
		}
	}
	cut(len(prompt), len(prompt))
	return out
}

// endsSentence reports whether text begins with the end of a sentence.
func endsSentence(text string) bool {
	switch text[0] {
	case '?', '!', ';', '\n':
		return true
	case '.':
		return len(text) == 1 || text[1] == ' '
	}
	return false
}

// separator returns the words between two clauses with which text begins; "" if it begins with others.
func separator(text string) string {
	for _, sep := range []string{" and then ", " and ", " then "} {
		if hasFoldPrefix(text, sep) && startsClause(text[len(sep):]) {
			return sep
		}
	}
	return ""
}

// startsClause reports whether rest begins with a word of clauseOpeners.
func startsClause(rest string) bool {
	w := rest
	if i := strings.IndexAny(rest, " ,?"); i >= 0 {
		w = rest[:i]
	}
	return clauseOpeners()[strings.ToLower(w)]
}

func hasFoldPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// clauseOpeners are the words after "and" or "then" that begin a new request.
var clauseOpeners = wordSet(`what which who where when how why is are do does can could tell show give list get find
search look fetch read write set send create make add delete remove update calculate compute convert sum multiply
divide call use run check open save translate print then please also`)

// stopWords are words that do not indicate a tool.
var stopWords = wordSet(`a an the of to in on at for and or is are it its what which who where when how do does can
could me my you your i we please use using with that this by from be get set tool function returns return given value
values optional current`)

// wordSet returns a function that returns the set of the words in s.
func wordSet(s string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		m := map[string]bool{}
		for w := range strings.FieldsSeq(s) {
			m[w] = true
		}
		return m
	})
}

// bestTool returns the tool with the highest score, or nil if no score is at least 3. A word that the clause shares with the name of the
// tool scores 3, with the name of a parameter 2, and with the description 1; parameters whose types fit score, too. The first of equal
// tools wins.
func bestTool(clause string, tools []*lathe.ToolSpec) *lathe.ToolSpec {
	said := map[string]bool{}
	for _, w := range words(clause) {
		said[w] = true
	}
	var best *lathe.ToolSpec
	top := 2
	for _, t := range tools {
		if s := score(clause, said, t); s > top {
			best, top = t, s
		}
	}
	return best
}

func score(clause string, said map[string]bool, t *lathe.ToolSpec) int {
	if strings.Contains(clause, t.Name) {
		return 100
	}
	n := 0
	for _, w := range words(t.Name) {
		if said[w] {
			n += 3
		}
	}
	for _, w := range words(t.Description) {
		if said[w] {
			n++
		}
	}
	numbers := len(numbersIn(clause))
	wantNumbers := 0
	for _, p := range parameters(t.Schema) {
		for _, w := range words(p.name) {
			if said[w] {
				n += 2
			}
		}
		if p.kind == "expression" && arithmetic(clause) != "" {
			n += 10
		}
		if p.kind == "number" || p.kind == "integer" {
			wantNumbers++
		}
	}
	if wantNumbers >= 2 && numbers >= wantNumbers {
		n += 2
	}
	return n
}

var (
	word  = lazy.Regexp(`[0-9A-Za-z\x{80}-\x{10FFFF}]+`)
	camel = lazy.Regexp(`([a-z])([A-Z])`)
)

// words returns the words of s that are not stopWords, in lower case and without a plural s, each once.
func words(s string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range word().FindAllString(camel().ReplaceAllString(s, "$1 $2"), -1) {
		w = strings.ToLower(w)
		if stopWords()[w] || len(w) < 2 {
			continue
		}
		if len(w) > 3 {
			w = strings.TrimSuffix(w, "s")
		}
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}
