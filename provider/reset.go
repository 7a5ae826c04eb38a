package provider

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Servers say in different places when they take requests again. The first place in the order of resetForms that has a time
// counts.

// A resetForm is one place in which a server says when it takes requests again.
type resetForm struct {
	place  resetPlace
	name   string
	unit   time.Duration // of a number that is a wait
	server string
	source string // and its date
}

type resetPlace uint8

const (
	resetHeader resetPlace = iota // see waitIn
	resetMember                   // a member of the error, or of the body: see waitIn
	resetWords                    // a duration that follows these words in the message
	resetQuota                    // headers with a duration, or as waitIn reads it, for each limit: see quotaReset
)

var resetForms = []resetForm{
	{resetHeader, "Retry-After-Ms", time.Millisecond, "OpenAI, Azure", ""},
	{resetHeader, "Retry-After", time.Second, "RFC 9110", ""},
	{resetMember, "resets_in_seconds", time.Second, "ChatGPT's Codex backend", "router-for-me/CLIProxyAPI#1666, 2026-11-28"},
	{resetMember, "resets_at", 0, "ChatGPT's Codex backend", "raine/claude-code-proxy#139, 2026-11-28"},
	{resetWords, "try again in ", 0, "OpenAI, Groq, Azure", "openai/codex#303, 2026-11-28"},
	{resetQuota, "X-Ratelimit-Reset", time.Second, "OpenAI", "router-for-me/CLIProxyAPI#1666, 2026-11-28"},
}

// resetOf returns how long the server asks to wait before the next request; 0: it does not say. h is nil for an error within an
// answer. A wait that the codec has read (e.RetryAfter) stands behind that of a header. Except for the headers of RFC 9110 and
// OpenAI, only an error about the rate says it: others repeat the state of limits that they have nothing to do with.
func resetOf(e *lathe.UpstreamError, h http.Header, body []byte, now time.Time) time.Duration {
	for i := range resetForms {
		f := &resetForms[i]
		if f.place != resetHeader && e.RetryAfter > 0 {
			return e.RetryAfter
		}
		if f.place != resetHeader && e.Kind != lathe.UpstreamRateLimited {
			break
		}
		if wait := f.read(e.Message, h, body, now); wait > 0 {
			return bounded(float64(wait))
		}
	}
	return e.RetryAfter
}

// read returns the time until the reset; 0 or less if the place does not have it.
func (f *resetForm) read(message string, h http.Header, body []byte, now time.Time) time.Duration {
	switch f.place {
	case resetHeader:
		return waitIn(strings.TrimSpace(h.Get(f.name)), f.unit, now)
	case resetMember:
		return waitIn(errorMember(body, f.name), f.unit, now)
	case resetWords:
		if _, after, found := strings.Cut(strings.ToLower(message), f.name); found {
			return leadingDuration(after)
		}
	case resetQuota:
		return quotaReset(h, f, now)
	}
	return 0
}

// Numbers from earliestSecond on are times in seconds since 1970, and from earliestMilli on in milliseconds: no server asks to wait for so
// many units. Both are of the year 2001 or before.
const (
	earliestSecond = 1e9
	earliestMilli  = 1e11
	latestMilli    = 1e14
)

// waitIn reads a number of units of time, a number that is a time, or a date of HTTP or RFC 3339, and returns the wait from now on.
// It is 0 or less for a time in the past, and for other texts.
func waitIn(v string, unit time.Duration, now time.Time) time.Duration {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		at, err := http.ParseTime(v)
		if err != nil {
			at, err = time.Parse(time.RFC3339, v)
		}
		if err != nil {
			return 0
		}
		return at.Sub(now)
	}
	switch {
	case n >= earliestSecond && n < earliestMilli:
		return time.Unix(int64(n), 0).Sub(now)
	case n >= earliestMilli && n < latestMilli:
		return time.UnixMilli(int64(n)).Sub(now)
	case n >= latestMilli:
		return maxRetryAfter
	case n > 0: // no NaN
		return bounded(n * float64(unit))
	}
	return 0
}

// errorMember returns the text of a number or string in the error of a body, or in the body itself; "": it has none.
func errorMember(body []byte, name string) string {
	if rawjson.Check(body, rawjson.Limits{}) != nil {
		return ""
	}
	for _, path := range [...][]string{{"error"}, {"response", "error"}, {}} {
		inner, ok := body, true
		for _, step := range path {
			if inner, ok = rawjson.Get(inner, step); !ok {
				break
			}
		}
		if v, has := rawjson.Get(inner, name); ok && has {
			return strings.Trim(string(v), `"`)
		}
	}
	return ""
}

// leadingDuration reads the duration that a text begins with: numbers with units, such as 20m5s, 1.5s, 350ms or 3 seconds.
func leadingDuration(s string) (sum time.Duration) {
	for range 4 { // days, hours, minutes, seconds
		n := 0
		for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.') {
			n++
		}
		number, err := strconv.ParseFloat(strings.TrimSuffix(s[:n], "."), 64)
		if n == 0 || err != nil && !errors.Is(err, strconv.ErrRange) {
			return sum
		}
		s = strings.TrimLeft(s[n:], " ")
		end := 0
		for end < len(s) && s[end] >= 'a' && s[end] <= 'z' {
			end++
		}
		unit := durationUnit(s[:end])
		if unit == 0 {
			return sum
		}
		sum += bounded(number * float64(unit))
		s = strings.TrimLeft(s[end:], " ")
	}
	return sum
}

func durationUnit(word string) time.Duration {
	switch word {
	case "ms":
		return time.Millisecond
	case "s", "sec", "second", "seconds":
		return time.Second
	case "m", "min", "minute", "minutes":
		return time.Minute
	case "h", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	}
	return 0
}

// quotaReset returns when the limit is reset that is used up, of those that the headers whose names begin with that of the form name:
// the latest one if several are, the earliest one if the headers do not say which.
func quotaReset(h http.Header, f *resetForm, now time.Time) (wait time.Duration) {
	used := false
	for name, v := range h {
		limit, is := strings.CutPrefix(name, f.name)
		if !is || len(v) == 0 {
			continue
		}
		if left, err := strconv.ParseFloat(h.Get("X-Ratelimit-Remaining"+limit), 64); err == nil && left > 0 {
			continue // the request was refused for another reason
		}
		reset := max(leadingDuration(v[0]), waitIn(v[0], f.unit, now))
		empty := h.Get("X-Ratelimit-Remaining"+limit) == "0"
		switch {
		case reset <= 0:
		case empty && (!used || reset > wait), !empty && !used && (wait == 0 || reset < wait):
			wait, used = reset, empty
		}
	}
	return wait
}
