package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/setting"
)

// requestOptions are what a request asks of its run beyond what OpenAI's wire has: the object `lathe`. They can only narrow
// what the server and the key allow.
type requestOptions struct {
	at       string   // the member of the request that has them; "": the body itself
	tools    []string // nil: all that the caller may use
	denied   []string // tools of these that the run may not use
	mode     lathe.ToolUseMode
	failures lathe.FailurePolicy
	limits   lathe.Limits // zero fields are not set
	session  string
	labels   map[string]string
	detach   bool
	sampling lathe.Sampling // of chat pages
	show     string         // of calls of this server, on wires that have a form for them: showItems or showHidden; "": showItems
}

// Values of the option `show`.
const (
	showItems  = "items"
	showHidden = "hidden"
)

// Bounds of the options.
const (
	maxSession = 256 // bytes of a session's id
	maxNamed   = 512 // tools that are named
)

// noOptions are those of a request without an object `lathe`. They are never changed.
var noOptions = requestOptions{at: "lathe"}

// parseOptions reads the object `lathe` of a request, which is JSON that was checked; nil: it has none. The options must not be
// changed.
func parseOptions(raw []byte) (*requestOptions, *problem) {
	if raw == nil {
		return &noOptions, nil
	}
	o := &requestOptions{at: "lathe"}
	return o, eachMember(raw, o.at, slices.Concat(optionMembers, []string{"detach", "show"}), o.member)
}

// The bounds of what chat pages set of the sampling.
const (
	maxTemperature  = 2
	maxAnswerTokens = 1_000_000
)

// parseUIOptions reads the object `lathe` of a request of a chat page, which may set the sampling, too.
func parseUIOptions(raw []byte) (*requestOptions, *problem) {
	o := &requestOptions{at: "lathe"}
	if raw == nil {
		return o, nil
	}
	return o, eachMember(raw, o.at, slices.Concat(optionMembers, []string{"detach", "show", "temperature", "max_tokens"}), func(name, at string, v []byte) *problem {
		switch name {
		case "temperature":
			p := take(v, &o.sampling.Temperature, at, "a number")
			if t := o.sampling.Temperature; p == nil && (*t < 0 || *t > maxTemperature) {
				p = badRequest(at, "%s is a number from 0 to %d.", at, maxTemperature)
			}
			return p
		case "max_tokens":
			p := take(v, &o.sampling.MaxTokens, at, "a whole number")
			if n := o.sampling.MaxTokens; p == nil && (*n < 1 || *n > maxAnswerTokens) {
				p = badRequest(at, "%s is a whole number from 1 to %d.", at, maxAnswerTokens)
			}
			return p
		}
		return o.member(name, at, v)
	})
}

// param is the path of an option in the request.
func (o *requestOptions) param(name string) string {
	if o.at == "" {
		return name
	}
	return o.at + "." + name
}

// eachMember calls f for the members of an object that may have only those of names.
func eachMember(raw []byte, at string, names []string, f func(name, at string, v []byte) *problem) *problem {
	if len(raw) == 0 || raw[0] != '{' {
		return badRequest(at, "%s must be an object.", at)
	}
	for key, v := range rawjson.Members(raw) {
		text, err := rawjson.AppendUnquote(nil, key)
		if err != nil {
			return badRequest(at, "%s has a member whose name is no text.", at)
		}
		name := string(text)
		if names != nil && !slices.Contains(names, name) {
			return badRequest(at, "%s has the member %.64q, which is not known here.%s It may have %s.", at, name, mean(name, names), strings.Join(names, ", "))
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
		return badRequest(at, "%s must be %s.", at, want)
	}
	return nil
}

func (o *requestOptions) member(name, at string, v []byte) *problem {
	switch name {
	case "tools":
		o.tools = []string{}
		p := take(v, &o.tools, at, "an array of names")
		if p == nil && len(o.tools) > maxNamed {
			p = badRequest(at, "%s has more than %d names.", at, maxNamed)
		}
		return p
	case "tool_use_mode":
		return word(v, &o.mode, at, lathe.ModeRelaxed, lathe.ModeEnforced, lathe.ModeDisabled)
	case "tool_failure_policy":
		return word(v, &o.failures, at, lathe.FailureFatal, lathe.FailureTolerated)
	case "policy":
		return eachMember(v, at, nil, func(name, at string, v []byte) *problem {
			if string(v) != `"deny"` {
				return badRequest(at, "A request can only deny a tool: %s must be \"deny\".", at)
			}
			o.denied = append(o.denied, name)
			return nil
		})
	case "limits":
		return eachMember(v, at, setting.Keys[lathe.Limits]("request"), func(name, at string, v []byte) *problem { return readLimit(&o.limits, name, at, v) })
	case "session":
		p := take(v, &o.session, at, "a text")
		if p == nil && (o.session == "" || len(o.session) > maxSession) {
			p = badRequest(at, "%s must be of 1 to %d bytes.", at, maxSession)
		}
		return p
	case "labels":
		return take(v, &o.labels, at, "an object of texts")
	case "show":
		return word(v, &o.show, at, showItems, showHidden)
	case "detach":
		return take(v, &o.detach, at, "true or false")
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
		return badRequest(at, "%s must be %s.%s", at, strings.Join(names, ", "), mean(string(s), names))
	}
	*dst = s
	return nil
}

// toolsFor returns the names of the tools that the run may use; nil: all.
func (c *access) toolsFor(o *requestOptions) ([]string, *problem) {
	for _, name := range slices.Concat(o.tools, o.denied) {
		if p := c.tool(name, o.param("tools")); p != nil {
			if p.Status == http.StatusNotFound {
				p.Status = http.StatusBadRequest // the path is there, the tool is not
			}
			return nil, p
		}
	}
	allow := c.allow()
	if o.tools != nil {
		allow = o.tools // each of which the key may use
	}
	if len(o.denied) > 0 {
		if allow == nil {
			allow = c.toolNames()
		}
		allow = slices.DeleteFunc(slices.Clone(allow), func(name string) bool { return slices.Contains(o.denied, name) })
	}
	return allow, nil
}

// settingsFor narrows the settings of the model.
func (o *requestOptions) settingsFor(m *Model) (lathe.Settings, *problem) {
	s := m.Settings
	if o.mode != "" && o.mode != s.ToolUseMode {
		if s.ToolUseMode == lathe.ModeDisabled || s.ToolUseMode == lathe.ModeEnforced && o.mode == lathe.ModeRelaxed {
			return s, badRequest(o.param("tool_use_mode"), "The server's tool_use_mode is %s, and a request cannot loosen it.", s.ToolUseMode)
		}
		s.ToolUseMode = o.mode
	}
	if o.failures != "" && o.failures != s.FailurePolicy {
		if o.failures == lathe.FailureTolerated && m.Settings.ToolUseMode == lathe.ModeEnforced {
			return s, badRequest(o.param("tool_failure_policy"), "The server does not tolerate failed tools, and a request cannot loosen that.")
		}
		s.FailurePolicy = o.failures
	}
	return s, nil
}

// limitsFor narrows the limits of the model by those of the key, and those by what the request asks for.
func (c *access) limitsFor(o *requestOptions, m *Model) (lathe.Limits, *problem) {
	limits, _ := m.Limits.Narrow(c.key.Limits)
	limits, above := limits.Narrow(o.limits)
	if above != "" {
		return limits, badRequest(o.param("limits."+above), "%s is above what this server allows.", above)
	}
	return limits, nil
}
