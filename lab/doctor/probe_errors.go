package doctor

import (
	"bytes"
	"context"
	"net/http"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/secret"
)

// noSuch is neither a model nor a key.
const noSuch = "lathe-doctor-no-such"

func probeUnknownModel(ctx context.Context, x *examiner) {
	req := x.request(echoPrompt)
	req.Model = noSuch
	x.expectError(ctx, noSuch, x.body(req, unstreamed), x.target.Key, "unknown-model-accepted")
}

func probeWrongKey(ctx context.Context, x *examiner) {
	x.expectError(ctx, x.target.Model, x.body(x.request(echoPrompt), unstreamed), secret.New(noSuch), "key-unchecked")
}

func probeMalformed(ctx context.Context, x *examiner) {
	x.expectError(ctx, x.target.Model, []byte(`{"model":`), x.target.Key, "malformed-accepted")
}

// expectError sends an invalid request. A 5xx response is one of the possible results, so that the request is not repeated.
func (x *examiner) expectError(ctx context.Context, model string, body []byte, key secret.Secret, accepted string) {
	e := x.send(ctx, http.MethodPost, x.callURL(model, unstreamed), body, key)
	switch {
	case e.status == 0 || e.timedOut:
		x.refusal(e, withoutTools, "error-shape")
	case e.status == http.StatusTooManyRequests: // unrelated to the invalid request
	case e.status < 300:
		if !hasError(e.body) {
			x.find(accepted)
		}
	case e.status >= 500:
		x.find("error-status", e.explain())
	case !e.isError():
		x.find("error-shape")
	}
}

func hasError(b []byte) bool {
	b = bytes.TrimSpace(b)
	if !isObject(b) {
		return false
	}
	e := rawjson.At(b, "error")
	return e != nil && string(e) != "null"
}
