package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

// A description is the API description of Open Responses.
type description struct {
	compiler *jsonschema.Compiler
	events   map[string]string // schemas of events, by type
	compiled map[string]*jsonschema.Schema
}

func openResponses(t *testing.T) *description {
	t.Helper()
	raw, err := os.ReadFile(testdata.Dir(t, "open-responses", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	d := &description{compiler: jsonschema.NewCompiler(), events: map[string]string{}, compiled: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := d.compiler.AddResource("api.json", doc); err != nil {
		t.Fatal(err)
	}
	var names struct {
		Components struct {
			Schemas map[string]struct {
				Properties struct{ Type struct{ Enum []string } }
			}
		}
	}
	if err := json.Unmarshal(raw, &names); err != nil {
		t.Fatal(err)
	}
	for name, s := range names.Components.Schemas {
		if bytes.HasSuffix([]byte(name), []byte("StreamingEvent")) && len(s.Properties.Type.Enum) == 1 {
			d.events[s.Properties.Type.Enum[0]] = name
		}
	}
	return d
}

func (d *description) validate(t *testing.T, name string, body []byte) {
	t.Helper()
	s := d.compiled[name]
	if s == nil {
		var err error
		if s, err = d.compiler.Compile("api.json#/components/schemas/" + name); err != nil {
			t.Fatal(err)
		}
		d.compiled[name] = s
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if err := s.Validate(v); err != nil {
		t.Fatalf("%s: %s\n%v", name, body, err)
	}
}

// TestW7_EventsMatchTheirSchemas: each event of random answers, as the specification describes it.
func TestW7_EventsMatchTheirSchemas(t *testing.T) {
	d := openResponses(t)
	bodies := []string{
		`{"model":"m","input":"x"}`,
		`{"model":"m","input":"x","instructions":"i","tools":[{"type":"function","name":"f0","parameters":{"type":"object"},"strict":true}],"tool_choice":{"type":"function","name":"f0"},"reasoning":{"effort":"low","summary":"auto"}}`,
		`{"model":"m","input":"x","tools":[{"type":"function","name":"f0"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f0"}]},"text":{"format":{"type":"json_object"}}}`,
	}
	seen := map[string]bool{}
	for seed := range uint64(60) {
		g := gen{rand.New(rand.NewPCG(seed, 4))}
		m, deltas := g.answer()
		head := testHead(t, bodies[seed%uint64(len(bodies))])
		w := Codec{}.NewWriter(head)
		var stream []byte
		for _, delta := range deltas {
			stream = w.AppendDelta(stream, delta)
		}
		stream = w.AppendCarrier(stream, "seal")
		reasons := []lathe.FinishReason{reasonOf(&m), lathe.FinishLength, lathe.FinishContentFilter}
		if seed%5 == 0 {
			stream = w.AppendError(stream, &wire.APIError{Status: 500, Message: "m"})
		} else {
			stream = w.AppendFinish(stream, &lathe.Finish{Message: m, Reason: reasons[seed%3]}, nil)
		}
		list := events(stream)
		for _, e := range list[:len(list)-1] {
			name := d.events[e.typ]
			if name == "" {
				t.Fatalf("the specification has no event %s", e.typ)
			}
			seen[e.typ] = true
			d.validate(t, name, e.data)
		}
		d.validate(t, "ResponseResource", terminal(list))
	}
	if len(seen) != 20 {
		t.Errorf("%d types of events: %v", len(seen), seen)
	}
}

// TestRequestsMatchTheSchema: what is sent to a server, without the ends of the wire that the specification does not have.
func TestRequestsMatchTheSchema(t *testing.T) {
	d := openResponses(t)
	for seed := range uint64(60) {
		g := gen{rand.New(rand.NewPCG(seed, 5))}
		m, _ := g.answer()
		temperature, n, yes := 0.5, 100, true
		req := &lathe.Request{Model: "m", Tools: []*lathe.ToolSpec{{Name: "f0"}}, ToolChoice: lathe.ToolChoice{Mode: []string{"", "auto", "none", "required"}[seed%4]}, ParallelToolCalls: &yes,
			Sampling: lathe.Sampling{Temperature: &temperature, MaxTokens: &n, ReasoningEffort: "low", ResponseFormat: []byte(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`)},
			Messages: []lathe.Message{lathe.System("s"), lathe.User("u"), m}}
		for i, c := range m.Calls() {
			req.Messages = append(req.Messages, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Content: fmt.Sprint(i), Blobs: []lathe.Blob{{MediaType: "image/png", Data: []byte("x")}}[:i%2]}}})
		}
		body, _ := Codec{}.AppendRequest(nil, req, &wire.EncodeOptions{Stream: true})
		d.validate(t, "CreateResponseBody", body)
	}
}

// TestPublishedMembersAreRead: each member of the specification is read or, as Published says, passed on.
func TestPublishedMembersAreRead(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]json.RawMessage }
		}
	}
	raw, err := os.ReadFile(testdata.Dir(t, "open-responses", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	members := doc.Components.Schemas["CreateResponseBody"].Properties
	if len(members) < 20 {
		t.Fatalf("%d members", len(members))
	}
	for name := range members {
		if !requestNames.Has(name) {
			t.Errorf("%s is not among the names that are compared", name)
		}
	}
	r := parseRequest(t, []byte(`{"model":"m","input":"x","include":[],"metadata":{},"truncation":"auto","service_tier":"auto","safety_identifier":"s","prompt_cache_key":"k",
	 "max_tool_calls":1,"top_logprobs":1,"context_management":[],"client_metadata":{},"text":{"verbosity":"low"},"reasoning":{"context":"x"}}`))
	if len(r.Unknown) != 12 {
		t.Errorf("%d members are kept", len(r.Unknown))
	}
	for _, m := range r.Unknown {
		if !Published.Has(m.Name) {
			t.Errorf("%s is refused", m.Name)
		}
	}
}
