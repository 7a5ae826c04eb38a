package store

import (
	"context"
	"slices"
	"time"
)

// Runs implements [RunIndex].
func (s *Memory) Runs(ctx context.Context, f *RunFilter) ([]RunSummary, string, error) {
	return pageOf(ctx, s, f, (*RunSummary).Cursor, func(sum *Summary, yield func(*RunSummary)) { yield(&sum.Run) })
}

// ModelCalls implements [RunIndex].
func (s *Memory) ModelCalls(ctx context.Context, f *RunFilter) ([]CallSummary, string, error) {
	return pageOf(ctx, s, f, (*CallSummary).Cursor, func(sum *Summary, yield func(*CallSummary)) {
		for i := range sum.Calls {
			yield(&sum.Calls[i])
		}
	})
}

// fits reports whether the filter selects the run, without its times.
func (j *journal) fits(f *RunFilter) bool {
	r := &j.sum.Run
	return (f.RunID == "" || f.RunID == r.RunID) && (f.SessionID == "" || f.SessionID == r.SessionID) &&
		(f.Principal == "" || f.Principal == r.Principal) && (f.Status == "" || f.Status == r.Status) && (!f.Signaled || j.hasUnreadSignals())
}

// covers reports whether a time in nanoseconds is between Since and Until of the filter.
func (f *RunFilter) covers(nanos int64) bool {
	return (f.Since.IsZero() || nanos >= f.Since.UnixNano()) && (f.Until.IsZero() || nanos < f.Until.UnixNano())
}

// firsts collects the limit smallest of many values, with memory in proportion to limit.
type firsts[T any] struct {
	limit   int
	compare func(a, b T) int
	found   []T
}

func (f *firsts[T]) add(v T) {
	f.found = append(f.found, v)
	if len(f.found) > 4*f.limit { // a multiple, so that sorting is rare
		f.cut()
	}
}

// cut removes all but the limit smallest values, and returns these in order.
func (f *firsts[T]) cut() []T {
	slices.SortFunc(f.found, f.compare)
	f.found = f.found[:min(len(f.found), f.limit)]
	return f.found
}

// pageOf returns one page of the rows of all runs that match the filter, and the cursor behind it; "" if no row follows. rowsOf yields the
// rows of a run, and place returns the position of a row in the list.
func pageOf[T any](ctx context.Context, s *Memory, f *RunFilter, place func(*T) Cursor, rowsOf func(*Summary, func(*T))) (rows []T, next string, err error) {
	if f == nil {
		f = &RunFilter{}
	}
	var after *Cursor
	if f.After != "" {
		c, err := ParseCursor(f.After)
		if err != nil {
			return nil, "", err
		}
		after = &c
	}
	limit := Page(f)
	page := firsts[*T]{limit: limit + 1, compare: func(a, b *T) int { return place(a).before(place(b)) }} // one more row shows whether another page follows
	err = s.do(ctx, "list", func(time.Time) error {
		for _, j := range s.kept.runs {
			if !j.fits(f) {
				continue
			}
			rowsOf(&j.sum, func(row *T) {
				at := place(row)
				follows := after == nil || at.before(*after) > 0
				if follows && f.covers(at.Nanos) {
					page.add(row)
				}
			})
		}
		found := page.cut()
		if len(found) > limit {
			found, next = found[:limit], place(found[limit-1]).String()
		}
		for _, row := range found {
			rows = append(rows, clone(*row))
		}
		return nil
	})
	return rows, next, err
}
