package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A wish is what a request asks of its run beyond what OpenAI knows: the object `lathe`. It can only
// narrow what the server and the key allow.
type wish struct {
	tools    []string // nil: all that the caller may use
	denied   []string // tools that the run may not use although they are among them
	mode     lathe.ToolUseMode
	failures lathe.FailurePolicy
	limits   lathe.Limits // zero fields say nothing
	session  string
	labels   map[string]string
	detach   bool
}

// Bounds of a wish.
const (
	maxSession = 256 // bytes of a session's id
	maxNamed   = 512 // tools that are named
)

func badWish(param, format string, args ...any) *problem {
	return &problem{Status: http.StatusBadRequest, Code: "invalid_request", Param: param, Message: fmt.Sprintf(format, args...)}
}

// parseWish reads the object, which is JSON that was checked. at is its name in the request.
func parseWish(raw []byte, at string) (*wish, *problem) {
	w := &wish{}
	if raw == nil {
		return w, nil
	}
	return w, eachMember(raw, at, slices.Concat(runWishes, []string{"detach"}), w.member)
}

// eachMember calls f for the members of an object that may have only those of names.
func eachMember(raw []byte, at string, names []string, f func(name, at string, v []byte) *problem) *problem {
	if len(raw) == 0 || raw[0] != '{' {
		return badWish(at, "%s must be an object.", at)
	}
	for key, v := range rawjson.Members(raw) {
		text, err := rawjson.AppendUnquote(nil, key)
		if err != nil {
			return badWish(at, "%s has a member whose name is no text.", at)
		}
		name := string(text)
		if names != nil && !slices.Contains(names, name) {
			return badWish(at, "%s has the member %.64q, which is not known here.%s It may have %s.", at, name, mean(name, names), strings.Join(names, ", "))
		}
		if string(v) == "null" {
			continue
		}
		if p := f(name, at+"."+name, v); p != nil {
			return p
		}
	}
	return nil
}

// take reads v into dst; want says what it should have been.
func take(v []byte, dst any, at, want string) *problem {
	if err := json.Unmarshal(v, dst); err != nil {
		return badWish(at, "%s must be %s.", at, want)
	}
	return nil
}

func (w *wish) member(name, at string, v []byte) *problem {
	switch name {
	case "tools":
		w.tools = []string{}
		p := take(v, &w.tools, at, "an array of names")
		if p == nil && len(w.tools) > maxNamed {
			p = badWish(at, "%s has more than %d names.", at, maxNamed)
		}
		return p
	case "tool_use_mode", "mode": // one setting: the configuration's name and its short form
		before := w.mode
		p := word(v, &w.mode, at, lathe.ModeRelaxed, lathe.ModeEnforced, lathe.ModeDisabled)
		if p == nil && before != "" && before != w.mode {
			p = badWish(at, "mode and tool_use_mode are one setting and have different values here.")
		}
		return p
	case "tool_failure_policy":
		return word(v, &w.failures, at, lathe.FailureFatal, lathe.FailureTolerated)
	case "policy":
		return eachMember(v, at, nil, func(name, at string, v []byte) *problem {
			if string(v) != `"deny"` {
				return badWish(at, "A request can only deny a tool: %s must be \"deny\".", at)
			}
			w.denied = append(w.denied, name)
			return nil
		})
	case "limits":
		rows := limitRows(&w.limits)
		names := make([]string, len(rows))
		for i := range rows {
			names[i] = rows[i].key
		}
		return eachMember(v, at, names, func(name, at string, v []byte) *problem {
			return rows[slices.Index(names, name)].read(v, at)
		})
	case "session":
		p := take(v, &w.session, at, "a text")
		if p == nil && (w.session == "" || len(w.session) > maxSession) {
			p = badWish(at, "%s must be of 1 to %d bytes.", at, maxSession)
		}
		return p
	case "labels":
		return take(v, &w.labels, at, "an object of texts")
	case "detach":
		return take(v, &w.detach, at, "true or false")
	}
	return nil
}

func word[T ~string](v []byte, dst *T, at string, words ...T) *problem {
	var s T
	if p := take(v, &s, at, "a text"); p != nil {
		return p
	}
	if !slices.Contains(words, s) {
		names := make([]string, len(words))
		for i := range words {
			names[i] = string(words[i])
		}
		return badWish(at, "%s must be %s.%s", at, strings.Join(names, ", "), mean(string(s), names))
	}
	*dst = s
	return nil
}

// tools returns the names of tools that the run may use; nil: all there are.
func (c *caller) toolsFor(w *wish, at string) ([]string, *problem) {
	for _, name := range slices.Concat(w.tools, w.denied) {
		if p := c.tool(name, at+".tools"); p != nil {
			if p.Status == http.StatusNotFound {
				p.Status = http.StatusBadRequest // the path is there, the tool is not
			}
			return nil, p
		}
	}
	allow := c.allow()
	if w.tools != nil {
		allow = w.tools // each of which the key may use
	}
	if len(w.denied) > 0 {
		if allow == nil {
			allow = c.toolNames()
		}
		allow = slices.DeleteFunc(slices.Clone(allow), func(name string) bool { return slices.Contains(w.denied, name) })
	}
	return allow, nil
}

// settingsFor narrows the settings of the model.
func (w *wish) settingsFor(m *Model, at string) (lathe.Settings, *problem) {
	s := m.Settings
	if w.mode != "" && w.mode != s.ToolUseMode {
		if s.ToolUseMode == lathe.ModeDisabled || s.ToolUseMode == lathe.ModeEnforced && w.mode == lathe.ModeRelaxed {
			return s, badWish(at+".mode", "The server's mode is %s, and a request cannot loosen it.", s.ToolUseMode)
		}
		s.ToolUseMode = w.mode
	}
	if w.failures != "" && w.failures != s.FailurePolicy {
		if w.failures == lathe.FailureTolerated && m.Settings.ToolUseMode == lathe.ModeEnforced {
			return s, badWish(at+".tool_failure_policy", "The server does not tolerate failed tools, and a request cannot loosen that.")
		}
		s.FailurePolicy = w.failures
	}
	return s, nil
}

// limitsFor narrows the limits of the model by those of the key, and those by what the request asks for.
func (c *caller) limitsFor(w *wish, m *Model, at string) (lathe.Limits, *problem) {
	limits, _ := m.Limits.Narrow(c.key.Limits)
	limits, above := limits.Narrow(w.limits)
	if above != "" {
		return limits, badWish(at+".limits."+above, "%s is above what this server allows.", above)
	}
	return limits, nil
}
