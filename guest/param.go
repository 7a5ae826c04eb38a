package guest

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/setting"
)

// params are the parameters of a session. Pointers are nil if the guest has not set them.
type params struct {
	model              string
	arenaPtr, arenaLen uint32
	limits             map[string]int64 // by Row.Key; at most Row.Guest
	timeout            time.Duration
	strict             *bool
	choice             lathe.ToolChoice
	parallel           *bool
	responseFormat     json.RawMessage
	forward            map[string]json.RawMessage // parameters that are passed to the model
}

// The names of the parameters that the package interprets.
const (
	keyModel      = "model"
	keyArenaPtr   = "tool_arena_ptr"
	keyArenaLen   = "tool_arena_len"
	keyCalls      = "max_total_tool_calls"
	keyCallsAlias = "max_tool_calls"
	keyRounds     = "max_iterations"
	keyTimeout    = "timeout_ms"
	keyStrict     = "strict_unknown_tool"
	keyChoice     = "tool_choice"
	keyParallel   = "parallel_tool_calls"
	keyFormat     = "response_format"
	mcpPrefix     = "mcp."
	mcpTask       = "mcp.task_"
)

// structural are names of members of a model request that a guest may set without effect.
var structural = map[string]bool{"messages": true, "tools": true, "backend": true, "stream": true, "stream_options": true, "n": true}

// readParam parses {"key":…,"value":…}. A missing value is null. ok is false if key is missing or empty.
func readParam(arg []byte) (key string, value json.RawMessage, ok bool) {
	if !rawjson.IsObject(arg, rawjson.Limits{}) {
		return "", nil, false
	}
	if value = bytes.Clone(rawjson.At(arg, "value")); value == nil {
		value = json.RawMessage("null")
	}
	key = rawjson.TextAt(arg, "key")
	return key, value, key != ""
}

// set implements SET_PARAM of a session and returns an error number. null removes a parameter. A number above its cap is set to the cap.
func (s *session) set(key string, value json.RawMessage, policy *MCPPolicy) int32 {
	if strings.HasPrefix(key, mcpPrefix) {
		return s.setMCP(key, value, policy)
	}
	if key == keyCallsAlias {
		key = keyCalls
	}
	p := &s.params
	if r := setting.Find[lathe.Limits](key); r != nil && r.Guest > 0 {
		return p.setLimit(r, value)
	}
	null := string(value) == "null"
	switch key {
	case keyModel:
		name := rawjson.Text(value)
		if name == "" && !null {
			return -einval
		}
		p.model = name
	case keyArenaPtr:
		return setWord(&p.arenaPtr, value)
	case keyArenaLen:
		return setWord(&p.arenaLen, value)
	case keyTimeout:
		return p.setTimeout(value)
	case keyStrict:
		return setBool(&p.strict, value)
	case keyParallel:
		return setBool(&p.parallel, value)
	case keyChoice:
		choice, ok := readChoice(value)
		if !ok {
			return -einval
		}
		p.choice = choice
	case keyFormat:
		p.responseFormat = nil
		if !null {
			p.responseFormat = value
		}
	default:
		p.setForward(key, value)
	}
	return 0
}

// setForward sets a parameter that is passed to the model.
func (p *params) setForward(key string, value json.RawMessage) {
	if structural[strings.ToLower(key)] || strings.EqualFold(key, keyModel) { // some servers ignore the case
		return
	}
	if string(value) == "null" {
		delete(p.forward, key)
		return
	}
	p.forward[key] = value
}

func (s *session) setMCP(key string, value json.RawMessage, policy *MCPPolicy) int32 {
	if strings.HasPrefix(key, mcpTask) {
		return -eacces
	}
	switch key {
	case "mcp.enabled":
		var on *bool
		if rc := setBool(&on, value); rc != 0 || on == nil {
			return -einval
		}
		if *on && !policy.Enabled {
			return -eacces
		}
		s.mcp.enabled = *on
	case "mcp.server_ids":
		ids, ok := stringList(value)
		if !ok {
			return -einval
		}
		for _, id := range ids {
			if !policy.Enabled || !slices.Contains(policy.Servers, id) {
				return -eacces
			}
		}
		s.mcp.servers = ids
	case "mcp.tool_allowlist", "mcp.tool_denylist":
		list, ok := stringList(value)
		if !ok {
			return -einval
		}
		if key == "mcp.tool_allowlist" {
			s.mcp.lists.allow = list
		} else {
			s.mcp.lists.deny = list
		}
	default:
		return -einval
	}
	return 0
}

// The functions below whose names begin with set parse a value, store it, and return 0 or -EINVAL. null removes the value.

// setWord parses a pointer or length: an unsigned number, or the negative one with the same bits. null is 0.
func setWord(to *uint32, value []byte) int32 {
	if string(value) == "null" {
		*to = 0
		return 0
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < math.MinInt32 || n > math.MaxUint32 {
		return -einval
	}
	*to = uint32(n)
	return 0
}

func (p *params) setTimeout(value []byte) int32 {
	if string(value) == "null" {
		p.timeout = 0
		return 0
	}
	ms, rc := number(value, math.MaxInt32)
	if rc == 0 {
		p.timeout = max(time.Duration(ms)*time.Millisecond, 1) // 0 ms is a timeout that has passed, not none
	}
	return rc
}

func (p *params) setLimit(r *setting.Row, value []byte) int32 {
	if string(value) == "null" {
		delete(p.limits, r.Key)
		return 0
	}
	n, rc := number(value, r.Guest)
	if rc != 0 {
		return rc
	}
	p.limits[r.Key] = n
	return 0
}

// number parses an unsigned number, and returns most if it is greater.
func number(value []byte, most int64) (n int64, rc int32) {
	v, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return 0, -einval
	}
	return int64(min(v, uint64(most))), 0
}

func setBool(to **bool, value []byte) int32 {
	switch string(value) {
	case "null":
		*to = nil
	case "true", "false":
		*to = new(string(value) == "true")
	default:
		return -einval
	}
	return 0
}

// readChoice parses auto, none, required, or {"type":"function","function":{"name":…}}. null is the zero ToolChoice.
func readChoice(value []byte) (c lathe.ToolChoice, ok bool) {
	switch value[0] {
	case 'n':
		return c, string(value) == "null"
	case '"':
		c.Mode = rawjson.Text(value)
		return c, c.Mode == lathe.ChoiceAuto || c.Mode == lathe.ChoiceNone || c.Mode == lathe.ChoiceRequired
	case '{':
		c.Mode, c.Name = lathe.ChoiceFunction, rawjson.TextAt(value, "function", "name")
		return c, c.Name != ""
	}
	return c, false
}

// overrides returns the parameters that are passed to the model, sorted by name.
func (p *params) overrides() []lathe.Member {
	var out []lathe.Member
	for _, name := range slices.Sorted(maps.Keys(p.forward)) {
		out = append(out, lathe.Member{Name: name, Value: p.forward[name]})
	}
	return out
}
