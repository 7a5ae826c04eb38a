package provider

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Servers state in different places when they accept requests again. The first entry of resetForms that has a time counts.

// A resetForm is one place in which a server states when it accepts requests again.
type resetForm struct {
	place  resetPlace
	name   string
	unit   time.Duration // the unit of a number, if it is a duration
	server string        // servers that use the form
	source string        // where the form was observed, and when
}

type resetPlace uint8

const (
	resetHeader resetPlace = iota // a header; see waitIn
	resetMember                   // a member of the error or of the body; see waitIn
	resetWords                    // a duration after these words in the message
	resetQuota                    // headers for each limit, with a duration or a value for waitIn; see quotaReset
)

var resetForms = []resetForm{
	{resetHeader, "Retry-After-Ms", time.Millisecond, "OpenAI, Azure", ""},
	{resetHeader, "Retry-After", time.Second, "RFC 9110", ""},
	{resetMember, "resets_in_seconds", time.Second, "ChatGPT's Codex backend", "router-for-me/CLIProxyAPI#1666, 2026-11-28"},
	{resetMember, "resets_at", 0, "ChatGPT's Codex backend", "raine/claude-code-proxy#139, 2026-11-28"},
	{resetWords, "try again in ", 0, "OpenAI, Groq, Azure", "openai/codex#303, 2026-11-28"},
	{resetQuota, "X-Ratelimit-Reset", time.Second, "OpenAI", "router-for-me/CLIProxyAPI#1666, 2026-11-28"},
}

// resetOf returns the pause that the server requests before the next request; 0 if it requests none. h is nil for an error within an
// answer. A pause that the codec has read (e.RetryAfter) has lower priority than one in a header, and higher than the other forms. Forms
// other than a header count only in errors about the rate, because servers also report the state of their limits in unrelated errors.
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

// read returns the time until the reset; 0 or less if the place has none.
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

// Numbers from earliestSecond on are times in seconds since 1970, and from earliestMilli on in milliseconds: as durations they would be
// too long. Both constants are times of the year 2001 or before.
const (
	earliestSecond = 1e9
	earliestMilli  = 1e11
	latestMilli    = 1e14
)

// waitIn parses v as a number of units, a number that is a time, or a date of HTTP or RFC 3339, and returns the duration from now until
// then. It is 0 or less for a time in the past, and 0 for any other text.
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
	case n > 0: // false for NaN
		return bounded(n * float64(unit))
	}
	return 0
}

// errorMember returns the number or string in the member name of the body's error, or of the body itself; "" if none exists.
func errorMember(body []byte, name string) string {
	if rawjson.Check(body, rawjson.Limits{}) != nil {
		return ""
	}
	for _, v := range [...][]byte{rawjson.At(body, "error", name), rawjson.At(body, "response", "error", name), rawjson.At(body, name)} {
		if v != nil {
			return strings.Trim(string(v), `"`)
		}
	}
	return ""
}

var durationPart = lazy.Regexp(`^([0-9.]+) *([a-z]+) *`)

// leadingDuration parses the duration at the beginning of s: numbers with units, such as 20m5s, 1.5s, 350ms or 3 seconds.
func leadingDuration(s string) (sum time.Duration) {
	for range 4 { // days, hours, minutes, seconds
		part := durationPart().FindStringSubmatch(s)
		if part == nil {
			return sum
		}
		number, err := strconv.ParseFloat(strings.TrimSuffix(part[1], "."), 64)
		unit := durationUnit(part[2])
		if err != nil && !errors.Is(err, strconv.ErrRange) || unit == 0 {
			return sum
		}
		sum += bounded(number * float64(unit))
		s = s[len(part[0]):]
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

// quotaReset returns the time until the reset of the limit that is used up, from the headers whose names begin with f.name. If several
// limits are used up, it is the latest reset; if the headers do not say which is, the earliest.
//
//	X-Ratelimit-Remaining-Requests: 0
//	X-Ratelimit-Reset-Requests: 1m20s
func quotaReset(h http.Header, f *resetForm, now time.Time) time.Duration {
	var latest, earliest time.Duration // of the limits that are used up, and of those of which that is not known
	for name, v := range h {
		limit, is := strings.CutPrefix(name, f.name)
		if !is || len(v) == 0 {
			continue
		}
		remaining := h.Get("X-Ratelimit-Remaining" + limit)
		if left, err := strconv.ParseFloat(remaining, 64); err == nil && left > 0 {
			continue
		}
		reset := max(leadingDuration(v[0]), waitIn(v[0], f.unit, now))
		switch {
		case reset <= 0:
			continue
		case remaining == "0":
			latest = max(latest, reset)
		case earliest == 0 || reset < earliest:
			earliest = reset
		}
	}
	return cmp.Or(latest, earliest)
}
