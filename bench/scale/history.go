package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	einomodel "github.com/cloudwego/eino-ext/components/model/openai"
	einoschema "github.com/cloudwego/eino/schema"
	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/bench/internal/proxy"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// A form is how a wire writes a conversation of questions and answers.
type form struct{ name, model, path, head, round, tail string }

var forms = []form{
	{"chat completions", "m", "/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"Be brief."}`,
		`,{"role":"user","content":"N TEXT"},{"role":"assistant","content":"TEXT"}`, `,{"role":"user","content":"And now?"}]}`},
	{"Messages", "m-messages", "/v1/messages", `{"model":"m-messages","max_tokens":100,"messages":[{"role":"user","content":"Be brief."},{"role":"assistant","content":"Yes."}`,
		`,{"role":"user","content":"N TEXT"},{"role":"assistant","content":[{"type":"text","text":"TEXT"}]}`, `,{"role":"user","content":"And now?"}]}`},
	{"Responses", "m-responses", "/v1/responses", `{"model":"m-responses","store":false,"input":[{"role":"developer","content":"Be brief."}`,
		`,{"role":"user","content":"N TEXT"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"TEXT"}]}`, `,{"role":"user","content":"And now?"}]}`},
	{"generateContent", "m-gemini", "/v1beta/models/m-gemini:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Be brief."}]},{"role":"model","parts":[{"text":"Yes."}]}`,
		`,{"role":"user","parts":[{"text":"N TEXT"}]},{"role":"model","parts":[{"text":"TEXT"}]}`, `,{"role":"user","parts":[{"text":"And now?"}]}]}`},
}

// messageText is the text of a message of half a kilobyte, and escapedText its JSON form without quotes.
var (
	messageText = strings.Repeat("All work and no play \"makes\" Jack a dull boy.\n", 10)
	escapedText = strings.TrimSuffix(strings.TrimPrefix(strconv.Quote(messageText), `"`), `"`)
)

// body is a request of about that many bytes.
func (f *form) body(size int) []byte {
	var b bytes.Buffer
	b.WriteString(f.head)
	for i := 0; b.Len() < size; i++ {
		_, _ = strings.NewReplacer("TEXT", escapedText, "N", strconv.Itoa(i)).WriteString(&b, f.round) // a buffer takes everything
	}
	b.WriteString(f.tail)
	return b.Bytes()
}

// history measures one request with a long conversation: through gateways, on all wires, and as a library.
func history(s *settings) (*Chart, error) {
	c := &Chart{Title: "One request with a long history", Size: "bytes of the conversation, in messages of half a kilobyte"}
	sizes := steps(10_000, 10_000_000)
	if s.quick {
		sizes = []int{10_000, 30_000, 100_000}
	}
	if err := s.historyGateway(c, sizes); err != nil {
		return nil, err
	}
	measurements := []measurement{
		{name: "lathe, loop and provider", prepare: historyLoop},
		{name: "go-openai", peer: true, prepare: historyGoOpenAI},
		{name: "openai-go", peer: true, prepare: historyOpenAIGo},
		{name: "eino, chat model", peer: true, prepare: historyEino},
	}
	return c, s.operations(c, "As a library", sizes, measurements)
}

func (s *settings) historyGateway(c *Chart, sizes []int) error {
	r, err := s.newRig()
	if err != nil {
		return err
	}
	defer r.close()
	relay, err := s.gatewayConfig("relay", r.mock.Base, "tools: {builtin: []}\n")
	if err != nil {
		return err
	}
	runs, err := s.gatewayConfig("tools", r.mock.Base, "tools: {builtin: [calculator]}\n")
	if err != nil {
		return err
	}
	if _, err := s.addLathe(r, "lathe", relay); err != nil {
		return err
	}
	withTools, err := s.addLathe(r, "lathe with tools", runs)
	if err != nil {
		return err
	}
	type line struct {
		name string
		peer bool
		p    *proc.Process
		form *form
	}
	lines := []line{{"ReverseProxy", true, r.gateways[0], &forms[0]}, {"lean proxy", true, r.gateways[1], &forms[0]}, {"lathe, chat, with a tool of the server", false, withTools, &forms[0]}}
	for i := range forms {
		lines = append(lines, line{"lathe, " + forms[i].name, false, r.gateways[2], &forms[i]})
	}
	const panelCPU, panelRSS = "Through the gateway", "Most memory of the gateway during one request"
	for _, size := range sizes {
		bodies := map[*form][]byte{}
		for i := range forms {
			bodies[&forms[i]] = forms[i].body(size)
		}
		got := make([][]figure, len(lines))
		for range s.rounds {
			for i, l := range lines {
				f, err := s.through(l.p, l.p.Base+l.form.path, bodies[l.form])
				if err != nil {
					return fmt.Errorf("%s, %d bytes: %w", l.name, size, err)
				}
				got[i] = append(got[i], f)
			}
		}
		for i, l := range lines {
			c.add(panelCPU, l.name, measureCPU, l.peer, float64(size), middle(got[i], func(f figure) float64 { return f.cpu }))
			c.add(panelRSS, l.name, measureRSS, l.peer, float64(size), middle(got[i], func(f figure) float64 { return f.kib }))
		}
	}
	return nil
}

// through sends one body as often as the budget lets it, and returns the CPU time of the gateway for one request, and its largest
// resident memory, as kib.
func (s *settings) through(p *proc.Process, url string, body []byte) (figure, error) {
	if err := post(url, body); err != nil { // warm
		return figure{}, err
	}
	if err := p.ResetPeak(); err != nil {
		return figure{}, err
	}
	before, n := p.CPU(), 0
	for n < 3 || p.CPU()-before < s.budget {
		if err := post(url, body); err != nil {
			return figure{}, err
		}
		if n++; n >= 200 || s.quick {
			break
		}
	}
	return figure{cpu: float64((p.CPU() - before).Nanoseconds()) / 1e3 / float64(n), kib: float64(p.Peak())}, nil
}

// client is that of the requests to gateways.
var client = &http.Client{Transport: proxy.Transport(), Timeout: time.Minute}

func post(url string, body []byte) error {
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !bytes.Contains(b, []byte("A short answer.")) {
		return fmt.Errorf("status %d: %.300s", resp.StatusCode, b)
	}
	return nil
}

// canned answers requests to the chat completions API without a socket, after it has read them.
type canned struct{ scratch []byte }

func (t *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		if _, err := r.Body.Read(t.scratch); err != nil {
			break
		}
	}
	_ = r.Body.Close() // it was only read
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answerChat)), ContentLength: int64(len(answerChat)), Request: r}, nil
}

func newCanned() *http.Client { return &http.Client{Transport: &canned{make([]byte, 64<<10)}} }

// nowhere is the base URL of clients that never leave the process.
const nowhere = "http://bench.invalid/v1"

var errAnswer = errors.New("the answer is wrong")

func answered(text string, err error) error {
	if err == nil && text != "A short answer." {
		return errAnswer
	}
	return err
}

// roundsOf is the number of questions in a conversation of that size.
func roundsOf(size int) int { return max(1, size/(2*len(messageText))) }

func newLoop(set *tool.Set) (*loop.Loop, error) {
	model, err := provider.OpenAI("m", &provider.Options{BaseURL: nowhere, Key: secret.New("k"), Transport: newCanned().Transport, Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		return nil, err
	}
	runner, err := newRunner(set)
	if err != nil {
		return nil, err
	}
	return loop.New(model, runner, nil)
}

// runLoop makes one run.
func runLoop(l *loop.Loop, in *loop.Input) error {
	for e := range l.Run(context.Background(), in) {
		if end, ok := e.Data.(*event.RunFinished); ok {
			return answered(end.Result.Answer, nil)
		}
	}
	return errAnswer
}

func historyLoop(size int) (func() error, func(), error) {
	set, err := tool.NewSet()
	if err != nil {
		return nil, nil, err
	}
	l, err := newLoop(set)
	if err != nil {
		return nil, nil, err
	}
	var in loop.Input
	for i := range roundsOf(size) {
		in.Messages = append(in.Messages, lathe.User(strconv.Itoa(i)+" "+messageText), lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: messageText}}})
	}
	in.Messages = append(in.Messages, lathe.User("And now?"))
	return func() error { return runLoop(l, &in) }, nil, nil
}

func historyGoOpenAI(size int) (func() error, func(), error) {
	cfg := goopenai.DefaultConfig("k")
	cfg.BaseURL, cfg.HTTPClient = nowhere, newCanned()
	client := goopenai.NewClientWithConfig(cfg)
	req := goopenai.ChatCompletionRequest{Model: "m"}
	for i := range roundsOf(size) {
		req.Messages = append(req.Messages, goopenai.ChatCompletionMessage{Role: "user", Content: strconv.Itoa(i) + " " + messageText}, goopenai.ChatCompletionMessage{Role: "assistant", Content: messageText})
	}
	req.Messages = append(req.Messages, goopenai.ChatCompletionMessage{Role: "user", Content: "And now?"})
	return func() error {
		r, err := client.CreateChatCompletion(context.Background(), req)
		if err != nil {
			return err
		}
		return answered(r.Choices[0].Message.Content, nil)
	}, nil, nil
}

func newOpenAIGo() openaigo.Client {
	return openaigo.NewClient(option.WithAPIKey("k"), option.WithBaseURL(nowhere), option.WithHTTPClient(newCanned()), option.WithMaxRetries(0))
}

// askOpenAIGo returns a function that makes the request.
func askOpenAIGo(client openaigo.Client, p openaigo.ChatCompletionNewParams) func() error {
	return func() error {
		r, err := client.Chat.Completions.New(context.Background(), p)
		if err != nil {
			return err
		}
		return answered(r.Choices[0].Message.Content, nil)
	}
}

func historyOpenAIGo(size int) (func() error, func(), error) {
	client := newOpenAIGo()
	p := openaigo.ChatCompletionNewParams{Model: "m"}
	for i := range roundsOf(size) {
		p.Messages = append(p.Messages, openaigo.UserMessage(strconv.Itoa(i)+" "+messageText), openaigo.AssistantMessage(messageText))
	}
	p.Messages = append(p.Messages, openaigo.UserMessage("And now?"))
	return askOpenAIGo(client, p), nil, nil
}

func historyEino(size int) (func() error, func(), error) {
	m, err := einomodel.NewChatModel(context.Background(), &einomodel.ChatModelConfig{APIKey: "k", BaseURL: nowhere, Model: "m", HTTPClient: newCanned()})
	if err != nil {
		return nil, nil, err
	}
	var in []*einoschema.Message
	for i := range roundsOf(size) {
		in = append(in, einoschema.UserMessage(strconv.Itoa(i)+" "+messageText), einoschema.AssistantMessage(messageText, nil))
	}
	in = append(in, einoschema.UserMessage("And now?"))
	return func() error {
		out, err := m.Generate(context.Background(), in)
		if err != nil {
			return err
		}
		return answered(out.Content, nil)
	}, nil, nil
}
