package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

var _ RunIndex = (*Memory)(nil)

const (
	defaultPage = 50
	maxPage     = 1_000
)

// Page returns how many rows a filter asks for.
func Page(f *RunFilter) int {
	if f == nil || f.Limit <= 0 {
		return defaultPage
	}
	return min(f.Limit, maxPage)
}

// A Cursor is the place after a row: its time in nanoseconds, its run, and its event.
type Cursor struct {
	Nanos   int64
	RunID   string
	EventID int64
}

// String returns the form in which a cursor is handed out. Its holder must not look into it.
func (c Cursor) String() string {
	return strconv.FormatInt(c.Nanos, 36) + "." + strconv.FormatInt(c.EventID, 36) + "." + c.RunID
}

// ParseCursor reads what String wrote. The error is of code invalid_request.
func ParseCursor(s string) (c Cursor, err error) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) == 3 {
		var first, second error
		c.Nanos, first = strconv.ParseInt(parts[0], 36, 64)
		c.EventID, second = strconv.ParseInt(parts[1], 36, 64)
		c.RunID = parts[2]
		if first == nil && second == nil {
			return c, nil
		}
	}
	return Cursor{}, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "store: list", Err: errors.New("the cursor is not one that a list has given")}
}

// before reports whether c comes before other in a list, which has the newest first.
func (c Cursor) before(other Cursor) int {
	return cmp.Or(cmp.Compare(other.Nanos, c.Nanos), strings.Compare(other.RunID, c.RunID), cmp.Compare(other.EventID, c.EventID))
}

func fitsFilter(r *RunSummary, f *RunFilter) bool {
	return f == nil || (f.RunID == "" || f.RunID == r.RunID) && (f.SessionID == "" || f.SessionID == r.SessionID) &&
		(f.Principal == "" || f.Principal == r.Principal) && (f.Status == "" || f.Status == r.Status)
}

// covers reports whether a time is within the bounds of the filter.
func (f *RunFilter) covers(t time.Time) bool {
	return f == nil || (f.Since.IsZero() || !t.Before(f.Since)) && (f.Until.IsZero() || t.Before(f.Until))
}

// each calls fn with the summary of each run that fits. fn must not keep what may change.
func (s *Memory) each(f *RunFilter, fn func(*Summary)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, j := range s.kept.runs {
		if fitsFilter(&j.sum.Run, f) && (f == nil || !f.Signaled || j.hasUnreadSignals()) {
			fn(&j.sum)
		}
	}
}

// Runs implements [RunIndex].
func (s *Memory) Runs(ctx context.Context, f *RunFilter) ([]RunSummary, string, error) {
	p, err := newPager[RunSummary](ctx, f)
	if err != nil {
		return nil, "", err
	}
	s.each(f, func(sum *Summary) {
		if row := &sum.Run; f.covers(row.Started) && p.admits(row.Cursor()) {
			copied := *row
			copied.Pending = slices.Clone(row.Pending)
			p.add(row.Cursor(), copied)
		}
	})
	rows, next := p.page()
	return rows, next, nil
}

// ModelCalls implements [RunIndex].
func (s *Memory) ModelCalls(ctx context.Context, f *RunFilter) ([]CallSummary, string, error) {
	p, err := newPager[CallSummary](ctx, f)
	if err != nil {
		return nil, "", err
	}
	s.each(f, func(sum *Summary) {
		for i := range sum.Calls {
			if row := &sum.Calls[i]; f.covers(row.Time) && p.admits(row.Cursor()) {
				copied := *row
				copied.Cost = clonePointer(row.Cost)
				p.add(row.Cursor(), copied)
			}
		}
	})
	rows, next := p.page()
	return rows, next, nil
}

// A pager collects one page of a list: the first rows after the filter's cursor, in the order of the list. It takes memory in
// proportion to the page, however many rows it is given.
type pager[T any] struct {
	limit int
	after *Cursor
	last  *Cursor // of the row that ends the page so far; nil: the page is not full
	rows  []placed[T]
}

type placed[T any] struct {
	at  Cursor
	row T
}

func newPager[T any](ctx context.Context, f *RunFilter) (*pager[T], error) {
	if err := ended(ctx, "store: list"); err != nil {
		return nil, err
	}
	p := &pager[T]{limit: Page(f)}
	if f != nil && f.After != "" {
		after, err := ParseCursor(f.After)
		if err != nil {
			return nil, err
		}
		p.after = &after
	}
	return p, nil
}

// admits reports whether a row at that place can be on the page.
func (p *pager[T]) admits(at Cursor) bool {
	return (p.after == nil || at.before(*p.after) > 0) && (p.last == nil || at.before(*p.last) < 0)
}

func (p *pager[T]) add(at Cursor, row T) {
	if p.rows = append(p.rows, placed[T]{at, row}); len(p.rows) > 2*p.limit {
		p.sort()
		clear(p.rows[p.limit+1:])
		p.rows = p.rows[:p.limit+1] // one more row means that another page follows
		last := p.rows[p.limit].at
		p.last = &last
	}
}

func (p *pager[T]) sort() {
	slices.SortFunc(p.rows, func(a, b placed[T]) int { return a.at.before(b.at) })
}

// page returns the rows of the page and the cursor after them; "" if no row follows.
func (p *pager[T]) page() (rows []T, next string) {
	p.sort()
	if len(p.rows) > p.limit {
		p.rows, next = p.rows[:p.limit], p.rows[p.limit-1].at.String()
	}
	for i := range p.rows {
		rows = append(rows, p.rows[i].row)
	}
	return rows, next
}
