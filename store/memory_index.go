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
	var rows []RunSummary
	s.each(f, func(sum *Summary) {
		row := sum.Run
		row.Pending = slices.Clone(row.Pending)
		rows = append(rows, row)
	})
	rows = slices.DeleteFunc(rows, func(r RunSummary) bool { return !f.covers(r.Started) })
	return page(ctx, rows, f, (*RunSummary).Cursor)
}

// ModelCalls implements [RunIndex].
func (s *Memory) ModelCalls(ctx context.Context, f *RunFilter) ([]CallSummary, string, error) {
	var rows []CallSummary
	s.each(f, func(sum *Summary) {
		for _, row := range sum.Calls {
			if f.covers(row.Time) {
				row.Cost = clonePointer(row.Cost)
				rows = append(rows, row)
			}
		}
	})
	return page(ctx, rows, f, (*CallSummary).Cursor)
}

// page sorts rows and returns those after the filter's cursor.
func page[T any](ctx context.Context, rows []T, f *RunFilter, place func(*T) Cursor) ([]T, string, error) {
	if err := ended(ctx, "store: list"); err != nil {
		return nil, "", err
	}
	slices.SortFunc(rows, func(a, b T) int { return place(&a).before(place(&b)) })
	if f != nil && f.After != "" {
		after, err := ParseCursor(f.After)
		if err != nil {
			return nil, "", err
		}
		rows = slices.DeleteFunc(rows, func(r T) bool { return place(&r).before(after) <= 0 })
	}
	if n := Page(f); len(rows) > n {
		return rows[:n], place(&rows[n-1]).String(), nil
	}
	return rows, "", nil
}
