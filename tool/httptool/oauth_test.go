package httptool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool/httptool"
)

// A bearer adds a token to requests, or returns the error for a missing token.
type bearer struct {
	token string
	err   error
	next  http.RoundTripper
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.err != nil {
		return nil, b.err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}

func (b *bearer) over(next http.RoundTripper) http.RoundTripper {
	b.next = next
	return b
}

// A server that says the token again does not show it to a model, nor does one in escapes.
func TestT8_T21_TokensAreTakenOutOfAnswers(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		sent, _ := json.Marshal(r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{"sent":` + string(sent) + `,"escaped":"canary\u002dtoken"}`))
	})
	b := &bearer{token: "canary-token"}
	opts := &httptool.Options{Tokens: func() []secret.Secret { return []secret.Secret{secret.New(b.token)} }}
	set := newSet(t, loopback(t, srv.URL).With(b.over), opts, &httptool.Definition{Name: "echo", URL: srv.URL, OAuth: true, Allowlist: []string{"*"}})
	got := call(t, set, "echo", `{}`)
	if strings.Contains(got.Content, "canary") || strings.Count(got.Content, "[redacted]") != 2 {
		t.Errorf("got %s", got.Content)
	}
}

func TestMissingTokensAreReported(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	b := &bearer{}
	set := newSet(t, loopback(t, srv.URL).With(b.over), &httptool.Options{LoginCommand: "log in to echo"},
		&httptool.Definition{Name: "echo", URL: srv.URL, OAuth: true, Allowlist: []string{"*"}})
	for want, err := range map[string]error{
		"needs a person to log in: log in to echo": &oauth.Error{Err: &oauth.LoginError{Name: "echo", Why: "there is no token"}},
		"there is none: invalid_client":            &oauth.Error{Err: errors.New("invalid_client")},
		"its operator has to find out why":         &oauth.Error{Err: fmt.Errorf("renewing the token: %w", &oauth.StoreError{Err: errors.New("/canary/tokens.json may be read by others")})},
	} {
		b.err = err
		if got := call(t, set, "echo", `{}`); got.Code != "unavailable" || !strings.Contains(got.Content, want) || strings.Contains(got.Content, "canary") {
			t.Errorf("got %+v", got)
		}
	}
}

func TestOAuthStandsAlone(t *testing.T) {
	t.Parallel()
	def := &httptool.Definition{Name: "x", URL: "https://api.example.com", OAuth: true, Allowlist: []string{"*"},
		Credentials: httptool.Credentials{Headers: map[string]secret.Secret{"authorization": secret.New("Bearer canary")}}}
	_, err := httptool.New(def, loopback(t, "https://api.example.com:443"), nil)
	if field := (*httptool.FieldError)(nil); !errors.As(err, &field) || field.Field != "oauth" {
		t.Errorf("got %v", err)
	}
}

// Which operations of a document use a token, and the scopes of that token.
func TestTokensOfADocument(t *testing.T) {
	t.Parallel()
	const schemes = `"components":{"securitySchemes":{"login":{"type":"oauth2","flows":{}},"id":{"type":"openIdConnect","openIdConnectUrl":"https://as.example"},
		"bearer":{"type":"http","scheme":"bearer"},"key":{"type":"apiKey","in":"header","name":"X-Key"}}},`
	for _, tc := range []struct {
		name, security, schemes string
		sendsToken              bool
		scopes                  []string
	}{
		{"oauth2", `[{"login":["a","b"]}]`, schemes, true, []string{"a", "b"}},
		{"openIdConnect", `[{"id":["a"]}]`, schemes, true, []string{"a"}},
		{"bearer", `[{"bearer":["role"]}]`, schemes, true, nil},
		{"with a key", `[{"login":["a"],"key":[]}]`, schemes, true, []string{"a"}},
		{"a key before", `[{"key":[]},{"login":["a"]}]`, schemes, false, nil},
		{"public", `[]`, schemes, false, nil},
		{"no schemes", `[]`, "", true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			doc := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},` + tc.schemes + `"paths":{"/a":{"get":{"operationId":"a","security":` + tc.security + `}}}}`
			opts := &httptool.ImportOptions{Source: "d", Server: "https://api.example.com", Operations: []string{"a"}, OAuth: true, Allowlist: []string{"*"}}
			if tc.schemes != "" {
				opts.Security = map[string]secret.Secret{"key": secret.New("k")}
			}
			defs, err := httptool.Import([]byte(doc), opts)
			if err != nil {
				t.Fatal(err)
			}
			if defs[0].OAuth != tc.sendsToken || !slices.Equal(defs[0].Scopes, tc.scopes) {
				t.Errorf("carries %v, scopes %q", defs[0].OAuth, defs[0].Scopes)
			}
			if _, has := defs[0].Credentials.Headers["Authorization"]; has {
				t.Error("it has a credential besides")
			}
		})
	}
}
