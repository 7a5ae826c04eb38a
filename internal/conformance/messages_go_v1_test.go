//go:build !one_sdk

package conformance

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/anthropics/anthropic-sdk-go/toolrunner"
)

//go:generate sh -c "(echo '// Code generated from messages_go_v1_test.go by go generate; DO NOT EDIT.'; echo; sed -e 's,anthropic-sdk-go,anthropic-sdk-go/v2,; s,MessagesV1,MessagesV2,; /go:generate/,+1d' messages_go_v1_test.go) >messages_go_v2_test.go"

// newMessagesV1 returns a [messagesClient] with the functions of a major version of the library.
func newMessagesV1(_ context.Context, base, mode string) (wireClient, error) {
	client := anthropic.NewClient(option.WithAPIKey("k"), option.WithBaseURL(base), option.WithMaxRetries(0))
	tool, err := toolrunner.NewBetaToolFromBytes("weather", "Tells the weather.", weatherJSON(),
		func(context.Context, struct{ City string }) (anthropic.BetaToolResultBlockParamContentUnion, error) {
			return anthropic.BetaToolResultBlockParamContentUnion{OfText: &anthropic.BetaTextBlockParam{Text: "rain"}}, nil
		})
	send := func(ctx context.Context, params []byte, stream bool) (answer string, added []byte, err error) {
		p := param.Override[anthropic.MessageNewParams](json.RawMessage(params)) // its types do not have every block
		message := &anthropic.Message{}
		if stream {
			s := client.Messages.NewStreaming(ctx, p)
			defer s.Close()
			for s.Next() {
				if err := message.Accumulate(s.Current()); err != nil {
					return "", nil, err
				}
			}
			err = s.Err()
		} else {
			message, err = client.Messages.New(ctx, p)
		}
		if err != nil {
			return "", nil, err
		}
		added, err = json.Marshal(message.ToParam())
		return message.RawJSON(), added, err
	}
	run := func(ctx context.Context, params []byte, stream bool) (answers []string, history []byte, err error) {
		p := anthropic.BetaToolRunnerParams{MaxIterations: 6}
		if err := json.Unmarshal(params, &p.BetaMessageNewParams); err != nil {
			return nil, nil, err
		}
		tools := []anthropic.BetaTool{tool}
		if !stream {
			runner := client.Beta.Messages.NewToolRunner(tools, p)
			for message, err := range runner.All(ctx) {
				if err != nil {
					return nil, nil, err
				}
				answers = append(answers, message.RawJSON())
			}
			history, err = json.Marshal(runner.Messages())
			return answers, history, err
		}
		runner := client.Beta.Messages.NewToolRunnerStreaming(tools, p)
		for events := range runner.AllStreaming(ctx) {
			message := &anthropic.BetaMessage{}
			for event, err := range events {
				if err == nil {
					err = message.Accumulate(event)
				}
				if err != nil {
					return nil, nil, err
				}
			}
			if message.ID != "" {
				answers = append(answers, message.RawJSON())
			}
		}
		history, err = json.Marshal(runner.Messages())
		return answers, history, err
	}
	return &messagesClient{mode: mode, send: send, run: run}, err
}
