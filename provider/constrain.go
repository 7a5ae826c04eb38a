package provider

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/wire"
)

// constraintPath is the first part of the entries of [lathe.Finish] Dropped that concern a constraint.
const constraintPath = "constraint"

// A constrainer adds the constraint of a dialect to requests, so that the model server makes the model write calls that fit the tools.
// Its methods may be called from several goroutines at once.
type constrainer struct {
	server string
	last   atomic.Pointer[constraint] // the last constraint, which is reused because tools seldom change between requests
}

// A constraint is the addition to requests with these tools and choices.
type constraint struct {
	dialect *dialect.Dialect
	tools   []*lathe.ToolSpec // compared by identity, because specs do not change
	choice  lathe.ToolChoice
	single  bool

	members []lathe.Member // empty if the tools cannot be constrained
	dropped []string       // paths of what the constraint omits
}

// newConstrainer returns nil if server is "", and an error if the server is unknown.
func newConstrainer(server string) (*constrainer, error) {
	if server == "" {
		return nil, nil
	}
	if !slices.Contains(dialect.ConstraintServers(), server) {
		return nil, fmt.Errorf("no form of constraints for the server %.64q; there are %s", server, strings.Join(dialect.ConstraintServers(), ", "))
	}
	return &constrainer{server: server}, nil
}

// apply returns req with the constraint for calls of the tools, and the paths of what the constraint omits. req is not changed and has no
// response format. If req has the member of the constraint itself, it is returned unchanged.
func (c *constrainer) apply(req *lathe.Request, d *dialect.Dialect, tools []*lathe.ToolSpec, choice lathe.ToolChoice, single bool) (*lathe.Request, []string) {
	now := c.last.Load()
	if now == nil || now.dialect != d || now.choice != choice || now.single != single || !slices.Equal(now.tools, tools) {
		now = c.build(d, tools, choice, single)
		c.last.Store(now)
	}
	if len(now.members) == 0 {
		return req, now.dropped
	}
	if slices.ContainsFunc(now.members, func(m lathe.Member) bool { return wire.Named(req.Overrides, m.Name) }) {
		return req, []string{constraintPath}
	}
	out := *req
	for _, m := range now.members {
		if m.Name == "response_format" {
			out.Sampling.ResponseFormat = m.Value
			continue
		}
		out.Overrides = append(slices.Clip(out.Overrides), m)
	}
	return &out, now.dropped
}

// build returns the constraint for calls of the tools. If none can be built, dropped names it, and the request is sent without.
func (c *constrainer) build(d *dialect.Dialect, tools []*lathe.ToolSpec, choice lathe.ToolChoice, single bool) *constraint {
	out := &constraint{dialect: d, tools: slices.Clone(tools), choice: choice, single: single, dropped: []string{constraintPath}}
	made, err := d.Constrain(&dialect.ConstraintOptions{Tools: tools, Choice: choice, SingleCall: single})
	if err != nil {
		return out
	}
	members, err := made.Members(c.server)
	if err != nil {
		return out
	}
	out.members, out.dropped = members, nil
	for _, path := range made.Loosened[:min(len(made.Loosened), wire.MaxDropped)] {
		out.dropped = append(out.dropped, constraintPath+"."+path)
	}
	return out
}
