package gateway

import (
	"net/http"

	"github.com/lathe-run/lathe"
)

// A modelRow is a model as OpenAI lists it.
type modelRow struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (c *caller) modelNames() []string {
	var names []string
	for _, name := range c.setup.Models.Names() {
		if c.key.mayModel(name) {
			names = append(names, name)
		}
	}
	return names
}

// model returns the model that a request names, if the key may use it.
func (c *caller) model(name string) (*Model, *problem) {
	m, err := c.setup.Models.Model(name)
	switch {
	case err != nil && lathe.CodeOf(err) != lathe.CodeNotFound:
		return nil, &problem{Status: http.StatusInternalServerError, Code: "internal_error", Message: "The model cannot be used; the server's log says why.", NoRetry: true}
	case err != nil:
		return nil, &problem{Status: http.StatusNotFound, Code: "model_not_found", Param: "model", Message: "There is no such model; GET /v1/models lists them." + mean(name, c.modelNames())}
	case !c.key.mayModel(name):
		return nil, &problem{Status: http.StatusForbidden, Code: "model_forbidden", Param: "model", Message: "This key may not use the model."}
	}
	return m, nil
}

func (g *Gateway) listModels(w http.ResponseWriter, _ *http.Request, c *caller) {
	rows := []modelRow{}
	for _, name := range c.modelNames() {
		row := modelRow{ID: name, Object: "model", OwnedBy: "lathe"}
		if m, err := c.setup.Models.Model(name); err == nil && !m.Created.IsZero() {
			row.Created = m.Created.Unix()
		}
		rows = append(rows, row)
	}
	c.answer(w, struct {
		Object string     `json:"object"`
		Data   []modelRow `json:"data"`
	}{"list", rows})
}

func (g *Gateway) showModel(w http.ResponseWriter, r *http.Request, c *caller) {
	name := r.PathValue("id")
	m, p := c.model(name)
	if p != nil {
		c.fail(w, p)
		return
	}
	row := modelRow{ID: name, Object: "model", OwnedBy: "lathe"}
	if !m.Created.IsZero() {
		row.Created = m.Created.Unix()
	}
	c.answer(w, &row)
}
