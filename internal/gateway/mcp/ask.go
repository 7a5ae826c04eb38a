package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/tool"
)

// The capabilities that a client must have to be sent the questions of a tool.
const (
	capForm   = "elicitation"
	capLink   = "elicitation.url"
	capSample = "sampling"
	capRoots  = "roots"
)

// capabilityOf returns the capability that a client needs to answer q, or "" if q does not have exactly one kind.
func capabilityOf(q tool.Question) string {
	kind, n := "", 0
	for name, is := range map[string]bool{capForm: q.Form != nil, capLink: q.Link != nil, capSample: q.Sample != nil, capRoots: q.Roots} {
		if is {
			kind, n = name, n+1
		}
	}
	if n != 1 {
		return ""
	}
	return kind
}

// abilities returns the capabilities that a client declares.
func abilities(c *mcp.ClientCapabilities) map[string]bool {
	if c == nil {
		return nil
	}
	forms := c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
	return map[string]bool{capForm: forms, capLink: c.Elicitation != nil && c.Elicitation.URL != nil, capSample: c.Sampling != nil, //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
		capRoots: c.RootsV2 != nil} //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
}

// clientAbilities are the capabilities that a client declares, and those that a question required and the client lacks. The askers of both
// protocol eras embed it.
type clientAbilities struct {
	mu      sync.Mutex
	can     map[string]bool
	missing map[string]any // in the form of requiredCapabilities in the protocol
}

// Can implements tool.Asker.
func (m *clientAbilities) Can(q tool.Question) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.can[capabilityOf(q)]
}

// require returns an error if the client lacks the capability for one of the questions, and records that capability as missing.
func (m *clientAbilities) require(questions map[string]tool.Question) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	for name, q := range questions {
		need := capabilityOf(q)
		switch {
		case need == "":
			return fmt.Errorf("mcp: the question %q has not exactly one kind", name)
		case !m.can[need]:
			if m.missing == nil {
				m.missing = map[string]any{}
			}
			if need == capLink {
				m.missing[capForm] = map[string]any{"url": struct{}{}}
			} else if m.missing[need] == nil {
				m.missing[need] = struct{}{}
			}
			err = tool.ErrCannotAsk
		}
	}
	return err
}

// missingError returns the JSON-RPC error that lists the capabilities recorded as missing, or nil if none exist.
func (m *clientAbilities) missingError() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.missing) == 0 {
		return nil
	}
	data, err := json.Marshal(map[string]any{"requiredCapabilities": m.missing})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the call needs what the client cannot do", Data: data}
}

// A sessionAsker asks the client by requests from the server to the client, which protocol versions up to 2025-11-25 allow.
type sessionAsker struct {
	clientAbilities
	session *mcp.ServerSession
	t       *tenant
}

// Ask implements tool.Asker.
func (a *sessionAsker) Ask(ctx context.Context, questions map[string]tool.Question) (map[string]tool.Answer, error) {
	if err := a.require(questions); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.t.s.opts.AskTimeout)
	defer cancel()
	out := map[string]tool.Answer{}
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		q := questions[name]
		res, err := a.request(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("mcp: asking the client: %w", err)
		}
		answer, ok := answerOf(q, res)
		if !ok {
			return nil, errAnswer
		}
		out[name] = answer
	}
	return out, nil
}

var errAnswer = lathe.CodeUnavailable.Errorf("mcp: ask", "the client's answer does not fit the question")

func (a *sessionAsker) request(ctx context.Context, q tool.Question) (mcp.InputResponse, error) {
	switch p := requestOf(q).(type) {
	case *mcp.ElicitParams:
		return a.session.Elicit(ctx, p)
	case *mcp.CreateMessageParams: //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
		return a.session.CreateMessage(ctx, p) //nolint:staticcheck // the same
	default:
		return a.session.ListRoots(ctx, &mcp.ListRootsParams{}) //nolint:staticcheck // the same
	}
}

// requestOf converts a question to the request of the protocol.
func requestOf(q tool.Question) mcp.InputRequest {
	switch {
	case q.Form != nil:
		return &mcp.ElicitParams{Message: q.Form.Message, RequestedSchema: q.Form.Schema}
	case q.Link != nil:
		return &mcp.ElicitParams{Mode: "url", Message: q.Link.Message, URL: q.Link.URL, ElicitationID: rand.Text()}
	case q.Sample != nil:
		p := &mcp.CreateMessageParams{SystemPrompt: q.Sample.System, MaxTokens: int64(q.Sample.MaxTokens), Messages: []*mcp.SamplingMessage{}} //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
		for _, m := range q.Sample.Messages {
			role := mcp.Role("user")
			if m.Role == lathe.RoleAssistant {
				role = "assistant"
			}
			p.Messages = append(p.Messages, &mcp.SamplingMessage{Role: role, Content: &mcp.TextContent{Text: m.Text()}}) //nolint:staticcheck // the same
		}
		return p
	}
	return &mcp.ListRootsParams{} //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
}

// answerOf converts the response of a client to the answer to q; false if it does not fit q.
func answerOf(q tool.Question, res mcp.InputResponse) (tool.Answer, bool) {
	switch r := res.(type) {
	case *mcp.ElicitResult:
		if q.Form == nil && q.Link == nil {
			return tool.Answer{}, false
		}
		return personAnswer(q.Form, r)
	case *mcp.CreateMessageResult: //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
		return modelAnswer(r.Model, r.Content), q.Sample != nil
	case *mcp.CreateMessageWithToolsResult: //nolint:staticcheck // the same
		return modelAnswer(r.Model, r.Content...), q.Sample != nil
	case *mcp.ListRootsResult: //nolint:staticcheck // the same
		var a tool.Answer
		for _, root := range r.Roots {
			if root != nil {
				a.Roots = append(a.Roots, tool.Root{URI: root.URI, Name: root.Name})
			}
		}
		return a, q.Roots
	}
	return tool.Answer{}, false
}

// personAnswer converts a response to a form or, if f is nil, to a link. It returns false if the response does not match the schema of the
// form.
func personAnswer(f *tool.Form, r *mcp.ElicitResult) (tool.Answer, bool) {
	if r.Action == "decline" || r.Action == "cancel" {
		return tool.Answer{Refused: r.Action}, true
	}
	if r.Action != "accept" {
		return tool.Answer{}, false
	}
	if f == nil {
		return tool.Answer{}, true
	}
	content := r.Content
	if content == nil {
		content = map[string]any{}
	}
	b, err := json.Marshal(content)
	if err != nil {
		return tool.Answer{}, false
	}
	if len(f.Schema) > 0 {
		s, err := schema.Compile(f.Schema)
		if err != nil || s.Validate(b) != nil {
			return tool.Answer{}, false
		}
	}
	return tool.Answer{Form: b}, true
}

func modelAnswer(model string, content ...mcp.Content) tool.Answer {
	a := tool.Answer{Model: model, Message: lathe.Message{Role: lathe.RoleAssistant}}
	for _, c := range content {
		switch c := c.(type) {
		case *mcp.TextContent:
			a.Message.Parts = append(a.Message.Parts, lathe.Text{Text: c.Text})
		case *mcp.ImageContent:
			a.Message.Parts = append(a.Message.Parts, lathe.Blob{MediaType: c.MIMEType, Data: c.Data})
		case *mcp.AudioContent:
			a.Message.Parts = append(a.Message.Parts, lathe.Blob{MediaType: c.MIMEType, Data: c.Data})
		}
	}
	return a
}
