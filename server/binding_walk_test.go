package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A boundWalk is a conversation of a client with a model that binds its thinking.
type boundWalk struct {
	*runFixture
	t       *testing.T
	c       *wireClient
	server  *boundServer
	stream  bool
	history []lathe.Message
	tools   []*lathe.ToolSpec
	more    string // further members of each request
	listed  int    // places of reasoning that were listed in all answers
	called  func() // is called once, between calls of the client and their results; nil: nothing
}

// say asks a question and answers the calls of the client until there are none. It returns the last answer.
func (w *boundWalk) say(question string) *wireAnswer {
	w.t.Helper()
	w.history = append(w.history, lathe.User(question))
	for range 5 {
		a := w.send()
		w.history = append(w.history, w.c.back(a.message))
		calls := a.message.Calls()
		if len(calls) == 0 {
			return a
		}
		if w.called != nil {
			w.called()
			w.called = nil
		}
		for _, call := range calls {
			w.history = append(w.history, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: call.ID, Name: call.Name, Content: `{"sky":"grey"}`}}})
		}
	}
	w.t.Fatalf("%q: no end", question)
	return nil
}

var leftOut = regexp.MustCompile(`"dropped":\[(?:"[^"]*",?)*`)

// send sends the conversation as it is.
func (w *boundWalk) send() *wireAnswer {
	w.t.Helper()
	body := strings.TrimSuffix(w.c.body(w.stream, w.tools, w.history...), "}") + w.more + "}"
	a := w.c.send(w.t.Context(), w.fixture, w.stream, body)
	if a.err != nil {
		w.t.Fatalf("%v: %s\nto %s", a.err, a.body, body)
	}
	w.listed += strings.Count(leftOut.FindString(a.body), ".content[") + strings.Count(leftOut.FindString(a.body), ".parts[")
	return a
}

// thoughts returns how many blocks of thinking the last request to the model server had, and how many of its turns the model had written.
func (w *boundWalk) thoughts() (blocks, turns int) {
	last := w.server.bodies[len(w.server.bodies)-1]
	return strings.Count(last, `"signature":"`), strings.Count(last, `"role":"assistant"`)
}

var textPiece = regexp.MustCompile(`("type":"text_delta","text":)"(?:[^"\\]|\\.)*"`)

// saysInstead returns the stream of an answer with another text.
func saysInstead(answer, text string) string {
	said := false
	return textPiece.ReplaceAllStringFunc(answer, func(piece string) string {
		own := `""`
		if !said {
			said, own = true, quote(text)
		}
		return textPiece.FindStringSubmatch(piece)[1] + own
	})
}

// hasAnswer reports whether a stream has text and no call.
func hasAnswer(stream string) bool {
	return strings.Contains(stream, `"text_delta"`) && !strings.Contains(stream, `"tool_use"`)
}

// highEffort has the members that ask for thinking.
var highEffort = map[lathe.Wire]string{
	lathe.WireOpenAIChat: `,"reasoning_effort":"high"`,
	lathe.WireResponses:  `,"reasoning":{"effort":"high"}`,
	lathe.WireMessages:   `,"thinking":{"type":"adaptive"}`,
	lathe.WireGemini:     `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"high"}}`,
}

const answerFormat = `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`

// What comes between the turns of a conversation with a model that binds its thinking. The model server refuses no request; thinking comes back
// where what stands before it is as it was, and is left out and listed elsewhere.
func TestBoundThinkingAcrossChanges(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	var shelves []lathe.Tool
	for i := range 20 {
		shelves = append(shelves, tool.Func(fmt.Sprintf("shelf_%02d", i), fmt.Sprintf("Returns what is on shelf %d.", i),
			func(context.Context, struct{}) (string, error) { return "nothing", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	}
	failing := tool.Func("lookup", "Looks something up.", func(context.Context, struct{}) (string, error) { return "", errors.New("out of order") },
		&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	waits := func(verb string, at int) func(w *boundWalk) { // decides about a call before the question with that number
		return func(w *boundWalk) {
			run := w.say("write 5").header.Get("X-Lathe-Run-Id")
			for i, question := range []string{"What is 1 + 1?", "What is 2 + 2?", "What is 3 + 3?"} {
				if i == at {
					w.answerOnly(verb)
					w.rest(run)
				}
				w.say(question)
			}
		}
	}
	for name, row := range map[string]struct {
		only    string // the client; "": each
		binding string // "": keep
		change  func(*setting)
		edit    func(n int, answer string) string // edits the answers without a call, numbered from 1
		walk    func(w *boundWalk)
		// lacks is how many of the model's turns in the last request come without thinking, for a client of its wire. What that client is
		// told that it lacks is listed.
		lacks  int
		listed bool
	}{
		// The client compacts, or shortens what it has.
		"a summary in place of the first turns": {walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			w.say("What is 1 + 1?")
			w.history = append([]lathe.Message{lathe.User("Summary: 7 + 35 was computed.")}, w.history[2:]...)
			w.say("What is 2 + 2?")
			w.say("What is 3 + 3?")
		}, lacks: 1, listed: true},
		"a summary in place of all turns": {walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			w.history = []lathe.Message{lathe.User("Summary: 7 + 35 = 42.")}
			w.say("What is 2 + 2?")
			w.say("What is 3 + 3?")
		}},
		"results of the client that were cleared": {walk: func(w *boundWalk) {
			w.say("What is 1 + 1?")
			w.say("What is the weather in Oslo?")
			for i := range w.history {
				if r, ok := w.history[i].Parts[0].(lathe.ToolResult); ok {
					r.Content = "[cleared]"
					w.history[i].Parts = []lathe.Part{r}
				}
			}
			w.say("What is 2 + 2?")
			w.say("What is 3 + 3?")
		}, lacks: 1, listed: true},
		"a compaction block of the vendor": {
			edit: func(n int, answer string) string {
				const block = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":90,\"content_block\":{\"type\":\"compaction\",\"content\":\"It was about sums.\"}}\n\n" +
					"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":90}\n\n"
				at := strings.Index(answer, "event: content_block_start")
				if n > 1 {
					return answer
				}
				return answer[:at] + block + answer[at:]
			},
			walk: func(w *boundWalk) {
				w.say("What is 7 + 35?")
				w.say("What is 2 + 2?")
				w.say("What is 3 + 3?")
			}},
		"POST /v1/responses/compact": {only: "responses", walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			w.say("What is 1 + 1?")
			body := w.c.body(false, nil, w.history...)
			made, text := w.compact(`{"model":"sim/demo",` + body[strings.Index(body, `"input"`):])
			if made == nil {
				w.t.Fatal(text)
			}
			items := string(made.Output[len(made.Output)-1])
			w.history = []lathe.Message{{Role: lathe.RoleAssistant, Wire: lathe.WireResponses, Parts: []lathe.Part{lathe.Opaque{JSON: json.RawMessage(items)}}}}
			w.say("What is 2 + 2?")
			w.say("What is 3 + 3?")
		}},
		"an item compaction_trigger": {only: "responses", walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			body := strings.TrimSuffix(w.c.body(w.stream, w.tools, w.history...), "]}") + `,{"type":"compaction_trigger"}]}`
			a := w.c.send(w.t.Context(), w.fixture, w.stream, body)
			if a.err != nil {
				w.t.Fatalf("%v: %s", a.err, a.body)
			}
			w.history = []lathe.Message{w.c.back(a.message)}
			w.say("What is 2 + 2?")
			w.say("What is 3 + 3?")
		}},
		// The loop asks again.
		"a blank answer": {edit: func(n int, answer string) string {
			if n > 1 {
				return answer
			}
			return saysInstead(answer, " ")
		}, walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}},
		"an answer of another format": {edit: func(n int, answer string) string {
			if n == 1 {
				return saysInstead(answer, "It is 42.")
			}
			return saysInstead(answer, `{"sum":42}`)
		}, walk: func(w *boundWalk) {
			w.more = map[lathe.Wire]string{
				lathe.WireOpenAIChat: `,"response_format":{"type":"json_schema","json_schema":{"name":"sum","schema":` + answerFormat + `}}`,
				lathe.WireResponses:  `,"text":{"format":{"type":"json_schema","name":"sum","schema":` + answerFormat + `}}`,
				lathe.WireMessages:   `,"output_config":{"format":{"type":"json_schema","schema":` + answerFormat + `}}`,
				lathe.WireGemini:     `,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + answerFormat + `}`,
			}[w.c.codec.Wire()]
			w.say("What is 7 + 35?")
			if last := w.server.bodies[len(w.server.bodies)-1]; !strings.Contains(last, "not an answer in the required format") {
				w.t.Error("the answer was not asked for again")
			}
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}},
		"a call that fails": {change: func(s *setting) { s.tools = append(s.tools, failing) }, walk: func(w *boundWalk) {
			w.say("Use the tool lookup {}")
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}},
		"the limit of turns": {change: func(s *setting) { s.limits.MaxIterations = 1 }, walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}},
		// The tools change.
		// The definitions that a search finds change the tools within the turn, whose thinking the server then drops.
		"a search, with drop_block": {binding: "drop_block", change: func(s *setting) { s.tools, s.search = shelves, tool.Search{Mode: tool.SearchOn} }, walk: func(w *boundWalk) {
			w.more = highEffort[w.c.codec.Wire()]
			w.say("What is 7 + 35?")
			w.say("Use the tool search {\"names\":[\"shelf_07\"]}")
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}, lacks: -1},
		"a search, with keep": {change: func(s *setting) { s.tools, s.search = shelves, tool.Search{Mode: tool.SearchOn} }, walk: func(w *boundWalk) {
			w.say("Use the tool search {\"names\":[\"shelf_07\"]}")
			w.say("Use the tool shelf_07 {}")
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}},
		"a reload of the same tools": {walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			w.reload(nil)
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}},
		"a reload of the same tools, between a call of the client and its result": {walk: func(w *boundWalk) {
			w.called = func() { w.reload(nil) }
			w.say("What is the weather in Oslo, and what is 2 + 3?")
			w.say("Thanks.")
		}},
		"a reload of other tools, between a call of the client and its result": {binding: "drop_block", walk: func(w *boundWalk) {
			w.more = highEffort[w.c.codec.Wire()]
			w.called = func() { w.reload([]lathe.Tool{failing}) }
			w.say("What is the weather in Oslo, and what is 2 + 3?")
			w.say("Thanks.")
		}, lacks: -1},
		"a reload of other tools": {walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			w.reload([]lathe.Tool{failing})
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}, lacks: 2, listed: true},
		"other tools of the client": {walk: func(w *boundWalk) {
			w.say("What is 7 + 35?")
			w.tools = append(w.tools, &lathe.ToolSpec{Name: "another", Schema: []byte(`{"type":"object"}`)})
			w.say("What is 2 + 2?")
			w.say("Thanks.")
		}, lacks: 2, listed: true},
		// Rounds of this server, and runs that wait.
		"a decision at once":          {walk: waits("approve", 0)},
		"a denial at once":            {walk: waits("deny", 0)},
		"a decision later":            {walk: waits("approve", 1), lacks: 2, listed: true},
		"a decision that is not made": {walk: waits("", -1)},
	} {
		for client, c := range wireClients {
			for how, stream := range bothWays {
				if row.only != "" && row.only != client {
					continue
				}
				t.Run(name+"/"+client+"/"+how, func(t *testing.T) {
					t.Parallel()
					w := &boundWalk{t: t, c: c, server: newBoundServer(), stream: stream, tools: []*lathe.ToolSpec{weatherSpec()}}
					w.server.edit = row.edit
					w.runFixture = open(t, func(s *setting) {
						s.model, s.store = w.server.model(t, map[bool]string{true: "keep", false: row.binding}[row.binding == ""]), store.NewMemory(nil)
						if row.change != nil {
							row.change(s)
						}
					})
					row.walk(w)
					blocks, turns := w.thoughts()
					last := w.server.bodies[len(w.server.bodies)-1]
					if len(w.server.refused) > 0 {
						t.Errorf("refused %s\nthe last request is\n%s", slices.Compact(w.server.refused), last)
					}
					if client != "messages" {
						return
					}
					if row.lacks >= 0 && blocks != turns-row.lacks {
						t.Errorf("%d of %d turns have thinking, want all but %d, in\n%s", blocks, turns, row.lacks, last)
					}
					if row.lacks >= 0 && row.listed != (w.listed > 0) {
						t.Errorf("%d places are listed", w.listed)
					}
				})
			}
		}
	}
}

// reload gives the gateway further tools. Its models stay, as those of a configuration do whose entries have not changed.
func (w *boundWalk) reload(further []lathe.Tool) {
	w.t.Helper()
	set, runner := w.models.set.build(w.t, further...)
	next := &models{sim: w.models.sim, runner: runner, of: map[string]*server.Model{}, set: w.models.set, seen: w.models.seen}
	if _, err := w.gateway.Reload(&server.Setup{Models: next, Tools: &tools{set, runner}}); err != nil {
		w.t.Fatal(err)
	}
}
