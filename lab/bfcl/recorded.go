package bfcl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/lab/eval"
)

// maxRecordedBytes is the maximal size of the input of [Measured.Recorded].
const maxRecordedBytes = 256 << 20

// Recorded reads outputs of a model that were recorded elsewhere. It returns a function for [eval.Target].ModelFor; the models that this
// function returns answer with the recorded outputs. r contains JSON lines {"id","model_output"}, each with an output in the form of
// [Case.ModelOutput]; other members are ignored. A duplicate id, an output of another form, and more than 256 MiB are errors. The model of
// a case without an output fails with an error that wraps [eval.ErrReplay].
func (m *Measured) Recorded(r io.Reader) (func(*eval.Scenario) lathe.Model, error) {
	outputs, err := readOutputs(r)
	if err != nil {
		return nil, err
	}
	return func(sc *eval.Scenario) lathe.Model {
		rec := &recordedModel{output: outputs[sc.ID], tools: map[string]string{}}
		if c := m.cases[sc.ID]; c != nil {
			for tool, fn := range c.names {
				if old, ok := rec.tools[fn]; !ok || tool < old { // if two tools have the same function, the first by name
					rec.tools[fn] = tool
				}
			}
		}
		return rec
	}, nil
}

func readOutputs(r io.Reader) (map[string][]byte, error) {
	outputs := map[string][]byte{}
	size := 0
	err := eachObject(r, func(line []byte) error {
		var of struct {
			ID     string          `json:"id"`
			Output json.RawMessage `json:"model_output"`
		}
		if json.Unmarshal(line, &of) != nil {
			return errors.New("want an object with id and model_output")
		}
		if _, err := recordedCalls(nil, of.Output); err != nil {
			return err
		}
		if size += len(line); size > maxRecordedBytes {
			return fmt.Errorf("larger than %d bytes", maxRecordedBytes)
		}
		if outputs[of.ID] != nil {
			return fmt.Errorf("the id %.80q stands twice", of.ID)
		}
		outputs[of.ID] = bytes.Clone(of.Output)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return outputs, nil
}

// A recordedModel answers every request with the recorded message.
type recordedModel struct {
	output []byte
	tools  map[string]string // names of tools by names of functions
}

// Describe returns an empty description, because an output does not name its model.
func (m *recordedModel) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

// Generate yields the recorded message.
func (m *recordedModel) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		if m.output == nil {
			yield(lathe.Delta{}, lathe.CodeUpstream.Wrap("bfcl: recorded model", eval.ErrReplay))
			return
		}
		calls, err := recordedCalls(m.tools, m.output)
		if err != nil {
			yield(lathe.Delta{}, lathe.CodeUpstream.Wrap("bfcl: recorded model", err))
			return
		}
		finish := &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant}, Reason: lathe.FinishStop, Model: req.Model}
		for _, c := range calls {
			finish.Message.Parts = append(finish.Message.Parts, c)
			finish.Reason = lathe.FinishToolCalls
		}
		if len(calls) == 0 {
			finish.Message.Parts = []lathe.Part{lathe.Text{Text: "No function fits."}}
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: finish}, nil)
	}
}

// recordedCalls parses calls in the leaderboard's form and replaces names of functions by names of tools.
func recordedCalls(tools map[string]string, output []byte) ([]lathe.ToolCall, error) {
	wrong := errors.New("model_output is no list of calls")
	if rawjson.Kind(output) != '[' {
		return nil, wrong
	}
	var calls []lathe.ToolCall
	for el := range rawjson.Elements(output) {
		if el[0] != '{' {
			return nil, wrong
		}
		n := 0
		for name, args := range rawjson.Members(el) { // exactly one
			n++
			if n > 1 || args[0] != '{' {
				return nil, wrong
			}
			fn := rawjson.Text(name)
			if tool := tools[fn]; tool != "" {
				fn = tool
			}
			calls = append(calls, lathe.ToolCall{ID: fmt.Sprintf("call_%d", len(calls)+1), Name: fn, Arguments: string(args)})
		}
		if n == 0 {
			return nil, wrong
		}
	}
	return calls, nil
}
