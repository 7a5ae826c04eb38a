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

// requestOptions are the options of a run that OpenAI's wire does not have: the object `lathe` of a request. They can only
// narrow what the server and the key allow.
type requestOptions struct {
	at       string   // the path of the object in the request; "": the options are members of the body itself
	tools    []string // names of tools that the run may use; nil: all that the caller may use
	denied   []string // names of tools that the run may not use
	mode     lathe.ToolUseMode
	failures lathe.FailurePolicy
	limits   lathe.Limits // a zero field is not set
	session  string
	labels   map[string]string
	detach   bool
	sampling lathe.Sampling // set only by chat pages
	show     string         // whether the response shows calls of this server, on wires that have items for them: showItems or showHidden; "": showItems
}

// Values of the option `show`.
const (
	showItems  = "items"
	showHidden = "hidden"
)

// Limits of the options.
const (
	maxSession = 256 // bytes in the id of a session
	maxNamed   = 512 // names of tools
)

// noOptions are the options of a request without an object `lathe`. They must not be changed.
var noOptions = requestOptions{at: "lathe"}

// parseOptions reads the object `lathe` of a request, which was checked to be JSON; nil: the request has none. The caller
// must not change the result.
func parseOptions(raw []byte) (*requestOptions, *problem) {
	if raw == nil {
		return &noOptions, nil
	}
	o := &requestOptions{at: "lathe"}
	return o, eachMember(raw, o.at, slices.Concat(optionMembers, []string{"detach", "show"}), o.member)
}

// Limits of the sampling that chat pages may set.
const (
	maxTemperature  = 2
	maxAnswerTokens = 1_000_000
)

// parseUIOptions reads the object `lathe` of a request of a chat page, which may also set temperature and max_tokens.
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

func (o *requestOptions) param(name string) string {
	return strings.TrimPrefix(o.at+"."+name, ".")
}

// eachMember calls f for each member of a JSON object whose value is not null. A member that is not in names is an error;
// if names is nil, all are allowed. at is the path of the object.
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

// acceptMember is a callback of eachMember, for objects whose members are only checked.
func acceptMember(string, string, []byte) *problem { return nil }

// take decodes the JSON v into dst. at is the path of v and want a description of its type, for the error.
func take(v []byte, dst any, at, want string) *problem {
	if err := json.Unmarshal(v, dst); err != nil {
		return badRequest(at, "%s must be %s.", at, want)
	}
	return nil
}

// member reads the option name; it is the callback of eachMember.
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

// word decodes a JSON string into dst. It must be one of words.
func word[T ~string](v []byte, dst *T, at string, words ...T) *problem {
	var s T
	if p := take(v, &s, at, "a text"); p != nil {
		return p
	}
	if !slices.Contains(words, s) {
		known := names(words)
		return badRequest(at, "%s must be %s.%s", at, strings.Join(known, ", "), mean(string(s), known))
	}
	*dst = s
	return nil
}

func names[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// toolsFor returns the names of the tools that the run may use; nil: all.
func (c *access) toolsFor(o *requestOptions) ([]string, *problem) {
	for _, name := range slices.Concat(o.tools, o.denied) {
		if p := c.tool(name, o.param("tools")); p != nil {
			if p.Status == http.StatusNotFound {
				p.Status = http.StatusBadRequest // 404 would mean that the path of the request does not exist
			}
			return nil, p
		}
	}
	allow := c.allow()
	if o.tools != nil {
		allow = o.tools // the loop above has checked that the key may use them
	}
	if len(o.denied) > 0 {
		if allow == nil {
			allow = c.toolNames()
		}
		allow = slices.DeleteFunc(slices.Clone(allow), func(name string) bool { return slices.Contains(o.denied, name) })
	}
	return allow, nil
}

// settingsFor returns the settings of the model, narrowed by the options. An option that would loosen them is an error.
func (o *requestOptions) settingsFor(m *Model) (lathe.Settings, *problem) {
	s := m.Settings
	if o.mode != "" && o.mode != s.ToolUseMode {
		if s.ToolUseMode == lathe.ModeDisabled || s.ToolUseMode == lathe.ModeEnforced && o.mode == lathe.ModeRelaxed {
			return s, badRequest(o.param("tool_use_mode"), "The gateway's tool_use_mode is %s, and a request cannot loosen it.", s.ToolUseMode)
		}
		s.ToolUseMode = o.mode
	}
	if o.failures != "" && o.failures != s.FailurePolicy {
		if o.failures == lathe.FailureTolerated && m.Settings.ToolUseMode == lathe.ModeEnforced {
			return s, badRequest(o.param("tool_failure_policy"), "The gateway does not tolerate failed tools, and a request cannot loosen that.")
		}
		s.FailurePolicy = o.failures
	}
	return s, nil
}

// limitsFor returns the limits of the model, narrowed by those of the key and by those of the request. A limit of the
// request above them is an error.
func (c *access) limitsFor(o *requestOptions, m *Model) (lathe.Limits, *problem) {
	limits, _ := m.Limits.Narrow(c.key.Limits)
	limits, above := limits.Narrow(o.limits)
	if above != "" {
		return limits, badRequest(o.param("limits."+above), "%s is above what this gateway allows.", above)
	}
	return limits, nil
}
