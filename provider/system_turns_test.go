package provider_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSystemTurns: Anthropic's own server gets system messages between the turns in their place; if it refuses them, and at
// other servers of the wire, they are text of the user.
func TestSystemTurns(t *testing.T) {
	const system, wrapped = `{"role":"system","content":[{"type":"text","text":"s"}]}`, `{"type":"text","text":"<system>\ns\n</system>"}`
	answer := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[]}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	for _, tt := range []struct {
		name, base string
		refuse     bool
		want       []string
	}{
		{"vendor", "https://api.anthropic.com", false, []string{system, system}},
		{"vendor with path", "https://api.anthropic.com/v1/", false, []string{system, system}},
		{"vendor that refuses", "https://api.anthropic.com", true, []string{system, wrapped, wrapped}},
		{"other", "https://models.example", false, []string{wrapped, wrapped}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			m, err := provider.New(lathe.WireMessages, "m", &provider.Options{BaseURL: tt.base, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				bodies = append(bodies, string(b))
				res := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}
				if tt.refuse && bytes.Contains(b, []byte(system)) {
					res.StatusCode, res.Header = 400, http.Header{"Content-Type": {"application/json"}}
					res.Body = io.NopCloser(strings.NewReader(`{"type":"error","error":{"type":"invalid_request_error","message":"messages: Unexpected role \"system\"."}}`))
				}
				return res, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				for _, err := range m.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("a"), lathe.System("s"), lathe.User("b")}}) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if len(bodies) != len(tt.want) {
				t.Fatalf("%d requests, want %d", len(bodies), len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(bodies[i], want) {
					t.Errorf("request %d does not have %s:\n%s", i, want, bodies[i])
				}
			}
		})
	}
}
