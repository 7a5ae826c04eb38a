package eval

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// A guard is the policy of a scenario: the tools that may be called. A tool that is in no list is denied.
type guard struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// Approve lists the calls that the simulated approver approves. All others are denied.
	Approve []approvedCall `json:"approve,omitempty"`
}

// An approvedCall is a call that is approved: of this tool, with exactly these arguments.
type approvedCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// set sets the policy and the approver of a run.
func (g *guard) set(o *tool.Options) {
	o.Policy, o.Approver = policy.Tools{Allow: g.Allow, Ask: g.Ask, Deny: g.Deny}, person{g.Approve}
}

// A person is the approver of a guard.
type person struct{ approve []approvedCall }

var _ lathe.Approver = person{}

// Approve approves the calls in the list and denies all others.
func (p person) Approve(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	if slices.ContainsFunc(p.approve, func(a approvedCall) bool { return a.Tool == req.Tool.Name && rawjson.Equal(a.Arguments, req.Args) }) {
		return lathe.Approval{Approved: true, By: "suite"}, nil
	}
	return lathe.Approval{By: "suite", ReasonCode: "denied_by_user"}, nil
}

// guard parses a policy, which replaces the current one.
func (p *parser) guard(into **guard) member {
	return member{"policy", func(n *yaml.Node) error {
		g := &guard{}
		*into = g
		return p.mapping(n, "policy", []member{{"allow", &g.Allow}, {"ask", &g.Ask}, {"deny", &g.Deny},
			{"approve", func(n *yaml.Node) error {
				return p.list(n, "approve", func(item *yaml.Node) error {
					a := approvedCall{Arguments: json.RawMessage("{}")}
					g.Approve = append(g.Approve, a)
					last := &g.Approve[len(g.Approve)-1]
					return p.mapping(item, "an approved call", []member{{"tool", &last.Tool}, {"arguments", &last.Arguments}})
				})
			}}})
	}}
}

// unknown returns a tool name in the guard that is not in known, or "": a misspelt name would have no effect.
func (g *guard) unknown(known []string) string {
	names := slices.Concat(g.Allow, g.Ask, g.Deny)
	for _, a := range g.Approve {
		names = append(names, a.Tool)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// A witness is a model that records which of the texts the requests to another model contain.
type witness struct {
	lathe.Model
	texts    []string
	reported map[string]bool
}

// Unwrap returns the wrapped model.
func (w *witness) Unwrap() lathe.Model { return w.Model }

// Generate checks the request for the texts and passes it to the wrapped model.
func (w *witness) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	for _, text := range w.texts {
		if !w.reported[text] && mentions(req, text) {
			w.reported[text] = true
		}
	}
	return w.Model.Generate(ctx, req)
}

// mentions reports whether the tools or messages of a request contain the text. It ignores messages of the model.
func mentions(req *lathe.Request, text string) bool {
	for _, t := range req.Tools {
		if strings.Contains(t.Name, text) || strings.Contains(t.Description, text) || strings.Contains(string(t.Schema), text) {
			return true
		}
	}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case lathe.Text:
				if req.Messages[i].Role != lathe.RoleAssistant && strings.Contains(p.Text, text) {
					return true
				}
			case lathe.ToolResult:
				if strings.Contains(p.Content, text) {
					return true
				}
			default: // text of the model, or not text
			}
		}
	}
	return false
}
