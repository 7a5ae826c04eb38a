package event

import "context"

// A RunOwner says whose run a sink gets events of, and which model entry the run uses. Values come from the run's input.
type RunOwner struct {
	Principal string
	Profile   string // of [lathe.RunInfo]
	Target    string // of the run's loop; "": the default model, or none was named
}

type ownerKey struct{}

// An ownerContext is a context with the owner of a run, in one allocation.
type ownerContext struct {
	context.Context
	owner RunOwner
}

// Value implements [context.Context].
func (c *ownerContext) Value(key any) any {
	if key == (ownerKey{}) {
		return &c.owner
	}
	return c.Context.Value(key)
}

// WithRunOwner returns a context for the sinks of one run.
func WithRunOwner(ctx context.Context, o RunOwner) context.Context {
	return &ownerContext{ctx, o}
}

// RunOwnerFrom returns what [WithRunOwner] has put into ctx. An engine does so for the sinks, the model calls and the tool calls of its
// runs, those of resumed runs included.
func RunOwnerFrom(ctx context.Context) (o RunOwner, ok bool) {
	p, ok := ctx.Value(ownerKey{}).(*RunOwner)
	if ok {
		o = *p
	}
	return o, ok
}
