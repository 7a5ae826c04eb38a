package approval

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// A Detail is one line of the description of a call for an approver, such as "effect: writes". Name and Value have only visible characters.
type Detail struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Model says that the model wrote Value and, if the line is an argument, Name: do not trust them.
	Model bool `json:"model,omitempty"`
}

// Limits of Details: the number of arguments, and the bytes of a name and of a value.
const (
	maxShownArgs  = 40
	maxShownName  = 64
	maxShownValue = 400
)

// Details returns the lines that an approver should see first: those that Lathe has determined, then the first 40 arguments in canonical
// JSON, with escapes for control, direction and invisible characters (see [Visible]). Names above 64 bytes and values above 400 bytes are
// truncated, before escaping; a truncated one says how much is missing. If there are more arguments, the last line says how many. now is
// the time from which the line "expires in" counts.
func Details(req *lathe.ApprovalRequest, now time.Time) []Detail {
	why := "rule " + req.Verdict.Rule
	if req.Verdict.Reason != "" {
		why = req.Verdict.Reason + " (" + why + ")"
	}
	out := []Detail{
		{Name: "tool", Value: req.Tool.Name},
		{Name: "origin", Value: show(cmp.Or(req.Tool.Origin, "an unnamed origin"), maxShownValue)},
		{Name: "effect", Value: req.Tool.Effect.String()},
		{Name: "why asked", Value: show(why, maxShownValue)},
		{Name: "digest", Value: req.Digest},
		{Name: "expires in", Value: req.ExpiresAt.Sub(now).Round(time.Second).String()},
	}
	if len(req.Tool.Labels) > 0 {
		out = append(out, Detail{Name: "labels", Value: show(strings.Join(req.Tool.Labels, " "), maxShownValue)})
	}
	canon, err := rawjson.AppendCanonical(nil, req.Args)
	if err != nil || len(canon) == 0 || canon[0] != '{' {
		return append(out, Detail{Name: "arguments", Value: show(string(req.Args), maxShownValue), Model: true})
	}
	n := 0
	for key, value := range rawjson.Members(canon) {
		n++
		if n <= maxShownArgs {
			out = append(out, Detail{Name: show(rawjson.Text(key), maxShownName), Value: show(string(value), maxShownValue), Model: true})
		}
	}
	if n > maxShownArgs {
		out = append(out, Detail{Name: "…", Value: fmt.Sprintf("%d more arguments", n-maxShownArgs)})
	}
	return out
}

// show returns at most limit bytes of s as one line of visible characters.
func show(s string, limit int) string {
	return Visible(text.Excerpt(s, limit))
}

// Visible returns s as one line, with escapes for what cannot be seen or changes how the rest is displayed: control, direction, tag and
// other invisible characters, line ends, and bytes that are not UTF-8.
func Visible(s string) string {
	return text.Escape(s, func(r rune) bool { return !unicode.IsPrint(r) || text.IsBlank(r) })
}
