package server

import (
	"context"
	"encoding/json"

	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/wire"
)

// A response repeats members of its request, and its items depend on them. So the log of the run of a stored response
// contains the request, without its conversation, as the client data of the run's input (loop.Input). Retention removes it
// when it removes the contents of the run.

// maxEcho is the maximum size in bytes of a request that is stored. If a request is larger, its stored response repeats
// only the instructions.
const maxEcho = 256 << 10

// A storedRequest is the JSON of the request in the log of a stored response.
type storedRequest struct {
	Request json.RawMessage `json:"request"`
	Created int64           `json:"created"`
	// Binding is the context to which the carriers of the answer are bound; nil: the answer has no carriers.
	Binding []string `json:"binding,omitempty"`
}

// storeRequest adds the request to the input of the run if its response is stored.
func (a *content) storeRequest() {
	if !a.head.Kept {
		return
	}
	s := &storedRequest{Created: a.head.Created}
	if a.carriers != nil {
		s.Binding = a.carriers.Binding()
	}
	// Model, input and instructions are elsewhere in the log of the run.
	s.Request = rawjson.Without(a.req.Body[rawjson.SkipSpace(a.req.Body, 0):], "input", "instructions", "model")
	if len(s.Request) > maxEcho {
		s.Request = []byte("{}")
	}
	if raw, err := json.Marshal(s); err == nil { // the request was checked, so encoding it does not fail
		runinput.Of(&a.in).Client = raw
	}
}

func withMember(obj []byte, name string, value []byte) []byte {
	same := func(_ string, v []byte) (key, value []byte, keep bool) { return nil, v, true }
	return rawjson.AppendEdited(nil, obj, same, func(dst []byte) []byte { return wire.JSON(dst).Val(name, value) })
}

// restoreRequest sets the request of a, and the other state on which its answer depends, from the log of a stored response.
// If the log has no request, because an earlier version wrote it or the content was removed, only the model and the
// instructions are restored.
func (a *content) restoreRequest(ctx context.Context, v *runlog.View) {
	body := []byte("{}")
	var s storedRequest
	if raw := v.State.Client(); len(raw) > 0 && json.Unmarshal(raw, &s) == nil && len(s.Request) > 0 {
		body, a.head.Created = s.Request, s.Created
	}
	if first := v.State.Messages; v.State.Run.Labels[labelResponse] == storedInstructed && len(first) > 0 {
		body = withMember(body, "instructions", rawjson.AppendQuote(nil, first[0].Text()))
	}
	req, err := responsesAPI.ParseRequest(withMember(withMember(body, "input", []byte("[]")), "model", rawjson.AppendQuote(nil, v.State.Target)))
	if err != nil {
		req = &wire.ClientRequest{N: 1}
	}
	req.Body, req.Model, req.Messages = body, v.State.Target, nil
	a.members = members{protocol: responsesAPI, req: req}
	a.head.Request = req
	a.lastTurnOnly = wantsJSON(req.Sampling.ResponseFormat)
	if options, p := parseOptions(a.asked()); p == nil {
		a.showsCalls, a.session = options.show != showHidden, options.session
	}
	l, p := a.caller.loopOf(v)
	if p != nil {
		return
	}
	a.job.loop = l
	if len(s.Binding) > 0 {
		a.carriers = a.handler.turns.StoredCarriers(ctx, s.Binding, v.State.Run.RunID)
	}
}
