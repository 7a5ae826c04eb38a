package transform_test

import (
	"context"
	"iter"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/preset"
	"github.com/lathe-run/lathe/transform"
)

// A relayer notes the request that it is sent.
type relayer struct{ sent *lathe.Request }

func (r *relayer) Relays() lathe.Wire { return lathe.WireOpenAIChat }

func (*relayer) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (r *relayer) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		c := *req
		r.sent = &c
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{}}, nil)
	}
}

// The profiles of local servers relay; transforms that change answers do not.
func TestProfilesOfLocalServersRelay(t *testing.T) {
	t.Parallel()
	relays := func(list transform.List) bool {
		t.Helper()
		chain, err := transform.New(list, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := lathe.ModelAs[interface{ Relays() lathe.Wire }](transform.Wrap(&relayer{}, chain))
		return ok && r.Relays() == lathe.WireOpenAIChat
	}
	for _, name := range []string{"llamacpp", "ollama", "vllm", "sglang", "lmstudio"} {
		p, err := preset.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !relays(transform.List{Message: p.MessageTransforms, Tool: p.ToolTransforms, Response: p.ResponseTransforms,
			ToolCall: p.ToolCallTransforms, ToolResult: p.ToolResultTransforms}) {
			t.Errorf("%s does not relay", name)
		}
	}
	for _, info := range transform.All() {
		list := transform.List{}
		names := []string{info.Name}
		switch info.Kind {
		case transform.Message:
			list.Message = names
		case transform.Tool:
			list.Tool = names
		case transform.Response:
			list.Response = names
		case transform.ToolCall:
			list.ToolCall = names
		case transform.ToolResult:
			list.ToolResult = names
		}
		if want := info.Always || info.Name == "assistant_tool_calls_arguments_blank_to_empty_object"; relays(list) != want {
			t.Errorf("%s relays: %v", info.Name, !want)
		}
	}
}

// Blank arguments of a relayed request are filled in: its bytes are not sent then.
func TestRelayedRequestIsFilledIn(t *testing.T) {
	t.Parallel()
	chain, err := transform.New(transform.List{ToolCall: []string{"assistant_tool_calls_arguments_blank_to_empty_object"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments string
		relayed   bool
	}{{`{"a":1}`, true}, {"", false}} {
		below := &relayer{}
		relay := &lathe.Relay{Wire: lathe.WireOpenAIChat, Request: []byte("{}"), Take: func(*lathe.Raw) {}}
		call := lathe.ToolCall{ID: "c", Name: "f", Arguments: c.arguments}
		for _, err := range transform.Wrap(below, chain).Generate(t.Context(), &lathe.Request{Relay: relay,
			Messages: []lathe.Message{lathe.User("hi"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{call}}}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if below.sent.Relay == nil || (below.sent.Relay.Request != nil) != c.relayed || relay.Request == nil {
			t.Errorf("arguments %q: sent %+v", c.arguments, below.sent.Relay)
		}
	}
}
