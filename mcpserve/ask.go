package mcpserve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
)

// The capabilities of clients that questions need.
const (
	capForm   = "elicitation"
	capLink   = "elicitation.url"
	capSample = "sampling"
	capRoots  = "roots"
)

// capabilityOf names what a client must be able to do to be asked q; "" for what is no question.
func capabilityOf(q lathe.Question) string {
	var kinds []string
	for _, k := range []struct {
		is   bool
		name string
	}{{q.Form != nil, capForm}, {q.Link != nil, capLink}, {q.Sample != nil, capSample}, {q.Roots, capRoots}} {
		if k.is {
			kinds = append(kinds, k.name)
		}
	}
	if len(kinds) != 1 {
		return ""
	}
	return kinds[0]
}

// abilities are the capabilities that a client names.
func abilities(c *mcp.ClientCapabilities) map[string]bool {
	if c == nil {
		return nil
	}
	forms := c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
	return map[string]bool{capForm: forms, capLink: c.Elicitation != nil && c.Elicitation.URL != nil, capSample: c.Sampling != nil, //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
		capRoots: c.RootsV2 != nil} //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
}

// manners is what the askers of both eras have in common: what the client can be asked, and what it
// was asked in vain.
type manners struct {
	mu      sync.Mutex
	can     map[string]bool
	missing map[string]any // as the protocol names it
}

// Can implements lathe.Asker.
func (m *manners) Can(q lathe.Question) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.can[capabilityOf(q)]
}

// check returns an error where one of the questions cannot be asked.
func (m *manners) check(questions map[string]lathe.Question) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	for name, q := range questions {
		need := capabilityOf(q)
		switch {
		case need == "":
			return fmt.Errorf("mcpserve: the question %q has not exactly one kind", name)
		case !m.can[need]:
			if m.missing == nil {
				m.missing = map[string]any{}
			}
			if need == capLink {
				m.missing[capForm] = map[string]any{"url": struct{}{}}
			} else if m.missing[need] == nil {
				m.missing[need] = struct{}{}
			}
			err = lathe.ErrCannotAsk
		}
	}
	return err
}

// lacks returns the error of a client that could not be asked what its call needed.
func (m *manners) lacks() error {
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

// sessionAsker asks by requests of its own, as it was done up to 2025-11-25.
type sessionAsker struct {
	manners
	session *mcp.ServerSession
	t       *tenant
}

// Ask implements lathe.Asker.
func (a *sessionAsker) Ask(ctx context.Context, questions map[string]lathe.Question) (map[string]lathe.Answer, error) {
	if err := a.check(questions); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.t.s.opts.AskTimeout)
	defer cancel()
	out := make(map[string]lathe.Answer, len(questions))
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		q := questions[name]
		res, err := a.one(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("mcpserve: asking the client: %w", err)
		}
		answer, ok := answerOf(q, res)
		if !ok {
			return nil, errAnswer
		}
		out[name] = answer
	}
	return out, nil
}

var errAnswer = &lathe.Error{Code: lathe.CodeUnavailable, Op: "mcpserve: ask", Err: errors.New("the client's answer does not fit the question")}

func (a *sessionAsker) one(ctx context.Context, q lathe.Question) (mcp.InputResponse, error) {
	switch p := requestOf(q).(type) {
	case *mcp.ElicitParams:
		return a.session.Elicit(ctx, p)
	case *mcp.CreateMessageParams: //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
		return a.session.CreateMessage(ctx, p) //nolint:staticcheck // the same
	default:
		return a.session.ListRoots(ctx, &mcp.ListRootsParams{}) //nolint:staticcheck // the same
	}
}

// requestOf is a question as the protocol asks it.
func requestOf(q lathe.Question) mcp.InputRequest {
	switch {
	case q.Form != nil:
		return &mcp.ElicitParams{Message: q.Form.Message, RequestedSchema: q.Form.Schema}
	case q.Link != nil:
		return &mcp.ElicitParams{Mode: "url", Message: q.Link.Message, URL: q.Link.URL, ElicitationID: rand.Text()}
	case q.Sample != nil:
		p := &mcp.CreateMessageParams{SystemPrompt: q.Sample.System, MaxTokens: int64(q.Sample.MaxTokens), Messages: []*mcp.SamplingMessage{}} //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
		for i := range q.Sample.Messages {
			m := &q.Sample.Messages[i]
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

// answerOf is what a client answered, where it is an answer to q.
func answerOf(q lathe.Question, res mcp.InputResponse) (lathe.Answer, bool) {
	switch r := res.(type) {
	case *mcp.ElicitResult:
		if q.Form == nil && q.Link == nil {
			return lathe.Answer{}, false
		}
		return personAnswer(q.Form, r)
	case *mcp.CreateMessageResult: //nolint:staticcheck // deprecated from 2026-07-28 on, and served in both eras
		return modelAnswer(r.Model, r.Content), q.Sample != nil
	case *mcp.CreateMessageWithToolsResult: //nolint:staticcheck // the same
		return modelAnswer(r.Model, r.Content...), q.Sample != nil
	case *mcp.ListRootsResult: //nolint:staticcheck // the same
		var a lathe.Answer
		for _, root := range r.Roots {
			if root != nil {
				a.Roots = append(a.Roots, lathe.Root{URI: root.URI, Name: root.Name})
			}
		}
		return a, q.Roots
	}
	return lathe.Answer{}, false
}

// personAnswer is the answer to a form, or to a link where f is nil.
func personAnswer(f *lathe.Form, r *mcp.ElicitResult) (lathe.Answer, bool) {
	switch r.Action {
	case "decline", "cancel":
		return lathe.Answer{Refused: r.Action}, true
	case "accept":
	default:
		return lathe.Answer{}, false
	}
	if f == nil {
		return lathe.Answer{}, true
	}
	content := r.Content
	if content == nil {
		content = map[string]any{}
	}
	b, err := json.Marshal(content)
	if err != nil {
		return lathe.Answer{}, false
	}
	if len(f.Schema) > 0 {
		s, err := schema.Compile(f.Schema)
		if err != nil || s.Validate(b) != nil {
			return lathe.Answer{}, false
		}
	}
	return lathe.Answer{Form: b}, true
}

func modelAnswer(model string, content ...mcp.Content) lathe.Answer {
	a := lathe.Answer{Model: model, Message: lathe.Message{Role: lathe.RoleAssistant}}
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
