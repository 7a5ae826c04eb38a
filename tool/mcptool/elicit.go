package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/form"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
)

// Limits of the elicitations within one call.
const (
	maxRounds        = 10 // number of results of one call that contain questions
	maxInputs        = 16 // questions in one result
	maxQuestionBytes = 4 << 10
)

// capabilities returns the capabilities that the client declares to a server: the requests that it answers.
func (s *supervisor) capabilities() *mcp.ClientCapabilities {
	if s.conf.Elicitation == ElicitRefuse {
		return &mcp.ClientCapabilities{}
	}
	can := &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	if s.conf.Elicitation == ElicitAskURLs {
		can.URL = &mcp.URLElicitationCapabilities{}
	}
	return &mcp.ClientCapabilities{Elicitation: can}
}

// A question is an elicitation of a server, a form or a URL, without hidden characters in its texts.
type question struct {
	form *form.Form // nil: a URL
	id   string     // elicitation id of a URL
	ask  tool.Question
}

// readQuestion reads the parameters of elicitation/create, which are valid JSON.
func (s *supervisor) readQuestion(params []byte) (*question, error) {
	if rawjson.Kind(params) != '{' {
		return nil, form.ErrForm
	}
	server := s.conf.Name
	switch mode := rawjson.TextAt(params, "mode"); {
	case mode == "url" && s.conf.Elicitation == ElicitAskURLs:
		return readLink(server, params)
	case mode != "form" && mode != "":
		return nil, errors.New("a question that is not a form")
	}
	message, _ := clean(rawjson.TextAt(params, "message"))
	schema := rawjson.At(params, "requestedSchema")
	if schema == nil || len(schema) > maxSchemaBytes {
		return nil, form.ErrForm
	}
	schema, _, err := cleanSchema(nil, schema)
	if err != nil {
		return nil, err
	}
	q := &question{ask: tool.Question{Form: &tool.Form{Schema: schema,
		Message: "the MCP server " + server + " asks: " + text.Clip(message, maxQuestionBytes)}}}
	q.form, err = form.Read(schema)
	return q, err
}

// answered converts an answer to the result for the server. Default values replace omitted ones.
func (q *question) answered(a tool.Answer) (*mcp.ElicitResult, error) {
	if a.Refused != "" {
		return refused(a.Refused), nil
	}
	if q.form == nil {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	values, err := q.form.Fill(a.Form)
	if err != nil {
		return nil, fmt.Errorf("the answer does not fit the form: %w", err)
	}
	r := &mcp.ElicitResult{Action: "accept", Content: make(map[string]any, len(values))}
	for name, v := range values {
		r.Content[name] = v
	}
	return r, nil
}

// refused returns the result for a person who declined ("decline") or gave no answer ("cancel").
func refused(how string) *mcp.ElicitResult {
	if how != "decline" {
		how = "cancel"
	}
	return &mcp.ElicitResult{Action: how}
}

// byDefault returns the result with the default values of a form, or a refusal if a value without a default is required.
func (q *question) byDefault() *mcp.ElicitResult {
	r, err := q.answered(tool.Answer{})
	if err != nil {
		return refused("decline")
	}
	return r
}

// asked handles a request of a server with protocol version 2025-11-25 or earlier to its client. Only elicitation/create is answered.
func (s *supervisor) asked(ctx context.Context, conn *session, method string, req mcp.Request) (mcp.Result, error) {
	notOffered := &jsonrpc.Error{Code: rpcMethodNotFound, Message: "not offered"}
	if method != "elicitation/create" {
		return nil, notOffered
	}
	p, ok := req.GetParams().(*mcp.ElicitParams)
	if !ok || s.conf.Elicitation == ElicitRefuse {
		s.refusedRequest()
		return nil, notOffered
	}
	bad := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the question cannot be answered"}
	params, err := json.Marshal(p)
	if err != nil {
		return nil, bad
	}
	q, err := s.readQuestion(params)
	if err != nil {
		s.refusedRequest()
		return nil, bad
	}
	if s.conf.Elicitation == ElicitDefaults {
		return q.byDefault(), nil
	}
	asker := conn.tap.caller()
	if asker == nil {
		return refused("cancel"), nil
	}
	// The idle timeout of all calls over the connection is suspended, because the server may delay all of them.
	conn.tap.suspendIdle()
	got, err := asker.Ask(ctx, map[string]tool.Question{"form": q.ask})
	if q.form == nil && err == nil && got["form"].Refused == "" {
		conn.tap.visiting(q.id)
	}
	conn.tap.resumeIdle()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil: // no user can be asked: the server gets "cancel"
		got = map[string]tool.Answer{"form": {Refused: "cancel"}}
	}
	res, err := q.answered(got["form"])
	if err != nil {
		return nil, bad
	}
	return res, nil
}

// An inputError is the reason why questions are not answered. Its text is for the model.
type inputError struct{ why string }

func (e *inputError) Error() string { return e.why }

// declined returns the output for a model of a call whose questions are not answered.
func declined(e *inputError) *lathe.Output {
	return &lathe.Output{IsError: true, Data: append(appendMember([]byte{'{'}, "error", e.why), '}')}
}

// inputs answers the questions in a result. It returns the answers and the state with which the call is sent again.
func (s *supervisor) inputs(ctx context.Context, conn *session, result []byte) (answers mcp.InputResponseMap, state string, err error) {
	raw := rawjson.At(result, "requestState")
	if raw != nil && raw[0] != '"' {
		return nil, "", errNoResult
	}
	state = rawjson.Text(raw)
	questions, err := s.questions(result)
	if err != nil {
		return nil, "", err
	}
	answers = mcp.InputResponseMap{}
	ask := map[string]tool.Question{}
	for key, q := range questions {
		if s.conf.Elicitation == ElicitDefaults {
			answers[key] = q.byDefault()
		} else {
			ask[key] = q.ask
		}
	}
	if len(ask) == 0 {
		return answers, state, nil
	}
	got, err := tool.AskerFrom(ctx).Ask(ctx, ask)
	if err != nil {
		return nil, "", err
	}
	for key := range ask {
		a, ok := got[key]
		if !ok {
			a.Refused = "cancel"
		}
		if q := questions[key]; q.form == nil && a.Refused == "" {
			conn.tap.visiting(q.id)
		}
		res, err := questions[key].answered(a)
		if err != nil {
			return nil, "", &inputError{"a question that the server asked in the middle of the call was not answered well: " + err.Error()}
		}
		answers[key] = res
	}
	return answers, state, nil
}

// questions returns the questions in a result, by the server's key.
func (s *supervisor) questions(result []byte) (map[string]*question, error) {
	out := map[string]*question{}
	asked := rawjson.At(result, "inputRequests")
	if asked != nil && asked[0] != '{' {
		return nil, errNoResult
	}
	for key, raw := range rawjson.Members(asked) {
		if raw[0] != '{' {
			return nil, errNoResult
		}
		if len(out) == maxInputs {
			return nil, &inputError{fmt.Sprintf("the server asked more than %d questions in the middle of the call", maxInputs)}
		}
		if rawjson.TextAt(raw, "method") != "elicitation/create" || s.conf.Elicitation == ElicitRefuse {
			s.refusedRequest()
			return nil, &inputError{"the server asked for input in the middle of the call, and is given none"}
		}
		q, err := s.readQuestion(rawjson.At(raw, "params"))
		if err != nil {
			s.refusedRequest()
			return nil, &inputError{"the server asked a question in the middle of the call that cannot be answered: " + err.Error()}
		}
		out[rawjson.Text(key)] = q
	}
	return out, nil
}
