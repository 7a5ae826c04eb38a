package sim

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// models answers with the list of models: in Google's form below /v1beta, in Anthropic's if the request names a version of its
// API, else in OpenAI's.
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
		writeJSON(w, appendModels(nil, names, created))
	}
}

func appendModels(dst []byte, names []string, created int64) []byte {
	dst = append(dst, `{"object":"list","data":[`...)
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"id":`...)
		dst = rawjson.AppendQuote(dst, name)
		dst = append(dst, `,"object":"model","created":`...)
		dst = strconv.AppendInt(dst, created, 10)
		dst = append(dst, `,"owned_by":"lathe"}`...)
	}
	return append(dst, `]}`...)
}
