package replay

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// errNotRecorded is the error of a call that is not in the record.
var errNotRecorded = errors.New("the record has no such call")

// An outcome has the events at the end of a recorded call.
type outcome struct {
	executed *event.ToolCallExecuted // nil: no tool was executed
	result   *event.ToolCallResult
}

// outcomes returns the outcomes of all calls by call id.
func (r *Record) outcomes() map[string]outcome {
	out := map[string]outcome{}
	for i := range r.Events {
		switch d := r.Events[i].Data.(type) {
		case *event.ToolCallExecuted:
			o := out[d.ToolCallID]
			o.executed = d
			out[d.ToolCallID] = o
		case *event.ToolCallResult:
			o := out[d.ToolCallID]
			o.result = d
			out[d.ToolCallID] = o
		default: // events of the model and of people
		}
	}
	return out
}

// StandIns returns a set with the definitions and the search configuration of set. Its tools are not executed: a call gets the recorded
// result of the call with the same id, and fails with unavailable if the record has none. limits are those of the new set. StandIns does
// not change set.
func (r *Record) StandIns(set *tool.Set, limits lathe.Limits) (*tool.Set, error) {
	outcomes := r.outcomes()
	var tools []lathe.Tool
	for _, spec := range set.Specs() {
		tools = append(tools, &standIn{spec: recordedSpec(spec), find: func(meta *lathe.CallMeta, _ []byte) outcome { return outcomes[meta.CallID] }})
	}
	return tool.NewSetWithSearch(limits, set.Search(), tools...)
}

// recordedSpec returns the definition of a tool that returns recorded results, without the parts that concern the execution of calls.
func recordedSpec(spec *lathe.ToolSpec) *lathe.ToolSpec {
	own := *spec
	own.Allowlist = []string{"*"} // the record contains only what was shown
	own.OutputSchema, own.Concurrency, own.Rate, own.Backend, own.BackendConcurrency = nil, 0, 0, "", 0
	return &own
}

// A standIn is a tool that returns recorded results.
type standIn struct {
	spec   *lathe.ToolSpec
	find   func(meta *lathe.CallMeta, args []byte) outcome
	atOnce bool // a recorded timeout is returned without waiting
}

// Spec implements [lathe.Tool].
func (s *standIn) Spec() *lathe.ToolSpec { return s.spec }

// Call implements [lathe.Tool].
func (s *standIn) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	var o outcome
	if meta := lathe.CallMetaFrom(ctx); meta != nil {
		o = s.find(meta, args)
	}
	switch {
	case !o.known():
		return nil, lathe.CodeUnavailable.Wrap("replay: call "+s.spec.Name, errNotRecorded)
	case o.result == nil: // the record ends before the result
		return &lathe.Output{}, nil
	case s.atOnce && o.result.ErrorType == lathe.CodeTimeout:
		return nil, lathe.CodeTimeout.Errorf("replay: call "+s.spec.Name, "it timed out in the record")
	}
	out, err := o.again(ctx)
	if out == nil {
		out = &lathe.Output{}
	}
	if len(out.Data) > 0 && !json.Valid(out.Data) { // the client sent plain text
		out.Data, _ = json.Marshal(string(out.Data)) // cannot fail for a string
	}
	if o.executed != nil && o.executed.RC != nil {
		out.RC = *o.executed.RC
	}
	return out, err
}

// known reports whether the record shows the output of the call: that of a tool, of the client, or of a person.
func (o *outcome) known() bool {
	switch {
	case o.result == nil:
		return o.executed != nil && o.executed.Success
	case o.executed == nil: // the client or a person may have given the result
		return o.result.Client || o.result.Status == "ok"
	default:
		return true
	}
}

// again returns the recorded result in a form that the runner processes to the same result: the output of a call that succeeded, else the
// data or the message of the failure, or what makes the runner fail with its code.
func (o *outcome) again(ctx context.Context) (*lathe.Output, error) {
	r := o.result
	if r.Status == "ok" {
		return &lathe.Output{Data: dataOf(r.Result), Blobs: r.Blobs}, nil
	}
	var result struct {
		Error struct {
			Detail *string `json:"detail"`
		} `json:"error"`
		Errors []struct {
			Detail *string `json:"detail"`
		} `json:"errors"`
	}
	_ = json.Unmarshal([]byte(r.Result), &result) // a result in another form has no detail
	detail := result.Error.Detail
	if len(result.Errors) > 0 {
		detail = result.Errors[0].Detail
	}
	data := errorData(r.Result)
	switch {
	case len(data) > 0:
		return &lathe.Output{IsError: true, Code: r.ErrorType, Data: data, Blobs: r.Blobs}, nil
	case detail != nil:
		return nil, &tool.Failure{Code: r.ErrorType, Message: *detail}
	case r.ErrorType == lathe.CodeTimeout && r.Limit != "":
		<-ctx.Done() // the runner reports the time to the model
		return nil, ctx.Err()
	case r.ErrorType == lathe.CodeOutputTooLarge && o.executed != nil:
		return &lathe.Output{Data: json.RawMessage(`"` + strings.Repeat("x", o.executed.OutputSizeBytes) + `"`)}, nil
	}
	return nil, r.ErrorType.Errorf("replay: call "+r.Tool, "it failed so in the record")
}

// member returns a member of a result, or nil if none exists.
func member(text, name string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	return all[name]
}

// isEnvelope reports whether a result has the form of an envelope.
func isEnvelope(text string) bool {
	return member(text, "ok") != nil && member(text, "tool_name") != nil
}

// dataOf returns the output from which a result was made.
func dataOf(text string) json.RawMessage {
	if !isEnvelope(text) {
		return json.RawMessage(text)
	}
	if data := member(text, "data"); data != nil {
		return data
	}
	return json.RawMessage("{}") // a compact envelope omits empty data
}

// errorData returns the data that a tool returned with its failure, or nil.
func errorData(text string) json.RawMessage {
	data := member(text, "data")
	if isEnvelope(text) && string(data) == "{}" {
		return nil
	}
	return data
}
