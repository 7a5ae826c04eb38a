// Package wiretest serves a [lathe.Model] over HTTP on any wire, for tests of clients.
package wiretest

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 8 << 20

// Handler returns a handler that serves model on the wire of served. GET returns the list of models; any other method runs the model.
// Requests whose header keyHeader differs from key get 401; an empty keyHeader disables this check. Requests for another model get 404.
func Handler(served wire.Served, model lathe.Model, keyHeader, key string) http.Handler {
	return &handler{served: served, model: model, name: model.Describe().Model, keyHeader: keyHeader, key: key}
}

type handler struct {
	served         wire.Served
	model          lathe.Model
	name           string
	keyHeader, key string
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gemini := h.served.Wire() == lathe.WireGemini
	if h.keyHeader != "" && r.Header.Get(h.keyHeader) != h.key {
		h.fail(w, &wire.APIError{Status: http.StatusUnauthorized, Message: "wrong key"})
		return
	}
	if r.Method == http.MethodGet {
		list := `{"data":[{"id":` + strconv.Quote(h.name) + `}]}`
		if gemini {
			list = `{"models":[{"name":` + strconv.Quote("models/"+h.name) + `}]}`
		}
		_, _ = io.WriteString(w, list) // the client may have disconnected, here and below
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	req, err := h.served.ParseRequest(body)
	if err != nil {
		var api *wire.APIError
		if !errors.As(err, &api) {
			api = &wire.APIError{Status: http.StatusBadRequest, Message: err.Error()}
		}
		h.fail(w, api)
		return
	}
	if gemini { // the path has the model and the streaming choice, which other wires have in the body
		req.Stream = strings.Contains(r.URL.Path, ":stream")
		if req.Model = "other"; strings.Contains(r.URL.Path, "/"+h.name+":") {
			req.Model = h.name
		}
	}
	if req.Model != h.name {
		h.fail(w, &wire.APIError{Status: http.StatusNotFound, Message: "no such model"})
		return
	}
	h.answer(w, r, req)
}

func (h *handler) fail(w http.ResponseWriter, e *wire.APIError) {
	w.WriteHeader(e.Status)
	_, _ = w.Write(h.served.AppendError(nil, e))
}

// answer generates a turn and writes it at once, as a stream or as one object.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, req *wire.ClientRequest) {
	head := wire.AnswerHead{ID: "00000000000000000000000001", Model: req.Model, Request: req}
	writer := h.served.NewWriter(&head)
	var out []byte
	var fin *lathe.Finish
	for d, err := range h.model.Generate(r.Context(), &req.Request) {
		switch {
		case err != nil:
			h.fail(w, &wire.APIError{Status: http.StatusInternalServerError, Message: err.Error()})
			return
		case d.Kind == lathe.DeltaFinish:
			fin = d.Finish
		default:
			out = writer.AppendDelta(out, d)
		}
	}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(wire.AppendAnswer(nil, h.served, &wire.Answer{AnswerHead: head, Finish: fin}))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(writer.AppendFinish(out, fin, nil))
}
