package server

import (
	"net/http"

	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// listModels handles GET /v1/models and /v1beta/models: the models that the key may use, in the format of the client's API.
func (h *catalogHandler) listModels(w http.ResponseWriter, _ *http.Request, c *caller) *problem {
	rows := []modelRow{}
	for _, name := range c.modelNames() {
		m, _ := c.setup.Models.Model(name) // nil if the model cannot be used now
		rows = append(rows, newModelRow(name, m))
	}
	switch c.form {
	case problems.Anthropic:
		list := make([]messages.Model, len(rows))
		for i := range rows {
			list[i] = messages.Model{ID: rows[i].ID, Created: rows[i].Created}
		}
		return answerRaw(w, http.StatusOK, messages.AppendModels(nil, list))
	case problems.Google:
		list := make([]gemini.Model, len(rows))
		for i := range rows {
			list[i] = gemini.Model{ID: rows[i].ID}
		}
		return answerRaw(w, http.StatusOK, gemini.AppendModels(nil, list))
	}
	return answer(w, struct {
		Object string     `json:"object"`
		Data   []modelRow `json:"data"`
	}{"list", rows})
}

// showModel handles GET of one model, in the format of the client's API.
func (h *catalogHandler) showModel(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	name := r.PathValue("id")
	m, p := c.model(name)
	if p != nil {
		return p
	}
	row := newModelRow(name, m)
	switch c.form {
	case problems.Anthropic:
		return answerRaw(w, http.StatusOK, messages.AppendModel(nil, &messages.Model{ID: row.ID, Created: row.Created}))
	case problems.Google:
		return answerRaw(w, http.StatusOK, gemini.AppendModel(nil, &gemini.Model{ID: row.ID}))
	}
	return answer(w, &row)
}

// newModelRow returns the row of a model; m is nil if the model cannot be used now.
func newModelRow(name string, m *Model) modelRow {
	row := modelRow{ID: name, Object: "model", OwnedBy: "lathe"}
	if m != nil && !m.Created.IsZero() {
		row.Created = m.Created.Unix()
	}
	return row
}
