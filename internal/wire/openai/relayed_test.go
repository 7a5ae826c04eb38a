package openai

import (
	"encoding/json"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

func TestAppendRelayedChangesWhatMustDiffer(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	tool := []*lathe.ToolSpec{{Name: "f"}}
	for name, c := range map[string]struct {
		body, want string
		req        lathe.Request
		opts       EncodeOptions
	}{
		"the model's name":  {"{ \"messages\" :[ 1 ],\n\t\"model\": \"m\" , \"x\":1e3}\n", "{ \"messages\" :[ 1 ],\n\t\"model\": \"up\" , \"x\":1e3}\n", lathe.Request{Model: "up"}, EncodeOptions{}},
		"no model":          {`{"a":1}`, `{"a":1,"model":"up"}`, lathe.Request{Model: "up"}, EncodeOptions{}},
		"an empty object":   {`{ }`, `{"model":"up" }`, lathe.Request{Model: "up"}, EncodeOptions{}},
		"an escaped key":    {`{"\u006dodel":"m"}`, `{"\u006dodel":"up"}`, lathe.Request{Model: "up"}, EncodeOptions{}},
		"usage":             {`{"model":"m","stream":true}`, `{"model":"up","stream":true,"stream_options":{"include_usage":true}}`, lathe.Request{Model: "up"}, EncodeOptions{Stream: true, IncludeUsage: true}},
		"usage is there":    {`{"model":"m","stream_options":{"include_usage": true}}`, `{"model":"up","stream_options":{"include_usage": true}}`, lathe.Request{Model: "up"}, EncodeOptions{Stream: true, IncludeUsage: true}},
		"usage is off":      {`{"model":"m","stream_options":{"a": 1,"include_usage":false}}`, `{"model":"up","stream_options":{"a":1,"include_usage":true}}`, lathe.Request{Model: "up"}, EncodeOptions{Stream: true, IncludeUsage: true}},
		"no usage there":    {`{"stream_options":{"include_usage":true},"model":"m"}`, `{"model":"up"}`, lathe.Request{Model: "up"}, EncodeOptions{Stream: true}},
		"the token limit":   {`{"model":"m","max_tokens" : 5}`, `{"model":"up","max_completion_tokens" : 5}`, lathe.Request{Model: "up"}, EncodeOptions{MaxCompletionTokens: true}},
		"both token limits": {`{"max_tokens":5 , "max_completion_tokens":6,"model":"m"}`, `{"max_completion_tokens":6,"model":"up"}`, lathe.Request{Model: "up"}, EncodeOptions{MaxCompletionTokens: true}},
		"overrides": {`{"model":"m","top_k":1, "a":2}`, `{"model":"up","top_k":9, "a":2,"b":3}`,
			lathe.Request{Model: "up", Overrides: []lathe.Member{{Name: "b", Value: json.RawMessage("3")}, {Name: "top_k", Value: json.RawMessage("9")}, {Name: "tools", Value: json.RawMessage("[]")}}}, EncodeOptions{}},
		"the same choice": {`{"model":"m","tool_choice": {"type":"function", "function":{"name":"f"}}}`, `{"model":"up","tool_choice": {"type":"function", "function":{"name":"f"}}}`,
			lathe.Request{Model: "up", Tools: tool, ToolChoice: lathe.ToolChoice{Mode: "function", Name: "f"}}, EncodeOptions{}},
		"a set choice":  {`{"model":"m"}`, `{"model":"up","tool_choice":"required","parallel_tool_calls":false}`, lathe.Request{Model: "up", Tools: tool, ToolChoice: lathe.ToolChoice{Mode: "required"}, ParallelToolCalls: &no}, EncodeOptions{}},
		"another count": {`{"parallel_tool_calls":true,"model":"m"}`, `{"parallel_tool_calls":true,"model":"up"}`, lathe.Request{Model: "up", Tools: tool, ParallelToolCalls: &yes}, EncodeOptions{}},
	} {
		if got := string(Upstream{}.AppendRelayed([]byte("x"), []byte(c.body), &c.req, &c.opts)); got != "x"+c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got[1:], c.want)
		}
	}
}

func FuzzAppendRelayed(f *testing.F) {
	f.Add(`{"model":"m","messages":[],"store":1}`)
	f.Add(`{ }`)
	f.Add(`{"a" :1 , "store": [1,2] , "stream_options":{} }`)
	f.Fuzz(func(t *testing.T, body string) {
		if _, err := ParseAny([]byte(body)); err != nil {
			return
		}
		cut := rawjson.Without([]byte(body), "store", "user")
		out := Upstream{}.AppendRelayed(nil, cut, &lathe.Request{Model: "up"}, &EncodeOptions{Stream: true, IncludeUsage: true, MaxCompletionTokens: true})
		if !json.Valid(cut) || !json.Valid(out) {
			t.Fatalf("%s becomes %s and %s", body, cut, out)
		}
	})
}
