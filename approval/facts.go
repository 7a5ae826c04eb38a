package approval

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Fact is one line of what a person is shown of a call. Values are one line of visible
// characters.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Model says that the model wrote the value, and the name where it is that of an argument:
	// it may say anything.
	Model bool `json:"model,omitempty"`
}

// Limits of what is shown.
const (
	maxShownArgs  = 40
	maxShownName  = 64
	maxShownValue = 400
)

// Facts returns what a person should see of a request before anything else: what Lathe itself knows
// first, then each argument in its canonical form, with control, direction and invisible characters
// as escapes. Names and values are cut, and say by how much.
func Facts(req *lathe.ApprovalRequest, now time.Time) []Fact {
	origin := req.Tool.Origin
	if origin == "" {
		origin = "an unnamed origin"
	}
	why := "rule " + req.Verdict.Rule
	if req.Verdict.Reason != "" {
		why = req.Verdict.Reason + " (" + why + ")"
	}
	out := []Fact{
		{Name: "tool", Value: req.Tool.Name},
		{Name: "origin", Value: show(origin, maxShownValue)},
		{Name: "effect", Value: req.Tool.Effect.String()},
		{Name: "why asked", Value: show(why, maxShownValue)},
		{Name: "digest", Value: req.Digest},
		{Name: "expires in", Value: req.ExpiresAt.Sub(now).Round(time.Second).String()},
	}
	if len(req.Tool.Labels) > 0 {
		out = append(out, Fact{Name: "labels", Value: show(strings.Join(req.Tool.Labels, " "), maxShownValue)})
	}
	canon, err := rawjson.AppendCanonical(nil, req.Args)
	if err != nil || len(canon) == 0 || canon[0] != '{' {
		return append(out, Fact{Name: "arguments", Value: show(string(req.Args), maxShownValue), Model: true})
	}
	n := 0
	for key, value := range rawjson.Members(canon) {
		if n++; n <= maxShownArgs {
			out = append(out, Fact{Name: show(string(rawjson.AppendUnquoteLossy(nil, key)), maxShownName), Value: show(string(value), maxShownValue), Model: true})
		}
	}
	if n > maxShownArgs {
		out = append(out, Fact{Name: "…", Value: fmt.Sprintf("%d more arguments", n-maxShownArgs)})
	}
	return out
}

// show returns s as one line of visible characters, at most limit bytes of s.
func show(s string, limit int) string {
	more := ""
	if len(s) > limit {
		cut := limit
		for cut > 0 && s[cut]&0xC0 == 0x80 {
			cut--
		}
		more = fmt.Sprintf(" … %d bytes more", len(s)-cut)
		s = s[:cut]
	}
	return Visible(s) + more
}

// Visible returns s with what cannot be seen, or changes how the rest is seen, as escapes: control,
// direction, tag and other invisible characters, line ends, and bytes that are no UTF-8.
func Visible(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			fmt.Fprintf(&b, "\\U%08x", r)
		}
	}
	return b.String()
}

// hidden also holds for what prints as nothing: combining marks alone do not hide text, fillers do.
func hidden(r rune) bool {
	switch r {
	case 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0x034F, 0x17B4, 0x17B5:
		return true
	}
	return !unicode.IsPrint(r) || r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF
}
