package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
)

// A prompt is a Prompt in the form of a tool, which renders it.
type prompt struct {
	Prompt
	spec  lathe.ToolSpec
	names []string // names of the arguments
}

func newPrompt(from *Prompt, o *offering) (*prompt, error) {
	p := &prompt{Prompt: *from}
	p.Labels, p.Arguments, p.Messages = slices.Clone(p.Labels), slices.Clone(p.Arguments), slices.Clone(p.Messages)
	if err := checkName(p.Name); err != nil {
		return nil, err
	}
	properties, required := map[string]any{}, []string{}
	for _, a := range p.Arguments {
		switch {
		case checkName(a.Name) != nil:
			return nil, fmt.Errorf("argument %.80q: %w", a.Name, checkName(a.Name))
		case slices.Contains(p.names, a.Name):
			return nil, fmt.Errorf("the argument %s stands twice", a.Name)
		}
		p.names = append(p.names, a.Name)
		properties[a.Name] = map[string]any{"type": "string"}
		if a.Required {
			required = append(required, a.Name)
		}
	}
	if (p.Render == nil) == (len(p.Messages) == 0) {
		return nil, errors.New("it has either messages or a function")
	}
	for i := range p.Messages {
		if err := p.check(&p.Messages[i], o); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		return nil, err
	}
	p.spec = specOf("prompt__", p.Name, p.Description, p.Labels, schema)
	return p, nil
}

// check returns an error if a message of the prompt is not valid: its content, its role, or the arguments and the resource to which it
// refers.
func (p *prompt) check(m *PromptMessage, o *offering) error {
	kinds := 0
	for _, set := range []bool{m.Text != "", m.Resource != "", m.Blob != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return errors.New("it has exactly one of a text, a resource and a blob")
	case m.Role != "" && m.Role != lathe.RoleUser && m.Role != lathe.RoleAssistant:
		return errors.New("its role is user or assistant")
	case m.Blob != nil && m.Blob.Data == nil:
		return errors.New("its blob has no data")
	}
	for _, name := range partsOf(m.Text + m.Resource) {
		if !slices.Contains(p.names, name) {
			return fmt.Errorf("it names {%s}, which is no argument of the prompt", name)
		}
	}
	if r, _ := o.find(m.Resource); m.Resource != "" && len(partsOf(m.Resource)) == 0 && r == nil {
		return fmt.Errorf("there is no resource %.200s", m.Resource)
	}
	return nil
}

// Spec implements lathe.Tool.
func (p *prompt) Spec() *lathe.ToolSpec { return &p.spec }

// filled is one message of a rendered prompt, in the output of its tool.
type filled struct {
	Role     lathe.Role `json:"role"`
	Text     string     `json:"text,omitempty"`
	Resource string     `json:"resource,omitempty"`
	Blob     int        `json:"blob,omitempty"` // number of the blob in the output, from 1; 0: none
}

// Call implements lathe.Tool.
func (p *prompt) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	given := map[string]string{}
	if err := json.Unmarshal(args, &given); err != nil {
		return nil, err
	}
	messages := p.Messages
	if p.Render != nil {
		var err error
		if messages, err = p.Render(ctx, given); err != nil {
			return nil, err
		}
	}
	out, rendered := &lathe.Output{}, make([]filled, 0, len(messages))
	for _, m := range messages {
		f := filled{Role: cmp.Or(m.Role, lathe.RoleUser), Text: m.Text, Resource: m.Resource}
		if p.Render == nil {
			f.Text, f.Resource = fill(m.Text, p.names, given), fill(m.Resource, p.names, given)
		}
		if m.Blob != nil {
			out.Blobs = append(out.Blobs, *m.Blob)
			f.Blob = len(out.Blobs)
		}
		rendered = append(rendered, f)
	}
	var err error
	out.Data, err = json.Marshal(rendered)
	return out, err
}

// definition returns the description of the prompt that clients receive.
func (p *prompt) definition() *mcp.Prompt {
	d := &mcp.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
	for _, a := range p.Arguments {
		d.Arguments = append(d.Arguments, &mcp.PromptArgument{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
	}
	return d
}

// getPrompt handles prompts/get with the runner.
func (t *tenantCatalog) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	p := req.Params
	args, err := json.Marshal(p.Arguments)
	if err != nil {
		return nil, err
	}
	if p.Arguments == nil {
		args = []byte("{}")
	}
	r := round{session: req.Session, token: p.GetProgressToken(), caps: req.ClientCapabilities(), answers: p.InputResponses}
	hash := fingerprint("prompts/get", p.Name, args)
	var res mcp.Result
	if p.RequestState != "" {
		res, err = t.resume(ctx, p.RequestState, hash, &r)
	} else {
		rc := t.catalogCall(req.Session, protocolOf(req.ProtocolVersion(), p.Meta), "prompt__"+p.Name, args)
		rc.output = maxPrompt
		res, err = send(ctx, rc, hash, &r, promptAsks, func(ctx context.Context, got *lathe.ToolResult) (mcp.Result, error) {
			return t.promptResult(ctx, rc, got)
		})
	}
	if err != nil {
		return nil, err
	}
	got, ok := res.(*mcp.GetPromptResult)
	if !ok {
		return nil, internalError("the prompt has another result")
	}
	return got, nil
}

// promptResult converts the output of a prompt's tool to the result of prompts/get. It reads the resources to which the prompt refers.
func (t *tenantCatalog) promptResult(ctx context.Context, rc *runnerCall, got *lathe.ToolResult) (mcp.Result, error) {
	if got.IsError {
		return nil, failed(got)
	}
	var rendered []filled
	if err := json.Unmarshal([]byte(got.Content), &rendered); err != nil {
		return nil, err
	}
	_, session, _ := rc.client.now()
	o := t.s.offer.Load()
	res := &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}
	if p, ok := o.byTool[got.Name].(*prompt); ok {
		res.Description = p.Description
	}
	for _, m := range rendered {
		msg := &mcp.PromptMessage{Role: mcp.Role(m.Role), Content: &mcp.TextContent{Text: m.Text}}
		switch {
		case m.Blob > 0 && m.Blob <= len(got.Blobs):
			msg.Content = block(&got.Blobs[m.Blob-1], m.Blob)
		case m.Blob > 0:
			continue // the blob was removed
		case m.Resource != "":
			c, err := t.read(ctx, session, rc.protocol, nil, m.Resource)
			if err != nil {
				return nil, err
			}
			msg.Content = embed(c)
		}
		res.Messages = append(res.Messages, msg)
	}
	return res, nil
}

// embed returns a resource as the content of a message.
func embed(c *mcp.ResourceContents) mcp.Content {
	if c.Blob != nil {
		return block(&lathe.Blob{MediaType: c.MIMEType, Data: c.Blob, Name: c.URI}, 1)
	}
	return &mcp.EmbeddedResource{Resource: c}
}

// promptAsks returns the result of prompts/get that asks the client the questions in requests.
func promptAsks(requests mcp.InputRequestMap, state string) (mcp.Result, error) {
	return &mcp.GetPromptResult{InputRequests: requests, RequestState: state}, nil
}
