package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
	"github.com/lathe-run/lathe/secret"
)

// canary is put together here, so that no scanner takes the file for a leak.
var canary = "sk-" + strings.Repeat("c4n4ry", 4)

// endpoint returns where a model m on a server at base is asked.
func endpoint(w lathe.Wire, base string) (*url.URL, error) {
	codec := upstreams.Of(w)
	u, err := baseURL(base, codec, "m")
	if err != nil {
		return nil, err
	}
	return wire.CallURL(u, codec, "m", true)
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"},
		{"https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"},
		{"http://localhost:11434", "http://localhost:11434/v1/chat/completions"},
		{"http://localhost:11434/", "http://localhost:11434/v1/chat/completions"},
		{"https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"},
		{"https://ark.cn-beijing.volces.com/api/v3", "https://ark.cn-beijing.volces.com/api/v3/chat/completions"},
		{"https://x.test/v1/chat/completions", "https://x.test/v1/chat/completions"},
		{"https://x.test/openai/deployments/a%2Fb?api-version=2024-10-21", "https://x.test/openai/deployments/a%2Fb/chat/completions?api-version=2024-10-21"},
		{"https://x.test/v1#part", "https://x.test/v1/chat/completions"},
		{"http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"},
	} {
		u, err := endpoint(lathe.WireOpenAIChat, c.in)
		if err != nil || u.String() != c.want {
			t.Errorf("endpoint(%q): got %v, %v, want %s", c.in, u, err, c.want)
		}
	}
	for in, want := range map[string]string{
		"https://generativelanguage.googleapis.com":        "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
		"https://generativelanguage.googleapis.com/v1beta": "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
		"https://x.test/google/v1/?a=b":                    "https://x.test/google/v1/models/m:streamGenerateContent?alt=sse&a=b",
		"https://x.test/google":                            "https://x.test/google/v1beta/models/m:streamGenerateContent?alt=sse",
	} {
		if u, err := endpoint(lathe.WireGemini, in); err != nil || u.String() != want {
			t.Errorf("endpoint(%q): got %v, %v, want %s", in, u, err, want)
		}
	}
	for in, want := range map[string]string{
		"https://api.anthropic.com":              "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1":           "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1/messages/": "https://api.anthropic.com/v1/messages",
		"https://x.test/anthropic":               "https://x.test/anthropic/v1/messages",
		"https://x.test/anthropic/v1":            "https://x.test/anthropic/v1/messages",
		"https://x.test/a/v2?beta=true":          "https://x.test/a/v2/messages?beta=true",
	} {
		if u, err := endpoint(lathe.WireMessages, in); err != nil || u.String() != want {
			t.Errorf("endpoint(%q): got %v, %v, want %s", in, u, err, want)
		}
	}
	for _, in := range []string{"", "api.openai.com/v1", "ftp://x.test/v1", "https://", "https:///v1", "https://u:" + canary + "@x.test/v1",
		"https://x.test/v1?key=" + canary, "https://x.test/v1?Access_Token=" + canary, "https://x.test/%zz" + canary, "://" + canary} {
		if u, err := endpoint(lathe.WireOpenAIChat, in); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("endpoint(%q): got %v, %v", in, u, err)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*Options{
		"no host":          {BaseURL: "http://"},
		"line end in key":  {Key: secret.New(canary + "\n")},
		"bad header name":  {Headers: map[string]secret.Secret{"a b": secret.New(canary)}},
		"no header name":   {Headers: map[string]secret.Secret{"": secret.New(canary)}},
		"bad header value": {Headers: map[string]secret.Secret{"X-A": secret.New(canary + "\r\nX-B: c")}},
		"host":             {Headers: map[string]secret.Secret{"host": secret.New(canary)}},
		"content length":   {Headers: map[string]secret.Secret{"Content-length": secret.New("1")}},
		"two keys":         {Key: secret.New(canary), Headers: map[string]secret.Secret{"authorization": secret.New(canary)}},
	} {
		c, err := OpenAI("m", o)
		if err == nil || c != nil || lathe.CodeOf(err) != lathe.CodeInvalidConfig || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: got %v, %v", name, c, err)
		}
	}
	if _, err := OpenAI("", nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("no model: got %v", err)
	}
}

func TestOptionsDefaults(t *testing.T) {
	t.Parallel()
	var none *Options
	o := none.withDefaults(openai.Upstream{})
	if o.Timeouts.Client != 120*time.Second || o.Timeouts.Open != 10*time.Second || o.Timeouts.Read != 120*time.Second || o.Retry.Attempts != 3 {
		t.Errorf("got %+v", o)
	}
	o = (&Options{Timeouts: Timeouts{Client: 7 * time.Second}}).withDefaults(openai.Upstream{})
	if o.Timeouts.Read != 7*time.Second {
		t.Errorf("read timeout is %v, want the client timeout", o.Timeouts.Read)
	}
	o = (&Options{Timeouts: Timeouts{Client: -1, Open: -1}}).withDefaults(openai.Upstream{})
	if o.Timeouts.Client != 0 || o.Timeouts.Open != 0 || o.Timeouts.Read != 0 {
		t.Errorf("timeouts that are off: got %v %v %v", o.Timeouts.Client, o.Timeouts.Open, o.Timeouts.Read)
	}
	in := &Options{Key: secret.New("k")}
	c, err := OpenAI("m", in)
	if err != nil {
		t.Fatal(err)
	}
	in.Key = secret.New("other")
	if got := c.header().Get("Authorization"); got != "Bearer k" {
		t.Errorf("options are not copied: %q", got)
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	t.Parallel()
	o := &Options{Name: "p", Key: secret.New(canary), BaseURL: "http://127.0.0.1:1/v1",
		Headers: map[string]secret.Secret{"X-Api-Key": secret.New(canary)}}
	o2 := *o
	o2.Headers = map[string]secret.Secret{"Authorization": secret.New("Bearer " + canary)}
	o2.Key = secret.Secret{}
	for name, opts := range map[string]*Options{"key": o, "header": &o2} {
		c, err := OpenAI("m", opts)
		if err != nil {
			t.Fatal(err)
		}
		type config struct {
			opts Options
			chat *Chat
		}
		for _, v := range []any{opts, *opts, c, config{*opts, c}, &config{*opts, c}, []*Chat{c}, map[string]any{"a": *opts, "b": c}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				if got := fmt.Sprintf(verb, v); strings.Contains(got, "c4n4ry") || strings.Contains(got, fmt.Sprintf("%x", "c4n4ry")) {
					t.Errorf("%s: %s of %T prints %s", name, verb, v, got)
				}
			}
			if b, err := json.Marshal(v); err == nil && bytes.Contains(b, []byte("c4n4ry")) {
				t.Errorf("%s: JSON of %T is %s", name, v, b)
			}
			var text, js bytes.Buffer
			slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
			slog.New(slog.NewJSONHandler(&js, nil)).Info("m", "v", v)
			if strings.Contains(text.String()+js.String(), "c4n4ry") {
				t.Errorf("%s: slog of %T is %s %s", name, v, text.String(), js.String())
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	c, err := OpenAI("m", &Options{Key: secret.New("abc"), Headers: map[string]secret.Secret{"x-title": secret.New("t"), "User-Agent": secret.New("me")}})
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{"Authorization": {"Bearer abc"}, "X-Title": {"t"}, "User-Agent": {"me"},
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream, application/json"}}
	if fmt.Sprint(c.header()) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", c.header(), want)
	}
	if got := c.String(); got != "openai/m" {
		t.Errorf("got %q", got)
	}
}

func TestOptionsShowFewFields(t *testing.T) {
	if n := reflect.TypeFor[Options]().NumField(); n > 12 {
		t.Errorf("Options has %d fields, want at most 12: group them as Timeouts, Server and Limits do", n)
	}
}
