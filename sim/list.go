package sim

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// models serves the list of models: in Google's form below /v1beta, in Anthropic's form if the request has the header Anthropic-Version,
// else in OpenAI's form.
func (s *Sim) models(w http.ResponseWriter, r *http.Request) {
	created := s.opts.Now().Unix()
	names := s.Names()
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1beta/"):
		list := make([]gemini.Model, 0, len(names))
		for _, name := range names {
			list = append(list, gemini.Model{ID: name})
		}
		writeJSON(w, gemini.AppendModels(nil, list))
	case r.Header.Get("Anthropic-Version") != "":
		list := make([]messages.Model, 0, len(names))
		for _, name := range names {
			list = append(list, messages.Model{ID: name, Created: created})
		}
		writeJSON(w, messages.AppendModels(nil, list))
	default:
		type model struct {
			ID      string `json:"id"`
			Object  string `json:"object"`
			Created int64  `json:"created"`
			OwnedBy string `json:"owned_by"`
		}
		list := make([]model, len(names))
		for i, name := range names {
			list[i] = model{name, "model", created, "lathe"}
		}
		body, _ := json.Marshal(struct { // these types cannot fail
			Object string  `json:"object"`
			Data   []model `json:"data"`
		}{"list", list})
		writeJSON(w, body)
	}
}
