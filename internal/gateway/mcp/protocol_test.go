package mcp_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/testdata"
)

// Everything that is said is of the form that the protocol's own schema wants, in each of its versions.
func TestMessagesFollowTheSchemaOfTheProtocol(t *testing.T) {
	t.Parallel()
	typed := reader("typed", returns(`{"n":1}`))
	typed.spec.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	mixed := reader("mixed", returns(`"see"`, lathe.Blob{MediaType: "image/png", Data: []byte("p")}, lathe.Blob{MediaType: "audio/wav", Data: []byte("w")},
		lathe.Blob{MediaType: "text/plain", Data: []byte("t")}, lathe.Blob{MediaType: "application/pdf", Data: []byte("b")}, lathe.Blob{URL: "https://example.com/x", MediaType: "text/html"}))
	linked := mixed.call
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(testdata.Dir(t, "mcp-schema", version+".schema.json"))
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, nil, &mcp.Options{ProgressEvery: 50 * time.Microsecond}, typed, mixed, writer("fails", returns(`{`)), reader("linked", linked))
			modern := version == "2026-07-28"
			with := func(params string) string {
				if !modern {
					return "{" + params + "}"
				}
				return "{" + strings.TrimPrefix(params+","+strings.TrimSuffix(meta, "}")+`,"progressToken":"p"}}`, ",")
			}
			request := func(id, method, params string) string {
				return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + with(params) + `}`
			}
			lines := []string{request("2", "tools/list", ""), request("3", "tools/call", `"name":"typed","arguments":{}`), request("4", "tools/call", `"name":"mixed","arguments":{}`),
				request("5", "tools/call", `"name":"fails","arguments":{}`), request("6", "tools/call", `"name":"nope","arguments":{}`), request("7", "nope", "")}
			if modern {
				lines = append(lines, request("1", "server/discover", ""))
			} else {
				lines = append([]string{strings.Replace(strings.Replace(hello, "2025-11-25", version, 1), `"id":0`, `"id":1`, 1), ready}, lines...)
				lines = append(lines, request("8", "ping", ""))
			}
			got := r.lines(nil, lines...)
			kinds := map[string]string{"2": "ListToolsResult", "3": "CallToolResult", "4": "CallToolResult", "5": "CallToolResult", "6": "", "7": "", "8": "EmptyResult"}
			kinds["1"] = "InitializeResult"
			if modern {
				kinds["1"] = "DiscoverResult"
				delete(kinds, "8")
			}
			for id, kind := range kinds {
				if len(got[id]) != 1 {
					t.Errorf("%s is answered %v", id, got[id])
					continue
				}
				validate(t, raw, "JSONRPCMessage", got[id][0])
				var m struct{ Result, Error json.RawMessage }
				if err := json.Unmarshal([]byte(got[id][0]), &m); err != nil {
					t.Fatal(err)
				}
				switch {
				case (m.Error != nil) != (kind == ""):
					t.Errorf("%s is answered %s", id, got[id][0])
				case kind != "":
					validate(t, raw, kind, string(m.Result))
				}
			}
			for _, line := range got[""][:min(len(got[""]), 3)] { // progress
				validate(t, raw, "ServerNotification", line)
			}
		})
	}
}

// validate holds a JSON value to one of the definitions of a schema.
func validate(t *testing.T, raw []byte, kind, value string) {
	t.Helper()
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	under := "#/$defs/"
	if _, ok := doc["$defs"]; !ok {
		under = "#/definitions/"
	}
	doc["allOf"] = json.RawMessage(`[{"$ref":"` + under + kind + `"}]`)
	one, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(one)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := s.Validate([]byte(value)); len(wrong) > 0 {
		t.Errorf("no %s: %v\n%s", kind, wrong[:min(len(wrong), 5)], value)
	}
}
