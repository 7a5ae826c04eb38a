package upstreams

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

// On every wire a request whose definitions are kept or shared has the bytes, and the paths of what the wire cannot express, of a request
// whose definitions are encoded for it, in every form.
func TestKeptDefinitionsAreThoseThatAreEncoded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Changes an entry. ", 80)
	var own []*lathe.ToolSpec
	for i := range 24 {
		spec := &lathe.ToolSpec{Name: fmt.Sprintf("tool_%d", i), Description: long, Owner: lathe.OwnerServer,
			Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":1,"uniqueItems":true}},"required":["n"],"additionalProperties":false}`)}
		switch i {
		case 3:
			spec.Schema = []byte(`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"$ref":"#/$defs/x"}}}],"$defs":{"x":{"type":"null"}}}`)
		case 5:
			spec.Schema = nil
		case 7:
			spec.Extra = []lathe.Member{{Name: "cache_control", Value: []byte(`{"type":"ephemeral"}`)}, {Name: "other", Value: []byte("1")}}
		case 9:
			spec.Extra = []lathe.Member{{Name: "strict", Value: []byte("true")}}
		}
		own = append(own, spec)
	}
	mine := append([]*lathe.ToolSpec{{Name: "mine", Owner: lathe.OwnerClient, Wire: lathe.WireResponses, Extra: []lathe.Member{{Name: "type", Value: []byte(`"custom"`)}}}}, own...)
	format := lathe.Sampling{ResponseFormat: []byte(`{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}`)}
	requests := map[string]*lathe.Request{
		"own":              {Tools: own},
		"with hosted":      {Tools: own, HostedTools: []json.RawMessage{[]byte(`{"type":"a"}`), []byte(`{"type":"b"}`)}},
		"with a format":    {Tools: own, Sampling: format},
		"some":             {Tools: own[:20]},
		"few":              {Tools: own[:3]},
		"with a client's":  {Tools: mine},
		"hosted alone":     {HostedTools: []json.RawMessage{[]byte(`{"type":"a"}`), []byte(`{"type":"b"}`)}},
		"in another order": {Tools: slices.Concat(own[12:], own[:12])},
	}
	for _, w := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages, lathe.WireGemini} {
		codec, kept := Of(w), &wire.Definitions{}
		copies, shares, lacks := 0, 0, 0
		for _, strict := range []wire.Strict{wire.StrictOff, wire.StrictSubset, wire.StrictWhole} {
			for _, without := range [][]string{nil, {"strict", "json_schema", "custom_tools"}, {"output_format"}} {
				for name, req := range requests {
					req.Model, req.Messages = "m", []lathe.Message{lathe.User("Hello.")}
					opts := wire.EncodeOptions{Strict: strict, Without: without}
					want, wantDropped := codec.AppendRequest(nil, req, &opts)
					if !json.Valid(want) {
						t.Fatalf("%s, %s: not JSON", w, name)
					}
					lacks += len(wantDropped)
					check := func(how string, got []byte, dropped []string) {
						if !bytes.Equal(got, want) || !slices.Equal(dropped, wantDropped) {
							t.Errorf("%s, %s, strict %d, without %q, %s: %d bytes, want %d, dropped %q, want %q", w, name, strict, without, how, len(got), len(want), dropped, wantDropped)
						}
					}
					opts.Definitions = kept
					for range 3 {
						got, dropped := codec.AppendRequest(nil, req, &opts)
						check("copied", got, dropped)
						copies++
					}
					for range 2 {
						var shared wire.Shared
						opts.Shared = &shared
						got, dropped := codec.AppendRequest(nil, req, &opts)
						if shared.Text != nil {
							shares++
						}
						check("shared", slices.Concat(got[:shared.At], shared.Text, got[shared.At:]), dropped)
					}
				}
			}
		}
		if shares < copies/4 || lacks == 0 {
			t.Errorf("%s: of %d requests %d shared their definitions, %d paths dropped", w, copies, shares, lacks)
		}
	}
}

// Definitions that are kept are encoded once on every wire: what a further request allocates does not grow with its tools.
func TestKeptDefinitionsAllocateLittle(t *testing.T) {
	testdata.CountsAllocations(t)
	const most = 40
	var tools []*lathe.ToolSpec
	for i := range 1000 {
		tools = append(tools, &lathe.ToolSpec{Name: fmt.Sprintf("tool_%d", i), Description: "Changes an entry.", Owner: lathe.OwnerServer,
			Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer","uniqueItems":true}},"required":["n"],"additionalProperties":false}`)})
	}
	for _, w := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages, lathe.WireGemini} {
		for _, strict := range []wire.Strict{wire.StrictOff, wire.StrictSubset} {
			req := &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("Hello.")}, Tools: tools}
			var shared wire.Shared
			opts := &wire.EncodeOptions{Strict: strict, Definitions: &wire.Definitions{}, Shared: &shared}
			codec := Of(w)
			codec.AppendRequest(nil, req, opts)
			var body []byte
			n := testing.AllocsPerRun(20, func() { body, _ = codec.AppendRequest(body[:0], req, opts) })
			if n > most || len(body) > 1000 {
				t.Errorf("%s, strict %d: %v allocations, %d bytes; want at most %d, 1000", w, strict, n, len(body), most)
			}
			t.Logf("%s, strict %d: %v allocations", w, strict, n)
		}
	}
}
