package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	einomodel "github.com/cloudwego/eino-ext/components/model/openai"
	einoschema "github.com/cloudwego/eino/schema"
	openaigo "github.com/openai/openai-go/v3"
	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/search"
)

// A fixedTool has a definition and a fixed answer.
type fixedTool struct{ spec lathe.ToolSpec }

func (t *fixedTool) Spec() *lathe.ToolSpec { return &t.spec }

func (t *fixedTool) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: json.RawMessage(`{"ok":true}`)}, nil
}

const toolText = "Changes an item of the catalogue, and returns whether it could be changed."

func toolName(i int) string { return fmt.Sprintf("update_item_%d", i) }

// toolSchema differs from tool to tool, as those of real tools do.
func toolSchema(i int) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"object","properties":{"id":{"type":"string","description":"Of item %d."},"name":{"type":"string"},"price":{"type":"number","minimum":0},`+
		`"labels":{"type":"array","items":{"type":"string"},"maxItems":%d},"kind":{"enum":["a","b","c"]}},"required":["id"],"additionalProperties":false}`, i, 1+i%50)
}

func manyTools(n int) []lathe.Tool {
	out := make([]lathe.Tool, n)
	for i := range out {
		out[i] = &fixedTool{lathe.ToolSpec{Name: toolName(i), Description: toolText, Schema: toolSchema(i), Effect: lathe.ReadOnly, Allowlist: []string{"ok"}, Origin: "bench"}}
	}
	return out
}

var manyLimits = lathe.Limits{MaxTools: 1 << 20, MaxToolsBytes: 1 << 30}

func newSet(tools []lathe.Tool) (*tool.Set, error) { return tool.NewSetWithin(manyLimits, tools...) }

func newRunner(set *tool.Set) (*tool.Runner, error) {
	return tool.NewRunner(set, &tool.Options{Policy: policy.Default(), Limits: manyLimits})
}

// tools measures what the number of tools costs.
func tools(s *settings) (*Chart, error) {
	c := &Chart{Title: "The number of tools", Size: "tools, with definitions of 350 bytes"}
	sizes := steps(1, 5000)
	if s.quick {
		sizes = []int{1, 10, 100}
	}
	if err := s.operations(c, "Registration and calls", sizes, []measurement{
		{name: "registration", prepare: registerTools},
		{name: "registration and first call", prepare: firstCall},
		{name: "a further call", prepare: furtherCall},
		{name: "a call of an unknown name, with a suggestion", prepare: unknownCall},
	}); err != nil {
		return nil, err
	}
	// No module of the bench has a search for tools: there are no peers.
	if err := s.operations(c, "Search", sizes, []measurement{
		{name: "an index for the search of tools", prepare: indexTools},
		{name: "a search for tools", prepare: searchTools},
	}); err != nil {
		return nil, err
	}
	return c, s.operations(c, "One request that offers all tools", sizes, []measurement{
		{name: "lathe, loop and provider", prepare: requestLoop},
		{name: "lathe, with tool_search: few definitions are sent", prepare: requestSearch},
		{name: "go-openai", peer: true, prepare: requestGoOpenAI},
		{name: "openai-go", peer: true, prepare: requestOpenAIGo},
		{name: "eino, chat model", peer: true, prepare: requestEino},
	})
}

func registerTools(n int) (func() error, func(), error) {
	all := manyTools(n)
	return func() error {
		_, err := newSet(all)
		return err
	}, nil, nil
}

func callTool(set *tool.Set, i int) error {
	r, err := newRunner(set)
	if err != nil {
		return err
	}
	_, err = r.Call(context.Background(), toolName(i), json.RawMessage(`{"id":"x","price":1,"labels":["a"]}`))
	return err
}

func firstCall(n int) (func() error, func(), error) {
	all := manyTools(n)
	return func() error {
		set, err := newSet(all)
		if err != nil {
			return err
		}
		return callTool(set, n/2)
	}, nil, nil
}

func furtherCall(n int) (func() error, func(), error) {
	set, err := newSet(manyTools(n))
	return func() error { return callTool(set, n/2) }, nil, err
}

func unknownCall(n int) (func() error, func(), error) {
	set, err := newSet(manyTools(n))
	if err != nil {
		return nil, nil, err
	}
	r, err := newRunner(set)
	return func() error {
		_, err := r.Call(context.Background(), "updateitem", json.RawMessage(`{}`))
		if err == nil {
			return errAnswer
		}
		return nil
	}, nil, err
}

func requestLoop(n int) (func() error, func(), error) {
	return requestWith(n, tool.Search{})
}

// requestSearch is a request of a run that sends the definition of the search alone.
func requestSearch(n int) (func() error, func(), error) {
	return requestWith(n, tool.Search{Mode: tool.SearchOn})
}

func requestWith(n int, s tool.Search) (func() error, func(), error) {
	set, err := tool.NewSetWithSearch(manyLimits, s, manyTools(n)...)
	if err != nil {
		return nil, nil, err
	}
	l, err := newLoop(set)
	if err != nil {
		return nil, nil, err
	}
	in := &loop.Input{Messages: []lathe.Message{lathe.User("Hello.")}}
	return func() error { return runLoop(l, in) }, nil, nil
}

func indexTools(n int) (func() error, func(), error) {
	specs := manySpecs(n)
	return func() error {
		search.NewIndex(specs)
		return nil
	}, nil, nil
}

func searchTools(n int) (func() error, func(), error) {
	x := search.NewIndex(manySpecs(n))
	return func() error {
		if len(x.Search("change the price of item 0 in the catalogue", 5)) == 0 { // words that all tools have, and a number
			return errAnswer
		}
		return nil
	}, nil, nil
}

func manySpecs(n int) []*lathe.ToolSpec {
	out := make([]*lathe.ToolSpec, n)
	for i, t := range manyTools(n) {
		out[i] = t.Spec()
	}
	return out
}

func requestGoOpenAI(n int) (func() error, func(), error) {
	cfg := goopenai.DefaultConfig("k")
	cfg.BaseURL, cfg.HTTPClient = nowhere, newCanned()
	client := goopenai.NewClientWithConfig(cfg)
	req := goopenai.ChatCompletionRequest{Model: "m", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hello."}}}
	for i := range n {
		req.Tools = append(req.Tools, goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{Name: toolName(i), Description: toolText, Parameters: toolSchema(i)}})
	}
	return func() error {
		r, err := client.CreateChatCompletion(context.Background(), req)
		if err != nil {
			return err
		}
		return answered(r.Choices[0].Message.Content, nil)
	}, nil, nil
}

func requestOpenAIGo(n int) (func() error, func(), error) {
	client := newOpenAIGo()
	p := openaigo.ChatCompletionNewParams{Model: "m", Messages: []openaigo.ChatCompletionMessageParamUnion{openaigo.UserMessage("Hello.")}}
	for i := range n {
		var schema openaigo.FunctionParameters
		if err := json.Unmarshal(toolSchema(i), &schema); err != nil {
			return nil, nil, err
		}
		p.Tools = append(p.Tools, openaigo.ChatCompletionFunctionTool(openaigo.FunctionDefinitionParam{Name: toolName(i), Description: openaigo.String(toolText), Parameters: schema}))
	}
	return askOpenAIGo(client, p), nil, nil
}

func requestEino(n int) (func() error, func(), error) {
	m, err := einomodel.NewChatModel(context.Background(), &einomodel.ChatModelConfig{APIKey: "k", BaseURL: nowhere, Model: "m", HTTPClient: newCanned()})
	if err != nil {
		return nil, nil, err
	}
	var infos []*einoschema.ToolInfo
	for i := range n {
		infos = append(infos, &einoschema.ToolInfo{Name: toolName(i), Desc: toolText, ParamsOneOf: einoschema.NewParamsOneOfByParams(map[string]*einoschema.ParameterInfo{
			"id": {Type: einoschema.String, Required: true, Desc: fmt.Sprintf("Of item %d.", i)}, "name": {Type: einoschema.String}, "price": {Type: einoschema.Number},
			"labels": {Type: einoschema.Array, ElemInfo: &einoschema.ParameterInfo{Type: einoschema.String}}, "kind": {Type: einoschema.String, Enum: []string{"a", "b", "c"}}})})
	}
	bound, err := m.WithTools(infos)
	if err != nil {
		return nil, nil, errors.Join(errAnswer, err)
	}
	in := []*einoschema.Message{einoschema.UserMessage("Hello.")}
	return func() error {
		out, err := bound.Generate(context.Background(), in)
		if err != nil {
			return err
		}
		return answered(out.Content, nil)
	}, nil, nil
}
