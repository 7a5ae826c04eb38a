package verify

import (
	"context"

	"github.com/lathe-run/lathe/lab/doctor"
)

// Measured is one endpoint after its requests.
type Measured = *side

// MeasureOne makes the requests of Run to one endpoint: as a reference, its triggers are asked twice.
func MeasureOne(ctx context.Context, t doctor.Target, reference bool, opts *Options) (Measured, error) {
	o := opts.withDefaults()
	first, second := o.plans()
	if reference {
		first = second
	}
	return measure(ctx, t, first, reference, &o, &Progress{})
}

// Compared returns the report of Run for endpoints that were measured apart.
func Compared(target, reference Measured, opts *Options) *Report {
	o := opts.withDefaults()
	rep := &Report{Version: 1, Budget: Plan(opts, true), sides: []*side{target, reference}}
	rep.finish(&o)
	return rep
}
