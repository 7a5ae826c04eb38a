package server

import (
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/places"
	"github.com/lathe-run/lathe/internal/wire"
)

// checkContent returns a problem if the model server does not support content of the messages, and returns the paths of
// content that is left out. It is called for every run, on every wire. at converts a path in the messages to a path in the
// request.
func (m *Model) checkContent(messages []lathe.Message, at func(path string) string) (dropped []string, p *problem) {
	dropped, err := m.Loop.CheckContent(messages)
	var bad *wire.ContentError
	if errors.As(err, &bad) {
		return nil, badRequest(at(bad.Path()), "%s", bad.Reason()).WithCode("unsupported_content")
	}
	for i, path := range dropped {
		dropped[i] = at(path)
	}
	return dropped, nil
}

// place converts a path in the messages of the run to a path in the client's request.
func (a *exchange) place(path string) string {
	if a.placed == nil {
		a.placed = places.Of(a.protocol.Wire(), a.req.Body, a.parsed, a.in.Messages)
	}
	return a.placed(path)
}
