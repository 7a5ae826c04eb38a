package bfcl

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Case is one test of the Berkeley Function Calling Leaderboard (BFCL). It is immutable and may be used by several goroutines at once.
type Case struct {
	ID       string
	Category string
	// Turns contains the messages of each turn. Only cases of multi-turn categories have more than one turn.
	Turns [][]lathe.Message
	// Tools are the functions of the case as client tools. Their names are valid in requests; [Case.Function] returns the original ones. In
	// the Java and JavaScript categories, each argument is a string with an expression of that language.
	Tools []*lathe.ToolSpec
	// Unscored is the reason why the case cannot get a verdict; "": it can.
	Unscored string

	key       string  // hash of everything on which the verdict depends
	names     names   // the names of Tools
	functions []value // the descriptions of the functions
	answers   []value // the right calls
}

// A Verdict is the score of a case. ErrorType is "" if Valid is true, otherwise the leaderboard's name of the error, or a text that begins
// with [InputError].
type Verdict struct {
	Valid     bool
	ErrorType string
}

// InputError is the beginning of [Verdict].ErrorType for cases and outputs that cannot be scored.
const InputError = "input_error:"

func verdictOf(wrong string) Verdict { return Verdict{Valid: wrong == "", ErrorType: wrong} }

// entry is a line of a file of questions. Multi-turn entries have Classes instead of Function. A line of the file of answers has the same
// id. For example, a question and its answer, which lists the right values of each argument, are
//
//	{"id":"simple_0","question":[[{"role":"user","content":"…"}]],"function":[{"name":"area","description":"…","parameters":{…}}]}
//	{"id":"simple_0","ground_truth":[{"area":{"base":[10],"unit":["cm",""]}}]}
type entry struct {
	ID       string            `json:"id"`
	Question [][]entryMessage  `json:"question"`
	Function []json.RawMessage `json:"function"`
	Classes  []string          `json:"involved_classes"`
}

type entryMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// newCase returns the case of a question. functions are those of its classes, and answers is the line of its answers, or nil if it has
// none.
func newCase(categoryName string, e *entry, functions []json.RawMessage, answers []byte) (*Case, error) {
	cat := readCategory(categoryName)
	c := &Case{ID: e.ID, Category: categoryName, Unscored: cat.unscored(), names: names{}}
	for _, turn := range e.Question {
		msgs := make([]lathe.Message, 0, len(turn))
		for _, m := range turn {
			role := lathe.Role(m.Role)
			switch role {
			case lathe.RoleSystem, lathe.RoleUser, lathe.RoleAssistant:
			default:
				return nil, fmt.Errorf("no such role in a question: %q", m.Role)
			}
			msgs = append(msgs, lathe.Message{Role: role, Parts: []lathe.Part{lathe.Text{Text: m.Content}}})
		}
		c.Turns = append(c.Turns, msgs)
	}
	if len(c.Turns) == 0 || len(c.Turns[0]) == 0 {
		return nil, errors.New("there is no question")
	}
	functions = slices.Concat(e.Function, functions)
	c.key = keyOf(categoryName, functions, answers)
	for _, raw := range functions {
		if err := c.addFunction(raw, cat.language); err != nil {
			return nil, fmt.Errorf("function %d: %w", len(c.functions)+1, err)
		}
	}
	if c.Unscored != "" || !cat.hasAnswers() {
		return c, nil
	}
	if answers == nil {
		c.Unscored = "there is no answer to it"
		return c, nil
	}
	v, err := readValue(answers)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	c.answers = v.dict["ground_truth"].list
	return c, nil
}

// keyOf returns a hash of everything on which the verdict of a case depends.
func keyOf(category string, functions []json.RawMessage, answers []byte) string {
	h := sha256.New()
	for _, part := range append([]json.RawMessage{[]byte(category), answers}, functions...) {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (c *Case) addFunction(raw []byte, lang *language) error {
	fn, err := readValue(raw)
	if err != nil {
		return err
	}
	name, description := fn.dict["name"], fn.dict["description"]
	params := rawjson.At(raw, "parameters")
	if name.kind != text || rawjson.Kind(params) != '{' {
		return errors.New("want a name and parameters")
	}
	schema := jsonSchema(params)
	if lang.convert != nil {
		schema = textSchema(params, lang.name)
	}
	c.functions = append(c.functions, fn)
	c.Tools = append(c.Tools, &lathe.ToolSpec{
		Name: c.names.add(name.text), Description: description.text, Schema: schema,
		Owner: lathe.OwnerClient, Allowlist: []string{"*"}, Origin: "bfcl",
	})
	return nil
}

// Function returns the leaderboard's name of the function behind a tool. If the case has no such tool, it returns tool.
func (c *Case) Function(tool string) string { return c.names.of(tool) }

// ModelOutput returns calls in the leaderboard's form, [{"function":{"param":value}}], with the original names. Empty arguments count as
// {}. It returns an error for a truncated call and for arguments that are not a JSON object.
func (c *Case) ModelOutput(calls []lathe.ToolCall) ([]byte, error) {
	out := []byte{'['}
	for i, call := range calls {
		args := bytes.TrimSpace([]byte(call.Arguments))
		if len(args) == 0 {
			args = []byte("{}")
		}
		if call.Incomplete || call.ParseError != "" || args[0] != '{' {
			return nil, fmt.Errorf("call %d has no arguments that can be read", i+1)
		}
		if err := rawjson.Check(args, rawjson.Limits{}); err != nil {
			return nil, fmt.Errorf("arguments of call %d: %w", i+1, err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendQuote(append(out, '{'), c.Function(call.Name)), ':')
		out = append(rawjson.AppendCompact(out, args), '}')
	}
	return append(out, ']'), nil
}

// ScoreCalls scores the calls of one message of a model, in its order; empty: the model made no calls.
func (c *Case) ScoreCalls(calls []lathe.ToolCall) Verdict {
	out, err := c.ModelOutput(calls)
	if err != nil {
		return c.score(value{}, undecodable)
	}
	return c.Score(out)
}

// Score scores calls in the form of [Case.ModelOutput].
func (c *Case) Score(modelOutput []byte) Verdict {
	v, err := readValue(modelOutput)
	if err != nil && c.Unscored == "" {
		return verdictOf(InputError + "model_output")
	}
	return c.score(v, wrongFormat)
}

// score scores a list of calls. In the categories that have right calls, malformed is the error type if calls is not such a list.
func (c *Case) score(calls value, malformed string) Verdict {
	if c.Unscored != "" {
		return verdictOf(InputError + "unscored")
	}
	formed := calls.kind == list
	for _, call := range calls.list {
		formed = formed && len(call.keys) == 1 && call.dict[call.keys[0]].kind == dict
	}
	called := formed && len(calls.list) > 0
	cat := readCategory(c.Category)
	switch cat.shape {
	case noCall:
		if called {
			return verdictOf(calledAnyway)
		}
		return verdictOf("")
	case someCall:
		if !called {
			return verdictOf(calledNone)
		}
		return verdictOf("")
	}
	if !formed {
		return verdictOf(malformed)
	}
	ch := checker{category: cat, functions: c.functions, answers: c.answers}
	return verdictOf(ch.check(calls.list))
}
