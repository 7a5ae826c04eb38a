package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// A stored response is returned as it was written, its signed reasoning included.
func TestSignedResponsesAreReturned(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]func(string, *provider.Options) (lathe.Model, error){
		"anthropic": func(m string, o *provider.Options) (lathe.Model, error) { return provider.Anthropic(m, o) },
		"responses": func(m string, o *provider.Options) (lathe.Model, error) { return provider.Responses(m, o) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := model("sim/thinking", &provider.Options{BaseURL: "http://models.example", Entry: "x", Transport: newBoundServer()})
			if err != nil {
				t.Fatal(err)
			}
			g := open(t, func(set *setting) { set.model = m })
			_, body := g.do("POST", "/v1/responses", `{"model":"sim/demo","input":"Why is the sky blue?"}`)
			type response struct {
				ID, Status string
				Output     json.RawMessage
			}
			first := parse[response](t, body)
			if !strings.Contains(body, `"type":"reasoning"`) {
				t.Fatalf("the answer has no reasoning: %s", body)
			}
			for _, again := range [][2]string{{"GET", ""}, {"POST", "/cancel"}} {
				resp, got := g.do(again[0], "/v1/responses/"+first.ID+again[1], "")
				if r := parse[response](t, got); resp.StatusCode != 200 || r.ID != first.ID || r.Status != "completed" || string(r.Output) != string(first.Output) {
					t.Errorf("%s %s returns %d\n%s\nwant\n%s", again[0], again[1], resp.StatusCode, got, body)
				}
			}
		})
	}
}
