package provider_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// The number of tokens is read from the member of the wire only.
func TestCountIsReadFromTheMemberOfTheWire(t *testing.T) {
	t.Parallel()
	for wire, member := range map[lathe.Wire]string{lathe.WireMessages: "input_tokens", lathe.WireResponses: "input_tokens", lathe.WireGemini: "totalTokens"} {
		for _, name := range []string{"input_tokens", "totalTokens"} {
			c, err := provider.New(wire, "m", &provider.Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"` + name + `":5}`)), Request: r}, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			n, err := c.CountTokens(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}})
			if name == member && (n != 5 || err != nil) || name != member && lathe.CodeOf(err) != lathe.CodeUpstreamProtocol {
				t.Errorf("%s with %s: %d, %v", wire, name, n, err)
			}
		}
	}
}
