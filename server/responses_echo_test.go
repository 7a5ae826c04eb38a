package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// comparable returns a response without what differs from one reading to the next: the time of its end, the sealed texts of its
// carriers, of which it keeps only that they are there, and the report of the request.
func comparable(t *testing.T, raw string) map[string]any {
	t.Helper()
	var r map[string]any
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	delete(r, "completed_at")
	delete(r, "lathe")
	for _, item := range r["output"].([]any) {
		if item := item.(map[string]any); item["encrypted_content"] != nil {
			item["encrypted_content"] = "sealed"
		}
	}
	return r
}

// A stored response is read as it was written: with the members of its request, and with its items in their numbers, carriers
// included.
func TestStoredResponseRepeatsItsRequest(t *testing.T) {
	t.Parallel()
	const members = `"instructions":"Be brief.","metadata":{"a":"b"},"temperature":0.5,"top_p":0.9,"truncation":"auto","reasoning":{"effort":"low"},` +
		`"max_output_tokens":900,"parallel_tool_calls":true,"prompt_cache_key":"k","safety_identifier":"s","text":{"format":{"type":"text"},"verbosity":"low"},` +
		`"tools":[{"type":"function","name":"weather","description":"d","parameters":{"type":"object"},"strict":false}],"input":`
	for name, c := range map[string]struct{ input, types string }{
		"server":  {members + `"What is 7 + 35?"`, "message mcp_call reasoning message"},
		"silent":  {members + `"hi"`, "mcp_call reasoning mcp_call reasoning message"},
		"mixed":   {members + `"hi"`, ""},
		"hidden":  {`"lathe":{"show":"hidden"},"input":"What is 7 + 35?"`, "message reasoning message"},
		"allowed": {`"tools":[{"type":"function","name":"weather"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"weather"}]},"input":"hi"`, ""},
	} {
		for how, stream := range bothWays {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				s := &setting{}
				switch name {
				case "mixed":
					s.model = mixed()
				case "silent":
					s.model = silent()
				}
				f := serve(t, s)
				one, text := f.respond(stream, c.input)
				if one == nil {
					t.Fatal(text)
				}
				if stream {
					text = lastData(t, text)
				}
				want := comparable(t, text)
				_, again := f.do("GET", "/v1/responses/"+one.ID, "")
				if diff := cmp.Diff(want, comparable(t, again)); diff != "" {
					t.Errorf("the response that is read differs (-written +read):\n%s", diff)
				}
				var types []string
				for _, item := range one.Output {
					types = append(types, item.Type)
				}
				if got := strings.Join(types, " "); c.types != "" && got != c.types {
					t.Errorf("items %s, want %s", got, c.types)
				}
			})
		}
	}
}

// silent is a model that makes two calls, one in each turn and without a text, before it answers.
func silent() *fake {
	return &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		switch strings.Count(transcript(req.Messages), "calculator:") {
		case 0:
			return says(calls("s1", "calculator", `{"expression":"7 + 35"}`))
		case 1:
			return says(calls("s2", "calculator", `{"expression":"6 * 7"}`))
		}
		return says(lathe.Text{Text: "It is done."})
	}}
}

// lastData returns the response in the last event of a stream.
func lastData(t *testing.T, stream string) string {
	t.Helper()
	last := ""
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: {"); ok {
			last = "{" + data
		}
	}
	var e struct{ Response json.RawMessage }
	readJSON(t, last, &e)
	return string(e.Response)
}

// The carriers of a response that is read are opened in the next request, as those that were written.
func TestStoredResponseHasCarriersThatOpen(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann")} }})
	one, text := f.respond(false, `"input":"What is 7 + 35?"`)
	if one == nil {
		t.Fatal(text)
	}
	_, again := f.do("GET", "/v1/responses/"+one.ID, "")
	resp, text := f.do("POST", "/v1/responses", nextResponse(t, again))
	sent := f.seen.all()
	if last := sent[len(sent)-1]; resp.StatusCode != 200 || resp.Header.Get("X-Lathe-Lost-Joins") != "" || !strings.Contains(last, `"role":"tool"`) {
		t.Errorf("%d %s\nthe model got %s", resp.StatusCode, text, last)
	}
}

// A request above the limit is not kept; its response is.
func TestStoredResponseLimitsItsRequest(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	one, text := f.respond(false, fmt.Sprintf(`"instructions":"Be brief.","input":"hi","metadata":{"a":"b"},"prompt_cache_key":%q`, strings.Repeat("x", 300<<10)))
	if one == nil {
		t.Fatal(text)
	}
	if _, again := f.do("GET", "/v1/responses/"+one.ID, ""); !strings.Contains(again, `"metadata":{}`) || !strings.Contains(again, `"instructions":"Be brief."`) || len(again) > 4<<10 {
		t.Errorf("%.2000s", again)
	}
}
