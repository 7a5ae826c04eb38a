package server_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

const issuer = "https://login.example.com"

// signed is a text in the form of a token, for the holder of that name.
func signed(name string) string { return "eyJhbGciOiJub25lIn0." + name + ".signature" }

// An idp identifies the holders of the tokens that signed returns, each with the key of that name or, if none exists, with
// that which it has for all others.
type idp struct {
	keys    map[string]string
	others  string
	err     error
	expires time.Time
	version byte // of its settings
}

func (p *idp) Settings() [sha256.Size]byte { return [sha256.Size]byte{p.version} }

func (p *idp) Issuer() string { return issuer }

func (p *idp) Identify(_ context.Context, token string) (*server.Identity, error) {
	subject := strings.TrimSuffix(strings.TrimPrefix(token, "eyJhbGciOiJub25lIn0."), ".signature")
	switch {
	case p.err != nil:
		return nil, p.err
	case subject == "forged":
		return nil, errors.New("the token's signature is wrong")
	case subject == "guest":
		return nil, server.ErrNoProfile
	case subject == "offline":
		return nil, fmt.Errorf("%w: dial tcp 192.0.2.7:443", server.ErrNoIssuer)
	}
	key := p.keys[subject]
	if key == "" {
		key = p.others
	}
	return &server.Identity{Issuer: issuer, Subject: subject, Key: key, Labels: map[string]string{"team": "team-of-" + subject}, Expires: p.expires}, nil
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// identified is a setting with the profile dev and the key ann, beside an identity provider.
func identified(p *idp, change func(*server.Options)) *setting {
	return &setting{opts: func(o *server.Options) {
		dev, boss := server.Key{Name: "dev", Models: []string{"sim/demo"}, Tools: []string{"calculator"}, Approve: []string{server.ApproveOwn}}, server.Key{Name: "boss", Admin: true}
		o.Setup.Keys, o.Setup.Identity = []server.Key{key("ann"), dev, boss}, p
		if change != nil {
			change(o)
		}
	}}
}

func TestIdentifiedCallersHaveTheRightsOfTheirProfile(t *testing.T) {
	t.Parallel()
	p := &idp{others: "dev", keys: map[string]string{"root": "boss", "lost": "removed"}}
	f := serve(t, identified(p, nil))
	for name, c := range map[string]struct {
		path, body string
		header     []string
		status     int
		code       string
	}{
		"a caller":                      {"/v1/models", "", bearer(signed("carl")), 200, ""},
		"in Anthropic's header":         {"/v1/models", "", []string{"Authorization", "", "X-Api-Key", signed("carl")}, 200, ""},
		"in Google's header":            {"/v1beta/models", "", []string{"Authorization", "", "X-Goog-Api-Key", signed("carl")}, 200, ""},
		"twice":                         {"/v1/models", "", append(bearer(signed("carl")), "X-Api-Key", signed("carl")), 200, ""},
		"of two callers":                {"/v1/models", "", append(bearer(signed("carl")), "X-Api-Key", signed("dora")), 400, "conflicting_api_keys"},
		"beside a key":                  {"/v1/models", "", append(bearer(text("ann")), "X-Api-Key", signed("carl")), 400, "conflicting_api_keys"},
		"a forged token":                {"/v1/models", "", bearer(signed("forged")), 401, "invalid_token"},
		"a token beside a text":         {"/v1/models", "", append(bearer(signed("carl")), "X-Api-Key", "placeholder"), 200, ""},
		"a text beside a token":         {"/v1/models", "", append(bearer("placeholder"), "X-Api-Key", signed("carl")), 401, "invalid_api_key"},
		"no token":                      {"/v1/models", "", bearer("eyJhbGciOiJub25lIn0.carl"), 401, "invalid_api_key"},
		"without a profile":             {"/v1/models", "", bearer(signed("guest")), 403, "unknown_profile"},
		"with a profile that is no key": {"/v1/models", "", bearer(signed("lost")), 403, "unknown_profile"},
		"while the issuer is away":      {"/v1/models", "", bearer(signed("offline")), 503, "issuer_unavailable"},
		"another model":                 {"/v1/chat/completions", ask("sim/slow", "x", ""), bearer(signed("carl")), 403, "model_forbidden"},
		"another tool":                  {"/api/tools/get_current_time/call", "{}", bearer(signed("carl")), 403, "tool_forbidden"},
		"its tool":                      {"/api/tools/calculator/call", `{"arguments":{"expression":"1"}}`, bearer(signed("carl")), 200, ""},
		"another's state":               {"/api/audit", "", bearer(signed("carl")), 403, "admin_required"},
		"a label of its token":          {"/v1/chat/completions", ask("sim/demo", "x", `,"lathe":{"labels":{"team":"other"}}`), bearer(signed("carl")), 400, "invalid_request"},
	} {
		method := http.MethodGet
		if c.body != "" {
			method = http.MethodPost
		}
		resp, body := f.do(method, c.path, c.body, c.header...)
		if resp.StatusCode != c.status || !strings.Contains(body, c.code) {
			t.Errorf("%s: %d %s, want %d %s", name, resp.StatusCode, body, c.status, c.code)
		}
		if strings.Contains(body, "eyJ") || strings.Contains(body, "192.0.2.7") {
			t.Errorf("%s: the answer has the token or an address in it: %s", name, body)
		}
		if (c.status == 503) != (resp.Header.Get("Retry-After") != "") {
			t.Errorf("%s: Retry-After is %q", name, resp.Header.Get("Retry-After"))
		}
	}
	if _, body := f.do("GET", "/api/keys", "", bearer(signed("carl"))...); !strings.Contains(body, `"name":"dev"`) || strings.Contains(body, "boss") || !strings.Contains(body, `"active":1`) {
		t.Errorf("a caller sees the keys %s", body)
	}
}

// The owner of a run is the issuer and the subject: callers with one profile do not see each other's runs, nor does the
// holder of a key of any name.
func TestIdentifiedCallersDoNotSeeEachOther(t *testing.T) { // T25
	t.Parallel()
	p := &idp{others: "dev", keys: map[string]string{"root": "boss"}}
	f := serve(t, identified(p, nil))
	run := f.complete(ask("sim/demo", "What is 7 + 35?", `,"lathe":{"session":"s1","labels":{"own":"x"}}`), bearer(signed("carl"))...).Lathe.RunID
	rows := f.stored(&store.RunFilter{Principal: issuer + "#carl"})
	if len(rows) != 1 {
		t.Fatalf("%d runs of the caller are stored", len(rows))
	}
	for _, c := range []struct{ method, path string }{
		{"GET", "/api/runs/" + run}, {"GET", "/api/runs/" + run + "/events"}, {"GET", "/api/runs/" + run + "/export"}, {"POST", "/api/runs/" + run + "/cancel"}, {"DELETE", "/api/runs/" + run},
	} {
		for name, header := range map[string][]string{"another subject": bearer(signed("dora")), "a key": bearer(text("ann"))} {
			if resp, body := f.do(c.method, c.path, "", header...); resp.StatusCode != 404 {
				t.Errorf("%s %s of %s: %d %s", c.method, c.path, name, resp.StatusCode, body)
			}
		}
	}
	for _, path := range []string{"/api/runs", "/api/summaries", "/api/sessions", "/api/stats"} {
		if _, body := f.do("GET", path, "", bearer(signed("dora"))...); strings.Contains(body, run) || strings.Contains(body, `"s1"`) {
			t.Errorf("another subject sees the run in %s: %s", path, body)
		}
		if _, body := f.do("GET", path, "", bearer(signed("carl"))...); path != "/api/stats" && !strings.Contains(body, run) && !strings.Contains(body, `"s1"`) {
			t.Errorf("the owner does not see its run in %s: %s", path, body)
		}
	}
	if resp, _ := f.do("GET", "/api/runs/"+run, "", bearer(signed("root"))...); resp.StatusCode != 200 {
		t.Errorf("an admin does not see the run: %d", resp.StatusCode)
	}
	if _, body := f.do("GET", "/api/runs/"+run, "", bearer(signed("carl"))...); !strings.Contains(body, `"team":"team-of-carl"`) || !strings.Contains(body, `"own":"x"`) {
		t.Errorf("the labels of the run: %s", body)
	}
	p.keys["carl"] = "boss" // another profile, the same owner
	if resp, _ := f.do("GET", "/api/runs/"+run, "", bearer(signed("carl"))...); resp.StatusCode != 200 {
		t.Errorf("the owner under another profile: %d", resp.StatusCode)
	}
}

// Each identified caller has the rate of its profile to itself.
func TestIdentifiedCallersAreLimitedOneByOne(t *testing.T) {
	t.Parallel()
	now := newHandClock()
	f := serve(t, identified(&idp{others: "dev"}, func(o *server.Options) { o.Setup.Keys[1].RequestsPerMinute, o.Now = 2, now.now }))
	for i, want := range []int{200, 200, 429} {
		for _, name := range []string{"carl", "dora"} {
			if resp, _ := f.do("GET", "/v1/models", "", bearer(signed(name))...); resp.StatusCode != want {
				t.Errorf("request %d of %s: status %d, want %d", i, name, resp.StatusCode, want)
			}
		}
	}
}

// A session of an identified caller ends with the token, and when its profile or the issuer is removed.
func TestSessionsOfIdentifiedCallers(t *testing.T) {
	t.Parallel()
	now := newHandClock()
	p := &idp{others: "dev"}
	p.expires = now.now().Add(time.Hour)
	f := serve(t, identified(p, func(o *server.Options) { o.Now = now.now }))
	keys := []server.Key{key("ann"), {Name: "dev"}}
	signIn := func() *browser {
		b := newBrowser(f)
		if resp, body := b.do("POST", "/api/session", `{"key":"`+signed("carl")+`"}`); resp.StatusCode != 200 || !strings.Contains(body, issuer+"#carl") {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		return b
	}
	status := func(b *browser) int {
		resp, _ := b.do("GET", "/api/runs", "")
		return resp.StatusCode
	}
	b := signIn()
	if got := status(b); got != 200 {
		t.Fatalf("signed in: %d", got)
	}
	for name, s := range map[string]server.Setup{"another issuer": {Models: f.models, Keys: keys[:1]}, "another profile": {Models: f.models, Identity: p, Keys: []server.Key{key("ann"), {Name: "ops"}}}} {
		b := signIn()
		if _, err := f.gateway.Reload(&s); err != nil {
			t.Fatal(err)
		}
		if got := status(b); got != 401 {
			t.Errorf("%s: %d", name, got)
		}
		if _, err := f.gateway.Reload(&server.Setup{Models: f.models, Identity: p, Keys: keys}); err != nil {
			t.Fatal(err)
		}
	}
	now.add(time.Hour)
	if got := status(b); got != 401 {
		t.Errorf("after the end of the token: %d", got)
	}
	// A reload that changes the settings of the provider ends sessions and sign-in links, also those that would name the
	// same profile, and one that changes none does not.
	p.expires = time.Time{}
	for name, version := range map[string]byte{"the same settings": 0, "other settings": 1} {
		b, unused := signIn(), newBrowser(f)
		resp, body := f.do("POST", "/api/session/links", "", bearer(signed("carl"))...)
		if resp.StatusCode != http.StatusCreated {
			t.Fatalf("%s: a link: %d %s", name, resp.StatusCode, body)
		}
		link := parse[struct{ Fragment string }](t, body).Fragment
		if _, err := f.gateway.Reload(&server.Setup{Models: f.models, Keys: keys, Identity: &idp{others: "dev", version: version}}); err != nil {
			t.Fatal(err)
		}
		want := 200
		if version != 0 {
			want = 401
		}
		if got := status(b); got != want {
			t.Errorf("a session under %s: %d, want %d", name, got, want)
		}
		if resp, body := unused.do("POST", "/api/session", `{"link_token":"`+strings.TrimPrefix(link, "signin=")+`"}`); resp.StatusCode != want {
			t.Errorf("a link under %s: %d %s, want %d", name, resp.StatusCode, body, want)
		}
		if _, err := f.gateway.Reload(&server.Setup{Models: f.models, Identity: p, Keys: keys}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSetupOfIdentitiesIsChecked(t *testing.T) {
	t.Parallel()
	dev, hashed := server.Key{Name: "dev"}, server.Key{Name: "h", Hash: [32]byte{1}}
	both := key("b")
	both.Hash = [32]byte{2}
	of := func(k server.Key, approve string) server.Key {
		k.Approve = []string{approve}
		return k
	}
	for want, s := range map[string]server.Setup{
		"needs keys":           {Identity: &idp{}},
		"shorter than":         {Keys: []server.Key{dev}},
		"two keys are named":   {Identity: &idp{}, Keys: []server.Key{dev, {Name: "dev", Secret: secret.New(text("dev"))}}},
		"a key has no name":    {Identity: &idp{}, Keys: []server.Key{{}}},
		"a secret and a hash":  {Keys: []server.Key{both}},
		"the same as another":  {Keys: []server.Key{hashed, {Name: "i", Hash: hashed.Hash}}},
		"are those of identif": {Keys: []server.Key{{Name: "p", Secret: secret.New(text("p")), Profile: "x"}}},
		"dev is a profile":     {Identity: &idp{}, Keys: []server.Key{dev, of(key("a"), "dev")}},
	} {
		s.Models = &models{}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
