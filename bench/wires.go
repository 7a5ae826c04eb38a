package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	wireresponses "github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// A wireCase is one wire: its two codecs, and its official Go client.
type wireCase struct {
	name     string
	wire     lathe.Wire
	served   wire.Served
	upstream wire.Upstream
	peer     string
	read     func(s wireStream) func() error // by the peer
}

var wireCases = []wireCase{
	{"chat", lathe.WireOpenAIChat, openai.Served{}, openai.Upstream{}, "openai-go", func(s wireStream) func() error { return asmOpenAIGo(s.body, s.want) }},
	{"responses", lathe.WireResponses, wireresponses.Codec{}, wireresponses.Codec{}, "openai-go", readResponses},
	{"messages", lathe.WireMessages, messages.Codec{}, messages.Codec{}, "anthropic-sdk-go", readMessages},
	{"gemini", lathe.WireGemini, gemini.Codec{}, gemini.Codec{}, "genai", readGemini},
}

// A wireStream is one streamed answer: its deltas and, on one wire, its bytes.
type wireStream struct {
	deltas []lathe.Delta
	finish *lathe.Finish
	body   []byte
	want   int // bytes of text or arguments
}

// The answers that are compared on all wires: text in words, and one call whose arguments come in pieces of 16 bytes, each
// wireEvents pieces. Gemini has whole calls only, so its stream of a call is two events.
const wireEvents = 2048

func wireTexts() (deltas []lathe.Delta, f *lathe.Finish, want int) {
	var text strings.Builder
	for i := range wireEvents {
		word := fmt.Sprintf("word%d ", i%10)
		text.WriteString(word)
		deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaText, Text: word})
	}
	return deltas, &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: text.String()}}},
		Reason: lathe.FinishStop, Usage: lathe.Usage{InputTokens: 100, OutputTokens: wireEvents}}, text.Len()
}

func wireArguments() (deltas []lathe.Delta, f *lathe.Finish, want int) {
	args := `{"path":"main.go","text":"` + strings.Repeat(`package main\n\tx := \"y\" `, wireEvents*16/25)
	args = args[:wireEvents*16-10] + `01234567"}`
	deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallStart, ID: "call_1", Name: toolName})
	for rest := args; rest != ""; rest = rest[min(16, len(rest)):] {
		deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallArgs, Text: rest[:min(16, len(rest))]})
	}
	deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallEnd})
	call := lathe.ToolCall{ID: "call_1", Name: toolName, Arguments: args}
	return deltas, &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call}},
		Reason: lathe.FinishToolCalls, Usage: lathe.Usage{InputTokens: 100, OutputTokens: wireEvents}}, len(args)
}

// wireHead is what is known about an answer before its first delta.
func wireHead(c *wireCase) (*wire.AnswerHead, error) {
	body, _ := c.upstream.AppendRequest(nil, &lathe.Request{Model: "gpt-4o-mini-2024-07-18", Messages: []lathe.Message{lathe.User(prompt)}}, &wire.EncodeOptions{Stream: true})
	req, err := c.served.ParseRequest(body)
	return &wire.AnswerHead{ID: "01M838M5RH2J5E1S65SDRF6ZD7", Model: "gpt-4o-mini-2024-07-18", Created: 1741570283, Request: req}, err
}

// writeWire appends an answer as this server streams it, and returns the number of bytes.
func writeWire(c *wireCase, head *wire.AnswerHead, dst []byte, deltas []lathe.Delta, f *lathe.Finish, whole bool) []byte {
	w := c.served.NewWriter(head)
	for _, d := range deltas {
		if dst = w.AppendDelta(dst, d); !whole {
			dst = dst[:0] // it was sent
		}
	}
	return w.AppendFinish(dst, f, nil)
}

func wireStreams(c *wireCase, calls bool) (wireStream, error) {
	var s wireStream
	if calls {
		s.deltas, s.finish, s.want = wireArguments()
	} else {
		s.deltas, s.finish, s.want = wireTexts()
	}
	head, err := wireHead(c)
	s.body = writeWire(c, head, nil, s.deltas, s.finish, true)
	return s, err
}

// asmWire assembles a stream with the codec of the wire.
func asmWire(c *wireCase, s wireStream) func() error {
	var rd bytes.Reader
	var deltas []lathe.Delta
	return func() error {
		rd.Reset(s.body)
		r := sse.NewReader(&rd, nil)
		a := c.upstream.NewAssembler(nil)
		got := 0
		for !a.Done() {
			ev, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				deltas, err = a.Append(deltas[:0], ev.Type, ev.Data)
			}
			if err != nil {
				return err
			}
			for i := range deltas {
				if k := deltas[i].Kind; k == lathe.DeltaCallArgs || k == lathe.DeltaText {
					got += len(deltas[i].Text)
				}
			}
		}
		if _, err := a.Finish(true); err != nil {
			return err
		}
		return size(got == s.want)
	}
}

// serveWire writes a stream with the codec of the wire, as the server does: each delta into an empty buffer.
func serveWire(c *wireCase, s wireStream) func() error {
	head, err := wireHead(c)
	var buf []byte
	return func() error {
		if err != nil {
			return err
		}
		buf = writeWire(c, head, buf[:0], s.deltas, s.finish, false)
		return size(len(buf) > 0)
	}
}

// runWire makes a run of one streamed answer: engine, loop, provider, events and metrics.
func runWire(c *wireCase, s wireStream) func() error {
	fail := func(err error) func() error { return func() error { return err } }
	model, err := provider.New(c.wire, "gpt-4o-mini", &provider.Options{BaseURL: nowhere, Key: secret.New("k"), Transport: oneBody{s.body}, Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		return fail(err)
	}
	set, err := tool.NewSet()
	if err != nil {
		return fail(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		return fail(err)
	}
	l, err := loop.New(model, runner, nil)
	if err != nil {
		return fail(err)
	}
	sink := &counted{}
	e, err := engine.New(&engine.Options{Sinks: []event.Sink{observe.NewMetrics(nil), sink}})
	if err != nil {
		return fail(err)
	}
	in := &loop.Input{Messages: []lathe.Message{lathe.User(prompt)}}
	return func() error {
		sink.events, sink.bytes = 0, 0
		res, err := e.Run(context.Background(), l, in, nil)
		if err != nil {
			return err
		}
		return size(sink.bytes == s.want && len(res.Answer) == s.want)
	}
}

func readResponses(s wireStream) func() error {
	c := openaigo.NewClient(option.WithAPIKey("k"), option.WithHTTPClient(&http.Client{Transport: oneBody{s.body}}), option.WithMaxRetries(0))
	return func() error {
		stream := c.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{Model: "m"})
		got, whole := 0, false
		for stream.Next() {
			switch ev := stream.Current(); ev.Type {
			case "response.output_text.delta", "response.function_call_arguments.delta":
				got += len(ev.Delta)
			case "response.completed":
				whole = len(ev.Response.Output) == 1
			}
		}
		if err := stream.Err(); err != nil {
			return err
		}
		return size(got == s.want && whole)
	}
}

func readMessages(s wireStream) func() error {
	c := anthropic.NewClient(anthropicopt.WithAPIKey("k"), anthropicopt.WithHTTPClient(&http.Client{Transport: oneBody{s.body}}), anthropicopt.WithMaxRetries(0))
	return func() error {
		stream := c.Messages.NewStreaming(context.Background(), anthropic.MessageNewParams{Model: "m", MaxTokens: 1,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))}})
		var acc anthropic.Message
		for stream.Next() {
			if err := acc.Accumulate(stream.Current()); err != nil {
				return err
			}
		}
		if err := stream.Err(); err != nil {
			return err
		}
		if len(acc.Content) != 1 {
			return errWrong
		}
		return size(len(acc.Content[0].Text)+len(acc.Content[0].Input) == s.want)
	}
}

func readGemini(s wireStream) func() error {
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI,
		HTTPClient: &http.Client{Transport: oneBody{s.body}}, HTTPOptions: genai.HTTPOptions{BaseURL: nowhere}})
	return func() error {
		if err != nil {
			return err
		}
		got, calls := 0, 0
		for res, err := range c.Models.GenerateContentStream(context.Background(), "m", genai.Text("hi"), nil) {
			if err != nil {
				return err
			}
			got += len(res.Text())
			calls += len(res.FunctionCalls())
		}
		return size(got == s.want || calls == 1)
	}
}

// A wireTable compares one kind of work on all wires.
type wireTable struct {
	title string
	calls bool
	peers bool
	op    func(c *wireCase, s wireStream) func() error
}

var wireTables = []wireTable{
	{"assembly of text", false, true, asmWire},
	{"assembly of arguments", true, true, asmWire},
	{"served stream of text", false, false, serveWire},
	{"served stream of arguments", true, false, serveWire},
	{"streamed run of text", false, false, runWire},
}

func wireLanes(t *wireTable) ([]*lane, error) {
	var lanes []*lane
	for i := range wireCases {
		c := &wireCases[i]
		if t.calls && c.wire == lathe.WireGemini {
			continue // it has no pieces of calls
		}
		s, err := wireStreams(c, t.calls)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, &lane{name: c.name, op: t.op(c, s)})
		if t.peers {
			lanes = append(lanes, &lane{name: c.name + ", " + c.peer, op: c.read(s)})
		}
	}
	return lanes, nil
}

// wires prints, for each kind of work, the cost of an event on each wire beside that of chat completions.
func wires(rounds int, budget time.Duration) error {
	for i := range wireTables {
		t := &wireTables[i]
		lanes, err := wireLanes(t)
		if err != nil {
			return err
		}
		race(lanes, rounds, budget)
		for _, l := range lanes {
			for j := range l.got {
				l.got[j].cpu /= wireEvents
				l.got[j].allocs /= wireEvents
				l.got[j].kib /= wireEvents
			}
		}
		printLanes(t.title+", an event", lanes, "chat", 0)
	}
	return nil
}
