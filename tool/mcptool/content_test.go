package mcptool

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

func TestOutputKinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in, want string
		blobs          int
		isError        bool
	}{
		{"text", `{"content":[{"type":"text","text":"hello"}]}`, `"hello"`, 0, false},
		{"texts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, `"a\nb"`, 0, false},
		{"JSON as text", `{"content":[{"type":"text","text":"{\"n\":12345678901234567890}"}]}`, `{"n":12345678901234567890}`, 0, false},
		{"JSON that is not strict", `{"content":[{"type":"text","text":"{\"n\":1,\"n\":2}"}]}`, `"{\"n\":1,\"n\":2}"`, 0, false},
		{"structured", `{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":1.50,"big":9007199254740993}}`, `{"n":1.50,"big":9007199254740993}`, 0, false},
		{"structured scalar", `{"content":[],"structuredContent":7}`, `7`, 0, false},
		{"structured null", `{"content":[{"type":"text","text":"x"}],"structuredContent":null}`, `"x"`, 0, false},
		{"nothing", `{"content":[]}`, ``, 0, false},
		{"no content", `{}`, ``, 0, false},
		{"error", `{"content":[{"type":"text","text":"no such file"}],"isError":true}`, `"no such file"`, 0, true},
		{"image", `{"content":[{"type":"text","text":"see"},{"type":"image","data":"AAEC","mimeType":"image/png"}]}`,
			`{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","bytes":3}]}`, 1, false},
		{"audio", `{"content":[{"type":"audio","data":"AAEC","mimeType":"audio/wav"}]}`, `{"content":[{"type":"audio","mimeType":"audio/wav","bytes":3}]}`, 1, false},
		{"link", `{"content":[{"type":"resource_link","uri":"file:///a","name":"a","_meta":{"x":1}}]}`, `{"content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}`, 0, false},
		{"resource", `{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"A"}}]}`,
			`{"content":[{"type":"resource","uri":"file:///a","mimeType":"text/plain","text":"A"}]}`, 0, false},
		{"binary resource", `{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AAEC"}}]}`, `{"content":[{"type":"resource","uri":"file:///a","bytes":3}]}`, 1, false},
		{"unknown kind", `{"content":[{"type":"hologram","data":"AAEC"}]}`, `{"content":[{"type":"hologram"}]}`, 0, false},
	} {
		out, err := output([]byte(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if string(out.Data) != tt.want || len(out.Blobs) != tt.blobs || out.IsError != tt.isError {
			t.Errorf("%s: got %s, %d blobs, error %t, want %s", tt.name, out.Data, len(out.Blobs), out.IsError, tt.want)
		}
	}
	for name, in := range map[string]string{
		"no object": `[]`, "content no list": `{"content":{}}`, "block no object": `{"content":[1]}`, "text no text": `{"content":[{"type":"text","text":1}]}`,
		"not base64": `{"content":[{"type":"image","data":"!!"}]}`, "no resource": `{"content":[{"type":"resource"}]}`, "empty": ``,
		"many":       `{"content":[` + strings.Repeat(`{"type":"text","text":""},`, maxBlocks) + `{"type":"text","text":""}]}`,
		"many blobs": `{"content":[` + strings.Repeat(`{"type":"image","data":""},`, maxBlobs) + `{"type":"image","data":""}]}`,
	} {
		if out, err := output([]byte(in)); err == nil {
			t.Errorf("%s: got %s", name, out.Data)
		}
	}
}

// Structured content that repeats the base64 of a blob, alone or as a data URL, has a note in its place; other members stay.
func TestStructuredContentDoesNotRepeatBlobs(t *testing.T) {
	t.Parallel()
	data := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n" + strings.Repeat("x", 80)))
	other := strings.Repeat("QUJD", 40)
	for in, want := range map[string]string{
		`{"result":[{"type":"image","data":"` + data + `"}],"n":1.50}`:         `{"result":[{"type":"image","data":"[image/png, 88 bytes: see the content]"}],"n":1.50}`,
		`{"url":"data:image/png;base64,` + data + `","other":"` + other + `"}`: `{"url":"[image/png, 88 bytes: see the content]","other":"` + other + `"}`,
		`"` + data + `"`: `"[image/png, 88 bytes: see the content]"`,
	} {
		out, err := output([]byte(`{"content":[{"type":"text","text":"here"},{"type":"image","data":"` + data + `","mimeType":"image/png"}],"structuredContent":` + in + `}`))
		if err != nil || string(out.Data) != want || len(out.Blobs) != 1 {
			t.Errorf("%v, got %s, want %s", err, out.Data, want)
		}
	}
}

// The model sees what the allowlist names, through the runner.
func TestAllowlistApplies(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "")
	conf.Allowlists = map[string][]string{"any.thing": {"name", "items.id"}}
	r := newRig(t, nil, conf)
	raw := func(result string) lathe.ToolResult {
		return r.call("box__any_thing", map[string]string{"do": "raw", "result": result})
	}
	if got, want := raw(`{"content":[],"structuredContent":{"name":"n","secret":"s","items":[{"id":1,"x":2}]}}`).Content, `{"name":"n","items":[{"id":1}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wantCode(t, raw(`{"content":[{"type":"text","text":"all of it"}]}`), lathe.CodeRedactionFailed)
	if res := raw(`{"content":[{"type":"text","text":"secret path"}],"isError":true}`); res.Code != lathe.CodeExecutionFailed || strings.Contains(res.Content, "secret path") {
		t.Errorf("got %+v", res)
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"resource","resource":{"uri":"x","blob":"AA=="}}]}`))
	f.Add([]byte(`{"content":[{"type":"resource_link","uri":"x"}],"structuredContent":[1,2],"isError":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if rawjson.Check(b, rawjson.Limits{}) != nil {
			return
		}
		out, err := output(b[rawjson.SkipSpace(b, 0):])
		if err == nil && len(out.Data) > 0 && rawjson.Check(out.Data, rawjson.Limits{}) != nil {
			t.Errorf("%s became %s", b, out.Data)
		}
	})
}
