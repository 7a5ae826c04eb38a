package event

import "context"

// A RunOwner says which principal owns a run and which model entry the run uses.
type RunOwner struct {
	Principal string // [lathe.RunInfo].Principal
	Profile   string // [lathe.RunInfo].Profile
	Target    string // the Target of the run's loop.Input: the name of a model entry; "": the caller of the run named no model
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

// WithRunOwner returns a copy of ctx from which [RunOwnerFrom] returns o. It replaces an owner that ctx already has.
func WithRunOwner(ctx context.Context, o RunOwner) context.Context {
	return &ownerContext{ctx, o}
}

// RunOwnerFrom returns the owner of the run that ctx belongs to. An engine sets it in the contexts of the sinks, the model calls and the tool
// calls of all its runs. ok is false if ctx has none.
func RunOwnerFrom(ctx context.Context) (o RunOwner, ok bool) {
	p, ok := ctx.Value(ownerKey{}).(*RunOwner)
	if ok {
		o = *p
	}
	return o, ok
}
