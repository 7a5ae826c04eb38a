package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/connect"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/sim"
)

// Limits of a request to a gateway.
const (
	connectTimeout   = time.Minute // timeout of one request
	maxConnectAnswer = 4 << 20     // bytes of a response
)

// variableName matches names of environment variables, and "".
var variableName = lazy.Regexp(`^\w*$`)

// A connectTarget is the gateway that an agent is to use.
type connectTarget struct {
	url    string // URL without path and final slash
	keyEnv string
	key    string
	http   *http.Client
}

func newConnectTarget(address, keyEnv string) (*connectTarget, error) {
	from := "--url"
	if address == "" {
		address, from = cmp.Or(os.Getenv(serverVariable), defaultServer), serverVariable
	}
	if !isGatewayURL(address) {
		return nil, usageError("%s %q: want the address of a gateway, such as %s", from, address, defaultServer)
	}
	if !variableName().MatchString(keyEnv) {
		return nil, usageError("--key-env wants the name of a variable, such as LATHE_API_KEY, and not the key itself")
	}
	t := &connectTarget{url: withoutVersion(address), keyEnv: keyEnv, key: os.Getenv(keyEnv), http: directClient()}
	t.http.Timeout = connectTimeout
	return t, nil
}

// do makes a request and returns the status and body of the response, or an error if the gateway does not accept the key.
func (t *connectTarget) do(ctx context.Context, method, path string, body any, header http.Header) (status int, text []byte, err error) {
	req, err := jsonRequest(ctx, method, t.url+path, t.key, body)
	if err != nil {
		return 0, nil, usageError("--url: %w", err)
	}
	req.Header.Set("Content-Type", "application/json") // also for a request without a body
	maps.Copy(req.Header, header)
	resp, err := t.http.Do(req)
	if err != nil {
		return 0, nil, exit(exitUpstream, "no gateway answers at %s: %w; start one with `lathe serve`, or give its address with --url", t.url, withoutAddress(err))
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(resp.Body, maxConnectAnswer)); err != nil {
		return 0, nil, exit(exitUpstream, "the answer of %s cannot be read: %w", t.url, err)
	}
	return resp.StatusCode, text, t.refusedKey(resp.StatusCode)
}

// refusedKey returns an error if the status means that the key is wrong, else nil.
func (t *connectTarget) refusedKey(status int) error {
	switch {
	case status != http.StatusUnauthorized:
		return nil
	case t.keyEnv == "":
		return usageError("the gateway at %s wants a key: give --key-env NAME, the variable that holds one", t.url)
	case t.key == "":
		return usageError("the gateway at %s wants a key, and the variable %s is not set: export it", t.url, t.keyEnv)
	}
	return usageError("the gateway at %s does not accept the key in %s", t.url, t.keyEnv)
}

// models returns the names of the models of the gateway.
func (t *connectTarget) models(ctx context.Context) ([]string, error) {
	status, text, err := t.do(ctx, http.MethodGet, "/v1/models", nil, nil)
	if err != nil {
		return nil, err
	}
	var list modelList
	if status != http.StatusOK || json.Unmarshal(text, &list) != nil {
		return nil, exit(exitUpstream, "%s/v1/models answers %d and no list of models: is it the address of a `lathe serve`?", t.url, status)
	}
	return list.names(), nil
}

// chooseModel returns the model with that name or, without a name, the only model. If there are only simulated models, it returns sim/demo.
func chooseModel(name string, models []string) (string, error) {
	shown := models
	if len(shown) > 10 {
		shown = append(slices.Clone(shown[:10]), "…")
	}
	has := "the gateway has " + strings.Join(shown, ", ")
	onlySimulated := !slices.ContainsFunc(models, func(m string) bool { return !isSimulated(m) })
	switch {
	case len(models) == 0:
		return "", exit(exitUpstream, "the gateway has no model for this key")
	case name != "" && slices.Contains(models, name):
		return name, nil
	case name != "":
		return "", usageError("the gateway has no model %q: %s", printable(name), printable(text.Suggest(name, models, has)))
	case len(models) == 1:
		return models[0], nil
	case onlySimulated && slices.Contains(models, sim.DemoModel):
		return sim.DemoModel, nil
	}
	return "", usageError("which model? give --model NAME: %s", printable(has))
}

// ask makes a small request in a protocol and returns its path.
func (t *connectTarget) ask(ctx context.Context, wire, model string) (path string, err error) {
	const prompt = "Answer with the word ok."
	message := []map[string]string{{"role": "user", "content": prompt}}
	var body any
	var header http.Header
	member := "" // of a complete answer
	switch wire {
	case connect.Chat:
		path, member = "/v1/chat/completions", "choices"
		body = map[string]any{"model": model, "messages": message}
	case connect.Responses:
		path, member = "/v1/responses", "output"
		body = map[string]any{"model": model, "input": prompt, "store": false}
	case connect.Messages:
		path, member = "/v1/messages", "content"
		body = map[string]any{"model": model, "messages": message, "max_tokens": 1024}
		header = http.Header{"Anthropic-Version": {"2023-06-01"}}
	case connect.Gemini:
		path, member = "/v1beta/models/"+url.PathEscape(model)+":generateContent", "candidates"
		body = map[string]any{"contents": []any{map[string]any{"role": "user", "parts": []any{map[string]string{"text": prompt}}}}}
	}
	status, text, err := t.do(ctx, http.MethodPost, path, body, header)
	if err != nil {
		return path, err
	}
	var answer map[string]json.RawMessage
	if json.Unmarshal(text, &answer) == nil && status == http.StatusOK && len(answer[member]) > 0 {
		return path, nil
	}
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
		return path, exit(exitUpstream, "POST %s%s answers %d: this gateway does not serve %s, or not the model %s", t.url, path, status, wire, printable(model))
	}
	said := ""
	if m := rawjson.TextAt(text, "error", "message"); m != "" {
		said = ": " + printable(m)
	}
	return path, exit(exitUpstream, "POST %s%s answers %d%s; `lathe doctor` examines the model server behind it", t.url, path, status, said)
}
