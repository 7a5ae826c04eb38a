package mcptool

// This file accepts tools that wait for the decision of an operator.

import (
	"errors"
	"slices"

	"github.com/lathe-run/lathe"
)

// Accept pins the current definition of the tool that is offered under this name, or the definitions of all tools of the server with this
// name. Tools that were blocked are then offered. Excluded tools are not pinned. Accept returns the statuses that the tools had before. The
// error has the code not_found if no server or tool has the name, unavailable if the tools of the server are not known yet, and
// invalid_config if the pins cannot be written. On an error nothing is pinned.
func (g *Group) Accept(name string) ([]ToolStatus, error) { return g.AcceptShown(name, "") }

// AcceptShown does what [Group.Accept] does for one tool, but only if its current definition has this digest, the [ToolStatus].Digest that
// was shown to the operator. If the server has changed the definition since, the error has the code conflict, and nothing is pinned. With
// a digest, name must be that of one tool. Without one, AcceptShown is [Group.Accept].
func (g *Group) AcceptShown(name, digest string) ([]ToolStatus, error) {
	for _, s := range g.servers {
		if s.conf.Name == name || s.conf.owns(name) {
			return s.accept(name, digest)
		}
	}
	return nil, lathe.CodeNotFound.Errorf("mcp: accept", "there is no server of that name")
}

// accept pins the definition of the tool that is offered as name, or those of all tools if name is that of the server, and then decides again
// which tools are offered. It returns the statuses that the pinned tools had before. digest is that of AcceptShown.
func (s *supervisor) accept(name, digest string) ([]ToolStatus, error) {
	s.mu.Lock()
	list, defs, state := s.list, s.defs, s.status.State // list and defs are replaced, not changed
	s.mu.Unlock()
	if defs == nil {
		return nil, lathe.CodeUnavailable.Errorf("mcp: accept", "the server %s is %s: its tools are not known", s.conf.Name, state)
	}
	var all, accepted []*definition
	var before []ToolStatus
	refused := map[string]error{}
	for _, st := range list {
		d := defs[st.Remote]
		if d == nil {
			if st.State == ToolRefused {
				refused[st.Remote] = errors.New(st.Reason)
			}
			continue
		}
		all = append(all, d)
		isNamed := st.Name == name || s.conf.Name == name
		if isNamed && st.State != ToolExcluded {
			accepted, before = append(accepted, d), append(before, st)
		}
	}
	if len(accepted) == 0 {
		return nil, lathe.CodeNotFound.Errorf("mcp: accept", "the server %s has no such tool that could be accepted", s.conf.Name)
	}
	if digest != "" && slices.ContainsFunc(accepted, func(d *definition) bool { return d.digest != digest }) {
		return nil, lathe.CodeConflict.Errorf("mcp: accept", "the server has changed the definition since: look at it again")
	}
	if err := s.opts.Pins.accept(s.conf.Name, accepted, s.opts.Now()); err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("mcp: accept", err)
	}
	s.adopt(all, refused)
	return before, nil
}
