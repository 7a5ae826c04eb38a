package server

import (
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/places"
	"github.com/lathe-run/lathe/internal/wire"
)

// checkContent refuses content of the messages that the model's server has no form for, and returns the places of what is left out. All
// requests for runs pass it, on every wire; at returns the place in the request for a place in the messages.
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

// place returns the place in the client's request for a path in the messages of the run.
func (a *exchange) place(path string) string {
	if a.placed == nil {
		a.placed = places.Of(a.protocol.Wire(), a.req.Body, a.parsed, a.in.Messages)
	}
	return a.placed(path)
}
