package sim

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// An exchange is a request to the simulated server and what its answer depends on.
type exchange struct {
	p      *protocol
	req    *wire.ClientRequest
	spec   spec
	body   []byte
	header http.Header
	n      int64 // number of the request
	// array: the answer is one JSON array instead of a stream of events.
	array bool
}

// read reads a request with parse, or with the codec if parse is nil. If the request is invalid, it writes the error and returns nil.
func (s *Sim) read(p *protocol, w http.ResponseWriter, r *http.Request, parse func(body []byte) (*wire.ClientRequest, error)) *exchange {
	if parse == nil {
		parse = p.ParseRequest
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		e := badRequest("The request body could not be read.")
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			e.Status, e.Message = http.StatusRequestEntityTooLarge, "The request body is larger than 16 MiB."
		}
		p.fail(w, e)
		return nil
	}
	req, err := parse(body)
	if err != nil {
		p.refuse(w, err)
		return nil
	}
	x := &exchange{p: p, req: req, body: body, header: r.Header}
	if x.spec, err = s.parse(req.Model); err == nil {
		err = x.spec.on(p)
	}
	if err != nil {
		p.fail(w, &wire.APIError{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Param: "model", Message: err.Error()})
		return nil
	}
	if e := x.refused(); e != nil {
		p.fail(w, e)
		return nil
	}
	x.n = s.requests.Add(1)
	w.Header().Set("X-Request-Id", "sim-"+strconv.FormatInt(x.n, 10))
	if p == messagesAPI {
		w.Header().Set("Request-Id", "req_sim-"+strconv.FormatInt(x.n, 10))
	}
	return x
}

func badRequest(message string) *wire.APIError {
	return &wire.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: message}
}

// refused returns the error for a request that the simulated model cannot answer, or nil. It also removes the tools that are not in
// req.Allowed.
func (x *exchange) refused() *wire.APIError {
	req := x.req
	switch {
	case req.Foreign != nil:
		return req.Foreign
	case req.PreviousID != "":
		return &wire.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "previous_response_not_found", Param: "previous_response_id",
			Message: "The simulated model keeps no responses: send the whole conversation."}
	}
	for _, h := range req.Hosted {
		if h.Forced {
			return badRequest("The simulated model has no tools of its own, such as " + h.Type + ".")
		}
	}
	if req.ToolChoice.Mode == lathe.ChoiceRequired && len(req.Tools)+len(req.Hosted) == 0 {
		return badRequest("A call is required, but there are no tools.")
	}
	if req.Allowed != nil {
		req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(t *lathe.ToolSpec) bool { return !slices.Contains(req.Allowed, t.Name) })
	}
	if bad := refusedArguments(x.p, req.Messages); bad != nil || !x.binds() {
		return bad
	}
	return refusedBinding(x.body, x.header)
}

// limited returns the body of a request with the member max_tokens added if it is missing: a request to count tokens need not have it.
func limited(body []byte) []byte {
	if !rawjson.IsObject(body, rawjson.Limits{}) || rawjson.At(body, "max_tokens") != nil {
		return body
	}
	i := rawjson.SkipSpace(body, 0) + 1
	if body[rawjson.SkipSpace(body, i)] == '}' {
		return body
	}
	return slices.Concat(body[:i], []byte(`"max_tokens":1,`), body[i:])
}
