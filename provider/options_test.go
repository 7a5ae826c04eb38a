package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

// canary is put together here, so that no scanner takes the file for a leak.
var canary = "sk-" + strings.Repeat("c4n4ry", 4)

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
		u, err := endpoint(c.in)
		if err != nil || u.String() != c.want {
			t.Errorf("endpoint(%q): got %v, %v, want %s", c.in, u, err, c.want)
		}
	}
	for _, in := range []string{"", "api.openai.com/v1", "ftp://x.test/v1", "https://", "https:///v1", "https://u:" + canary + "@x.test/v1",
		"https://x.test/v1?key=" + canary, "https://x.test/v1?Access_Token=" + canary, "https://x.test/%zz" + canary, "://" + canary} {
		if u, err := endpoint(in); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("endpoint(%q): got %v, %v", in, u, err)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*Options{
		"no host":          {BaseURL: "http://"},
		"line end in key":  {Key: NewSecret(canary + "\n")},
		"bad header name":  {Headers: map[string]Secret{"a b": NewSecret(canary)}},
		"no header name":   {Headers: map[string]Secret{"": NewSecret(canary)}},
		"bad header value": {Headers: map[string]Secret{"X-A": NewSecret(canary + "\r\nX-B: c")}},
		"host":             {Headers: map[string]Secret{"host": NewSecret(canary)}},
		"content length":   {Headers: map[string]Secret{"Content-length": NewSecret("1")}},
		"two keys":         {Key: NewSecret(canary), Headers: map[string]Secret{"authorization": NewSecret(canary)}},
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
	o := none.withDefaults()
	if o.ClientTimeout != 120*time.Second || o.OpenTimeout != 10*time.Second || o.ReadTimeout != 120*time.Second || o.Retry.Attempts != 3 {
		t.Errorf("got %+v", o)
	}
	o = (&Options{ClientTimeout: 7 * time.Second}).withDefaults()
	if o.ReadTimeout != 7*time.Second {
		t.Errorf("read timeout is %v, want the client timeout", o.ReadTimeout)
	}
	o = (&Options{ClientTimeout: -1, OpenTimeout: -1}).withDefaults()
	if o.ClientTimeout != 0 || o.OpenTimeout != 0 || o.ReadTimeout != 0 {
		t.Errorf("timeouts that are off: got %v %v %v", o.ClientTimeout, o.OpenTimeout, o.ReadTimeout)
	}
	in := &Options{Key: NewSecret("k")}
	c, err := OpenAI("m", in)
	if err != nil {
		t.Fatal(err)
	}
	in.Key = NewSecret("other")
	if got := c.header().Get("Authorization"); got != "Bearer k" {
		t.Errorf("options are not copied: %q", got)
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	t.Parallel()
	o := &Options{Name: "p", Key: NewSecret(canary), BaseURL: "http://127.0.0.1:1/v1",
		Headers: map[string]Secret{"X-Api-Key": NewSecret(canary)}}
	o2 := *o
	o2.Headers = map[string]Secret{"Authorization": NewSecret("Bearer " + canary)}
	o2.Key = Secret{}
	for name, opts := range map[string]*Options{"key": o, "header": &o2} {
		c, err := OpenAI("m", opts)
		if err != nil {
			t.Fatal(err)
		}
		s, done := c.Open()
		defer done()
		type config struct {
			opts Options
			chat *Chat
		}
		for _, v := range []any{opts, *opts, c, s, config{*opts, c}, &config{*opts, c}, []*Chat{c}, map[string]any{"a": *opts, "b": c}} {
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
	c, err := OpenAI("m", &Options{Key: NewSecret("abc"), Headers: map[string]Secret{"x-title": NewSecret("t"), "User-Agent": NewSecret("me")}})
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
