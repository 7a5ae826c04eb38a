package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/tool"
)

// GoldModel is the name of [GoldTarget] in reports.
const GoldModel = "sim/gold"

// GoldTarget returns a target that plays the gold actions of each scenario, which are those of a model without mistakes, with [Play]. It
// passes all scenarios whose gold actions are correct, and so tests a suite without a model.
func GoldTarget() Target {
	return Target{Name: GoldModel, Identity: GoldModel, ModelFor: func(sc *Scenario) lathe.Model { return Play(sc.Gold) }}
}

// A GoldTurn is one message of a model that makes no mistakes: a text, calls, or both.
type GoldTurn struct {
	Say   string     `json:"say,omitempty"`
	Calls []GoldCall `json:"calls,omitempty"`
}

// A GoldCall is one tool call of a [GoldTurn].
type GoldCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`

	line int // line in the suite; 0: not from a file
}

// goldDatabase returns the database after the gold actions. It ignores scripted answers that precede the steps of a tool, such as errors
// from which a model must recover. The error names the first action that fails.
func (sc *Scenario) goldDatabase() (json.RawMessage, error) {
	if sc.final != nil {
		return sc.final, nil
	}
	d, err := newDatabase(sc.Database)
	if err != nil {
		return nil, err
	}
	for i, turn := range sc.Gold {
		for _, c := range turn.Calls {
			if err := sc.goldCall(d, c); err != nil {
				return nil, &goldError{c.line, fmt.Sprintf("gold action %d, %s, %s", i+1, c.Tool, err)}
			}
		}
	}
	return contents(d.ws)
}

// A goldError describes a gold action that fails, with its line.
type goldError struct {
	line int
	text string
}

func (e *goldError) Error() string { return e.text }

// goldCall executes one gold call.
func (sc *Scenario) goldCall(d *database, c GoldCall) error {
	at := findTool(sc.Tools, c.Tool)
	if at < 0 {
		return errors.New("is no tool of the scenario")
	}
	m := &sc.Tools[at]
	if m.Schema != nil {
		s, err := schema.Compile(m.Schema)
		if err != nil {
			return err
		}
		if wrong := s.Validate(c.Arguments); len(wrong) > 0 {
			return fmt.Errorf("has arguments that are not of its schema: %s", wrong[0].Message)
		}
	}
	if _, err := d.call(m.Steps, c.Arguments); err != nil {
		return fmt.Errorf("fails: %s", failureText(err))
	}
	return nil
}

// failureText returns the text of a tool error that a model receives.
func failureText(err error) string {
	var f *tool.Failure
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// goldCalls reports whether the gold actions contain a call.
func (sc *Scenario) goldCalls() bool {
	return slices.ContainsFunc(sc.Gold, func(t GoldTurn) bool { return len(t.Calls) > 0 })
}

// maxDifferences is the largest number of differences in a check.
const maxDifferences = 3

// checkGold compares the database after a run with the database after the gold actions.
func checkGold(want, got json.RawMessage) Check {
	c := Check{Group: "state", Assert: "the database is as the gold actions leave it", OK: rawjson.Equal(want, got)}
	if !c.OK {
		c.Got = clip(strings.Join(differences("", want, got, nil), ", "), maxGot)
	}
	return c
}

// differences appends the locations at which two values differ to found, which has at most [maxDifferences] elements.
func differences(at string, want, got json.RawMessage, found []string) []string {
	if len(found) == maxDifferences || rawjson.Equal(want, got) {
		return found
	}
	if len(want) == 0 || len(got) == 0 || want[0] != '{' || got[0] != '{' {
		text := func(raw json.RawMessage) string {
			if len(raw) == 0 {
				return "absent"
			}
			return clip(string(raw), maxGot/maxDifferences)
		}
		return append(found, fmt.Sprintf("%s %s and not %s", at, text(got), text(want)))
	}
	var keys []string
	for _, side := range []json.RawMessage{want, got} {
		for k := range rawjson.Members(side) {
			if name := rawjson.Text(k); !slices.Contains(keys, name) {
				keys = append(keys, name)
			}
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		found = differences(at+"/"+escapeToken(k), rawjson.At(want, k), rawjson.At(got, k), found)
	}
	return found
}

// Play returns a model that answers with these turns, in order. If a call fails, the model repeats it, at most twice, and then continues. After
// the last turn it repeats the last text, or says "Done." if no turn has a text. It answers a request without tools with the texts of the turns,
// without their calls. The model has no state: the answer depends on the request alone. It may be used from several goroutines at once.
func Play(turns []GoldTurn) lathe.Model { return player(turns) }

type player []GoldTurn

// maxGoldTries is the largest number of attempts of a player at one call.
const maxGoldTries = 3

// Describe implements [lathe.Model].
func (player) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Provider: "sim", Model: GoldModel, Dialect: "native"}
}

// Generate implements [lathe.Model].
func (p player) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(lathe.Delta{}, lathe.CodeCancelled.Wrap("eval: gold", context.Cause(ctx)))
			return
		}
		turn, made := p.next(req)
		fin := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Role: lathe.RoleAssistant}, Model: GoldModel}
		if turn.Say != "" {
			fin.Message.Parts = append(fin.Message.Parts, lathe.Text{Text: turn.Say})
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: turn.Say}, nil) {
				return
			}
		}
		for i, c := range turn.Calls {
			fin.Reason = lathe.FinishToolCalls
			fin.Message.Parts = append(fin.Message.Parts, lathe.ToolCall{ID: fmt.Sprintf("call_%d", made+i+1), Name: c.Tool, Arguments: string(c.Arguments)})
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: fin}, nil)
	}
}

// next returns the turn that follows the conversation, and the number of calls in the conversation.
func (p player) next(req *lathe.Request) (turn GoldTurn, made int) {
	at, tries := 0, 0    // index of the current turn, and number of attempts at it so far
	var again []GoldCall // calls of the last attempt that failed
	for i := range req.Messages {
		if req.Messages[i].Role != lathe.RoleAssistant {
			continue
		}
		calls := req.Messages[i].Calls()
		made += len(calls)
		again = again[:0]
		for _, c := range calls {
			if callFailed(req.Messages[i+1:], c.ID) {
				again = append(again, GoldCall{Tool: c.Name, Arguments: json.RawMessage(c.Arguments)})
			}
		}
		tries++
		if len(again) == 0 || tries == maxGoldTries {
			at, tries, again = at+1, 0, again[:0]
		}
	}
	if len(again) > 0 {
		return GoldTurn{Calls: again}, made
	}
	if at < len(p) {
		turn = p[at]
	}
	if len(req.Tools) == 0 || req.ToolChoice.Mode == lathe.ChoiceNone {
		turn.Calls = nil
	}
	if len(turn.Calls) == 0 && turn.Say == "" {
		turn.Say = "Done."
		for _, t := range p {
			if t.Say != "" {
				turn.Say = t.Say
			}
		}
	}
	return turn, made
}

// callFailed reports whether the first result for this call in the messages is an error.
func callFailed(messages []lathe.Message, id string) bool {
	for i := range messages {
		for _, part := range messages[i].Parts {
			if r, ok := part.(lathe.ToolResult); ok && r.CallID == id {
				return r.IsError
			}
		}
	}
	return false
}
