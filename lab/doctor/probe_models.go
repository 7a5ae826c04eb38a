package doctor

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// probeModels searches the list of models for that of the target.
func probeModels(ctx context.Context, x *examiner) {
	at, err := wire.ModelsURL(x.base, x.codec)
	if err != nil {
		at = x.base
	}
	e := x.ask(ctx, http.MethodGet, at, nil, x.target.Key)
	if e.status == 0 || e.status == http.StatusUnauthorized || e.status == http.StatusForbidden || isTemporary(e.status) {
		if len(x.probe.Findings) == 0 { // the next probe reports the cause
			x.probe.Outcome, x.probe.Why = Skipped, "the list did not come"
		}
		return
	}
	var data []byte
	if body := bytes.TrimSpace(e.body); e.status == http.StatusOK && isObject(body) {
		data = firstOf(body, "data", "models") // the second is the member of Google's API
	}
	if !is(data, '[') {
		x.find("models-missing", e.explain())
		return
	}
	for m := range rawjson.Elements(data) {
		id := firstOf(m, "id", "name")
		if !is(id, '"') {
			continue
		}
		// Ollama omits ":latest", and Google prefixes "models/".
		if strings.TrimSuffix(strings.TrimPrefix(rawjson.Text(id), "models/"), ":latest") == strings.TrimSuffix(x.target.Model, ":latest") {
			x.listed = nil
			return
		}
		if len(x.listed) < maxListed {
			x.listed = append(x.listed, clip(rawjson.Text(id)))
		}
	}
	x.find("model-not-listed", strings.TrimPrefix(x.names(), "; "))
}

// firstOf returns the first member with one of the names, or nil.
func firstOf(object []byte, names ...string) []byte {
	for _, name := range names {
		if v := rawjson.At(object, name); v != nil {
			return v
		}
	}
	return nil
}

// maxListed is the largest number of listed models that are stored.
const maxListed = 100

// names returns the models that the server lists, for an error text.
func (x *examiner) names() string {
	const most = 5
	n := len(x.listed)
	if n == 0 {
		return ""
	}
	text := "; it lists " + strings.Join(x.listed[:min(n, most)], ", ")
	if n > most {
		text += ", …"
	}
	return text
}

// aboutModel reports whether the text of a refusal means that the model does not exist.
func aboutModel(words string) bool {
	text := strings.ToLower(words)
	return strings.Contains(text, "model") && (strings.Contains(text, "not found") || strings.Contains(text, "not exist") || strings.Contains(text, "unknown model"))
}
