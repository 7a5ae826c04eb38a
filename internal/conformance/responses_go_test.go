package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// responsesClient is openai-go with the Responses API.
type responsesClient struct {
	client openai.Client
	stream bool
	input  responses.ResponseInputParam
}

func newResponsesClient(_ context.Context, base, mode string) (wireClient, error) {
	return &responsesClient{client: newOpenAI(base), stream: mode == "stream"}, nil
}

// refusal adds the server's message to an error of the library.
func refusal(err error) error {
	var refused *openai.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("%d: %s", refused.StatusCode, refused.Message)
	}
	return err
}

func newOpenAI(base string) openai.Client {
	return openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL(base+"/v1"), option.WithMaxRetries(0))
}

func (c *responsesClient) user(text string) {
	c.input = append(c.input, responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser))
}

func (c *responsesClient) results(calls []call, output string) {
	for _, called := range calls {
		item := responses.ResponseInputItemParamOfFunctionCallOutput(output)
		item.OfFunctionCallOutput.CallID = param.NewOpt(called.ID)
		c.input = append(c.input, item)
	}
}

func (c *responsesClient) ask(ctx context.Context, model string, structured bool) (*wireAnswer, error) {
	p := responses.ResponseNewParams{Model: model, Input: responses.ResponseNewParamsInputUnion{OfInputItemList: c.input},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("weather", weatherSchema, false)}}
	if structured {
		p.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("answer", answerSchema)
	}
	var response *responses.Response
	var err error
	if c.stream {
		response, err = c.streamed(ctx, p)
	} else {
		response, err = c.client.Responses.New(ctx, p)
	}
	if err != nil {
		return nil, refusal(err)
	}
	a := &wireAnswer{text: response.OutputText(), finish: string(response.Status), usage: response.Usage.TotalTokens}
	for i := range response.Output {
		item := &response.Output[i]
		switch item := item.AsAny().(type) {
		case responses.ResponseFunctionToolCall:
			a.calls = append(a.calls, call{item.Name, item.Arguments, item.CallID})
		case responses.ResponseOutputItemMcpCall:
			a.server = append(a.server, item.Name+" "+item.Output)
		}
		c.input = append(c.input, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
	}
	return a, nil
}

// streamed reads a stream, and gives its events to the library's accumulator: it must make the same of them as the last event
// has.
func (c *responsesClient) streamed(ctx context.Context, p responses.ResponseNewParams) (*responses.Response, error) {
	s := c.client.Responses.NewStreaming(ctx, p)
	defer s.Close()
	var last *responses.Response
	var acc responses.ResponseAccumulator
	text, next := "", int64(0)
	for s.Next() {
		e := s.Current()
		if e.SequenceNumber != next {
			return nil, fmt.Errorf("event %d has the number %d", next, e.SequenceNumber)
		}
		next++
		switch e := e.AsAny().(type) {
		case responses.ResponseErrorEvent:
			return nil, errors.New(e.Message)
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseCompletedEvent:
			last = &e.Response
		case responses.ResponseFailedEvent:
			return nil, errors.New(e.Response.Error.Message)
		}
		var event responses.ResponsesServerEventUnion
		if err := json.Unmarshal([]byte(e.RawJSON()), &event); err != nil {
			return nil, err
		}
		if err := acc.AddEvent(event); err != nil {
			return nil, fmt.Errorf("the accumulator refuses %s: %w", e.Type, err)
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if last == nil {
		return nil, errors.New("the stream has no end")
	}
	made, err := acc.ReconstructedResponse()
	if err != nil {
		return nil, fmt.Errorf("the accumulator makes no response: %w", err)
	}
	if whole := last.OutputText(); made.OutputText() != whole || text != whole || len(made.Output) != len(last.Output) {
		return nil, fmt.Errorf("the deltas hold %q, the accumulator %q in %d items, the last event %q in %d", text, made.OutputText(), len(made.Output), whole, len(last.Output))
	}
	return last, nil
}
