package server

import (
	"net/http"

	"github.com/lathe-run/lathe"
)

// A modelRow is the JSON of a model in OpenAI's format.
type modelRow struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (c *access) modelNames() []string {
	var names []string
	for _, name := range c.setup.Models.Names() {
		if c.key.mayModel(name) {
			names = append(names, name)
		}
	}
	return names
}

// model returns the model that a request names, or a problem if it does not exist, cannot be used, or the key may not use
// it.
func (c *caller) model(name string) (*Model, *problem) {
	m, err := c.setup.Models.Model(name)
	switch {
	case err != nil && lathe.CodeOf(err) != lathe.CodeNotFound:
		c.setup.log.Error("a model cannot be used", "request_id", c.requestID, "model", name, "error", err)
		return nil, &problem{Status: http.StatusInternalServerError, Code: "internal_error", Message: "The model cannot be used; the gateway's log says why.", NoRetry: true}
	case err != nil:
		return nil, notFound("model_not_found", "There is no such model; GET /v1/models lists them.%s", mean(name, c.modelNames())).WithParam("model")
	case !c.key.mayModel(name):
		return nil, forbidden("model_forbidden", "This key may not use the model.").WithParam("model")
	}
	return m, nil
}
