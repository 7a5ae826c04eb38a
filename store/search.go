package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Limits of one page of [Find]. A page that reaches a limit ends early; its cursor continues the search.
const (
	maxScannedRuns   = 10_000   // number of rows that are compared with a [RunQuery]
	maxSearchedRuns  = 500      // number of runs whose events are searched for a text
	maxSearchedBytes = 32 << 20 // number of bytes of texts that are searched
)

// A RunQuery selects runs by properties that a [RunFilter] does not have. A run must match all fields. An empty field matches every run.
type RunQuery struct {
	Tool      string       // name of a tool in RunSummary.Tools
	Model     string       // equals RunSummary.Model or Target
	Reason    lathe.Reason // equals RunSummary.Reason
	ErrorCode string       // equals RunSummary.ErrorCode
	Text      string       // contained in a message, argument, result, answer or error message of a model call; case is ignored
}

// Find returns one page of the runs of the index that match both the filter and the query, newest first, and the cursor of the next page:
// "" after the last page. f may be nil; q must not be nil.
//
// A page ends early after 10,000 compared runs or, if q has a Text, after the texts of 500 runs or 32 MiB of texts were searched: truncated
// is then true, and the cursor next continues the search. Find does not stop in the middle of a run, so that one run may exceed the limit
// of bytes. On an error it returns no rows.
func Find(ctx context.Context, ix RunIndex, f *RunFilter, q *RunQuery) (rows []RunSummary, next string, truncated bool, err error) {
	if *q == (RunQuery{}) {
		rows, next, err = ix.Runs(ctx, f)
		return rows, next, false, err
	}
	s := textSearch{text: strings.ToLower(q.Text)}
	rows, next, err = Search(ctx, ix, f, maxScannedRuns, func(ctx context.Context, r *RunSummary) (bool, error) {
		fits := q.fits(r)
		if q.Text == "" || !fits {
			return fits, nil
		}
		return s.contains(ctx, ix, r.RunID)
	})
	return rows, next, next != "" && len(rows) < Page(f), err
}

// fits reports whether a row matches the query, apart from its Text.
func (q *RunQuery) fits(r *RunSummary) bool {
	return (q.Tool == "" || slices.Contains(r.Tools, q.Tool)) && (q.Model == "" || q.Model == r.Model || q.Model == r.Target) &&
		(q.Reason == "" || q.Reason == r.Reason) && (q.ErrorCode == "" || q.ErrorCode == r.ErrorCode)
}

// ParseTime parses a time in RFC 3339, a day in UTC such as 2026-11-23, or a time before now as a whole number of days, hours, minutes or
// seconds, such as 7d, 6h, 15m or 30s. Times before 1970 and after 2199 are errors, because stores use int64 nanoseconds.
func ParseTime(s string, now time.Time) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t, err = time.Parse(time.DateOnly, s)
	}
	if err != nil && s != "" {
		unit := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}[s[len(s)-1]]
		n, invalid := strconv.ParseUint(s[:len(s)-1], 10, 31)
		if invalid == nil && unit != 0 && n <= uint64(100*365*24*time.Hour/unit) { // a Duration is at most 292 years
			t, err = now.Add(-time.Duration(n)*unit), nil
		}
	}
	if err != nil || t.Year() < 1970 || t.Year() >= 2200 {
		return time.Time{}, errors.New("want a time such as " + now.UTC().Format(time.RFC3339) + ", or how long ago, such as 15m, 6h or 7d")
	}
	return t, nil
}

// ErrSearchStopped is returned by the match function of [Search] to end the page before the current run. Search does not return it.
var ErrSearchStopped = errors.New("the search stopped at its limit")

// searchBatch is the maximum number of rows that Search reads at once.
const searchBatch = 1_000

// Search returns the runs that match the filter and for which match returns true, newest first. It returns at most [Page] runs and calls
// match for at most scan runs. next is the cursor of the next page; "": no runs are left. A page may be short or even empty although next
// is set. Cursors stay valid while runs are added and removed. f may be nil. scan must be positive. On an error Search returns no runs.
//
// match must not retain the run. If it returns [ErrSearchStopped], the page ends before that run; match must not return it for the first
// run of a page, because the search could not make progress. Search returns any other error of match.
func Search(ctx context.Context, ix RunIndex, f *RunFilter, scan int, match func(context.Context, *RunSummary) (bool, error)) (rows []RunSummary, next string, err error) {
	batch := RunFilter{}
	if f != nil {
		batch = *f
	}
	want := Page(f)
	batch.Limit = min(want, scan)
	next = batch.After
	for seen := 0; seen < scan && len(rows) < want; {
		found, after, err := ix.Runs(ctx, &batch)
		if err != nil {
			return nil, "", err
		}
		for i := range found {
			if len(rows) == want {
				return rows, next, nil
			}
			ok, err := match(ctx, &found[i])
			switch {
			case errors.Is(err, ErrSearchStopped):
				return rows, next, nil
			case err != nil:
				return nil, "", err
			case ok:
				rows = append(rows, found[i])
			}
			seen++
			next = found[i].Cursor().String()
		}
		if after == "" {
			return rows, "", nil
		}
		batch.After, batch.Limit = after, min(2*batch.Limit, searchBatch, scan-seen) // larger: few of the rows match
	}
	return rows, next, nil
}

// A textSearch searches for a text in the events of several runs.
type textSearch struct {
	text  string // in lower case
	runs  int    // number of searched runs
	bytes int    // number of searched bytes
}

// contains searches the events of the run for the text. For a run that was deleted in the meantime it returns false. At a limit it
// returns ErrSearchStopped.
func (s *textSearch) contains(ctx context.Context, ix RunIndex, runID string) (bool, error) {
	if s.runs == maxSearchedRuns || s.bytes >= maxSearchedBytes {
		return false, ErrSearchStopped
	}
	s.runs++
	for e, err := range ix.Read(ctx, runID, 0) {
		if lathe.CodeOf(err) == lathe.CodeNotFound {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for _, text := range textsOf(&e) {
			s.bytes += len(text)
			if strings.Contains(strings.ToLower(text), s.text) {
				return true, nil
			}
		}
	}
	return false, nil
}

// textsOf returns the texts of an event that are searched: those of messages, arguments, results and answers.
func textsOf(e *event.Event) []string {
	switch d := e.Data.(type) {
	case *event.RunStarted:
		var texts []string
		for i := range d.Messages {
			texts = append(texts, messageTexts(&d.Messages[i])...)
		}
		return texts
	case *event.ModelCallFinished:
		texts := []string{d.ErrorMessage}
		if d.Message != nil {
			texts = append(texts, messageTexts(d.Message)...)
		}
		return texts
	case *event.ToolCallProposed:
		return []string{d.RawName, d.RawArgs}
	case *event.ToolCallParseError:
		return []string{d.RawExcerpt}
	case *event.ApprovalResolved:
		return []string{string(d.Arguments)}
	case *event.ToolCallResult:
		return []string{d.Result}
	case *event.RunFinished:
		return []string{d.Answer}
	default: // no text, or only text of an earlier event
		return nil
	}
}

func messageTexts(m *lathe.Message) (texts []string) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			texts = append(texts, p.Text)
		case lathe.Reasoning:
			texts = append(texts, p.Text)
		case lathe.Refusal:
			texts = append(texts, p.Text)
		case lathe.ToolCall:
			texts = append(texts, p.Arguments)
		case lathe.ToolResult:
			texts = append(texts, p.Content)
		default: // no text
		}
	}
	return texts
}
