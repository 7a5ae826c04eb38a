package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/bytedance/sonic"
	einomodel "github.com/cloudwego/eino-ext/components/model/openai"
	einoschema "github.com/cloudwego/eino/schema"
	gojson "github.com/goccy/go-json"
	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// toolBody is one call of n argument bytes in deltas of 16 bytes. With vary the envelope changes from
// chunk to chunk, so that nothing can be remembered.
func toolBody(n int, vary bool) (body []byte, want int) {
	args := `{"path":"main.go","text":"` + strings.Repeat("package main\\n\\tx := \\\"y\\\" ", n/24) + `"}`
	var b bytes.Buffer
	sseEvent(&b, `{"role":"assistant","content":null}`)
	sseEvent(&b, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":%q,"arguments":""}}]}`, toolName))
	k := 0
	for rest := args; rest != ""; k++ {
		m := min(16, len(rest))
		start := b.Len()
		sseEvent(&b, fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":%q}}]}`, rest[:m]))
		if vary {
			varied := strings.Replace(b.String()[start:], `"service_tier":"default"`, fmt.Sprintf(`"obfuscation":"%0*d"`, 1+k%9, k), 1)
			b.Truncate(start)
			b.WriteString(varied)
		}
		rest = rest[m:]
	}
	finish(&b, "tool_calls")
	return b.Bytes(), len(args)
}

func textBody(words int) (body []byte, want int) {
	var b bytes.Buffer
	sseEvent(&b, `{"role":"assistant","content":null}`)
	for i := range words {
		w := fmt.Sprintf("word%d ", i%10)
		want += len(w)
		sseEvent(&b, fmt.Sprintf(`{"content":%q}`, w))
	}
	finish(&b, "stop")
	return b.Bytes(), want
}

type oneBody struct{ body []byte }

func (t oneBody) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	return &http.Response{StatusCode: 200, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(t.body)), Request: req}, nil
}

// A streamed is a response body, and how many bytes of text or arguments are in it.
type streamed struct {
	title string
	body  []byte
	want  int
}

func bodies(args int) []streamed {
	same, sameWant := toolBody(args, false)
	vary, varyWant := toolBody(args, true)
	text, textWant := textBody(args / 32)
	return []streamed{
		{fmt.Sprintf("assembly: %d KiB of arguments in 16-byte deltas, envelope repeats", args>>10), same, sameWant},
		{"assembly: the same, envelope changes per chunk", vary, varyWant},
		{fmt.Sprintf("assembly: %d text deltas", args/32), text, textWant},
	}
}

func assemblers(s streamed) []*lane {
	return []*lane{
		{name: "lathe", op: asmLathe(s.body, s.want)},
		{name: "floor: JSON walker, buffers reused", op: asmFloor(s.body, s.want)},
		{name: "floor: newlines only", op: asmNewlines(s.body)},
		{name: "go-openai", op: asmGoOpenAI(s.body, s.want)},
		{name: "eino-ext", op: asmEino(s.body, s.want)},
		{name: "openai-go", op: asmOpenAIGo(s.body, s.want)},
	}
}

func assembly(rounds int, budget time.Duration) {
	for _, s := range bodies(64 << 10) {
		lanes := assemblers(s)
		race(lanes, rounds, budget)
		printLanes(s.title, lanes, "lathe", len(s.body))
	}
}

func size(ok bool) error {
	if !ok {
		return errWrong
	}
	return nil
}

func asmLathe(body []byte, want int) func() error {
	var rd bytes.Reader
	var deltas []lathe.Delta
	return func() error {
		rd.Reset(body)
		r := sse.NewReader(&rd, nil)
		a := openai.NewAssembler(nil)
		got := 0
		for !a.Done() {
			ev, err := r.Next()
			if err == nil {
				deltas, err = a.Append(deltas[:0], ev.Data)
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
		return size(got == want)
	}
}

func asmFloor(body []byte, want int) func() error {
	var m flatMessage
	var in []byte
	var rd bytes.Reader
	return func() error {
		rd.Reset(body)
		m.reset()
		var err error
		if in, err = m.stream(&rd, in); err != nil {
			return err
		}
		got := len(m.text)
		for _, c := range m.calls {
			got += len(c.args)
		}
		return size(got == want)
	}
}

func asmNewlines(body []byte) func() error {
	return func() error {
		n := 0
		for rest := body; ; n++ {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				return size(n > 0)
			}
			rest = rest[i+1:]
		}
	}
}

func asmGoOpenAI(body []byte, want int) func() error {
	cfg := goopenai.DefaultConfig("k")
	cfg.HTTPClient = &http.Client{Transport: oneBody{body}}
	c := goopenai.NewClientWithConfig(cfg)
	return func() error {
		s, err := c.CreateChatCompletionStream(context.Background(), goopenai.ChatCompletionRequest{Model: "m", Stream: true})
		if err != nil {
			return err
		}
		defer s.Close()
		var text, args []byte
		for {
			ch, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return size(len(text)+len(args) == want)
			}
			if err != nil {
				return err
			}
			if len(ch.Choices) > 0 {
				text = append(text, ch.Choices[0].Delta.Content...)
				for _, tc := range ch.Choices[0].Delta.ToolCalls {
					args = append(args, tc.Function.Arguments...)
				}
			}
		}
	}
}

func asmOpenAIGo(body []byte, want int) func() error {
	c := openaigo.NewClient(option.WithAPIKey("k"), option.WithHTTPClient(&http.Client{Transport: oneBody{body}}), option.WithMaxRetries(0))
	return func() error {
		s := c.Chat.Completions.NewStreaming(context.Background(), openaigo.ChatCompletionNewParams{Model: "m"})
		acc := openaigo.ChatCompletionAccumulator{}
		for s.Next() {
			acc.AddChunk(s.Current())
		}
		if err := s.Err(); err != nil {
			return err
		}
		msg := acc.Choices[0].Message
		got := len(msg.Content)
		for _, tc := range msg.ToolCalls {
			got += len(tc.Function.Arguments)
		}
		return size(got == want)
	}
}

func asmEino(body []byte, want int) func() error {
	ctx := context.Background()
	m, err := einomodel.NewChatModel(ctx, &einomodel.ChatModelConfig{APIKey: "k", Model: "m", HTTPClient: &http.Client{Transport: oneBody{body}}})
	return func() error {
		if err != nil {
			return err
		}
		s, err := m.Stream(ctx, []*einoschema.Message{einoschema.UserMessage("x")})
		if err != nil {
			return err
		}
		msg, err := einoschema.ConcatMessageStream(s)
		if err != nil {
			return err
		}
		got := len(msg.Content)
		for _, tc := range msg.ToolCalls {
			got += len(tc.Function.Arguments)
		}
		return size(got == want)
	}
}

// decode measures one chunk at a time, into the fields that a loop needs.
func decode(rounds int, budget time.Duration) {
	title, lanes, total := decoders()
	race(lanes, rounds, budget)
	printLanes(title, lanes, "lathe", total)
}

func decoders() (title string, lanes []*lane, total int) {
	body, _ := toolBody(4<<10, true)
	var chunks [][]byte
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		if data, ok := bytes.CutPrefix(line, []byte("data: {\"id\"")); ok {
			chunk := append([]byte("{\"id\""), data...)
			chunks = append(chunks, chunk)
			total += len(chunk)
		}
	}
	type chunkFields struct {
		ID      string `json:"id"`
		Choices []struct {
			Delta struct {
				Content   string `json:"content"`
				ToolCalls []struct {
					Index    int    `json:"index"`
					ID       string `json:"id"`
					Function struct {
						Name      string `json:"name"`
						Arguments string `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"delta"`
			FinishReason *string `json:"finish_reason"`
		} `json:"choices"`
		Usage *struct {
			PromptTokens     int `json:"prompt_tokens"`
			CompletionTokens int `json:"completion_tokens"`
		} `json:"usage"`
	}
	each := func(unmarshal func([]byte, any) error) func() error {
		return func() error {
			for _, c := range chunks {
				var v chunkFields
				if err := unmarshal(c, &v); err != nil {
					return err
				}
			}
			return nil
		}
	}
	var deltas []lathe.Delta
	var m flatMessage
	lanes = []*lane{
		{name: "lathe", op: func() error {
			a := openai.NewAssembler(nil)
			var err error
			for _, c := range chunks {
				if deltas, err = a.Append(deltas[:0], c); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "floor: JSON walker, buffers reused", op: func() error {
			m.reset()
			for _, c := range chunks {
				m.walk(c)
			}
			return nil
		}},
		{name: "encoding/json", op: each(json.Unmarshal)},
		{name: "goccy/go-json", op: each(gojson.Unmarshal)},
		{name: "sonic", op: each(sonic.Unmarshal)},
	}
	title = fmt.Sprintf("decoding %d chunks of %d bytes on average, envelope changes per chunk (figures are for all of them)", len(chunks), total/len(chunks))
	return title, lanes, total
}
