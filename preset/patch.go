package preset

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/transform"
)

// A Patch is a set of settings for a model. A nil field is not set and leaves the existing value; a list that is empty but not nil clears
// the existing one. The JSON names are keys in the entry of a model (section models.NAME) of the configuration, which docs/config.md
// explains.
//
// The first group of fields are settings of runs, the second settings of the model, the third lists and objects that [Merge] joins.
type Patch struct {
	ToolUseMode               *lathe.ToolUseMode   `json:"tool_use_mode,omitempty" run:"true"`
	ToolFailurePolicy         *lathe.FailurePolicy `json:"tool_failure_policy,omitempty" run:"true"`
	ToolChoice                *string              `json:"tool_choice,omitempty" run:"true"` // auto, none, required, function:NAME
	ParallelToolCalls         *bool                `json:"parallel_tool_calls,omitempty" run:"true"`
	FixEmptyFinal             *bool                `json:"fix_empty_final,omitempty" run:"true"`
	FixEmptyFinalUserText     *string              `json:"fix_empty_final_user_text,omitempty" run:"true"`
	FixEmptyFinalDisableTools *bool                `json:"fix_empty_final_disable_tools,omitempty" run:"true"`
	FallbackRetryCount        *int                 `json:"fallback_retry_count,omitempty" run:"true"`

	Label               *string `json:"label,omitempty"`                 // name of the provider in events and metrics
	BaseURL             *string `json:"base_url,omitempty"`              // of the server, with its version
	Wire                *string `json:"wire,omitempty"`                  // openai, responses, anthropic, gemini
	Dialect             *string `json:"dialect,omitempty"`               // native, or a name of package dialect
	Thinking            *string `json:"thinking,omitempty"`              // marked, starts_open
	BareCalls           *bool   `json:"bare_calls,omitempty"`            // a message that is one JSON object may be a call
	ReasoningField      *string `json:"reasoning_field,omitempty"`       // member in which reasoning is sent back
	IncludeUsage        *bool   `json:"include_usage,omitempty"`         // request token counts in streams
	MaxCompletionTokens *bool   `json:"max_completion_tokens,omitempty"` // send the token limit under this name
	SupportsTools       *bool   `json:"supports_tools,omitempty"`        // false: runs with the model use no tools
	SupportsParallel    *bool   `json:"supports_parallel,omitempty"`     // false: the model makes one call in a turn

	ToolAllowlist        []string        `json:"tool_allowlist,omitzero"`
	ToolDenylist         []string        `json:"tool_denylist,omitzero"`
	MessageTransforms    []string        `json:"message_transforms,omitzero"`
	ToolTransforms       []string        `json:"tool_transforms,omitzero"`
	ResponseTransforms   []string        `json:"response_transforms,omitzero"`
	ToolCallTransforms   []string        `json:"tool_call_transforms,omitzero"`
	ToolResultTransforms []string        `json:"tool_result_transforms,omitzero"`
	RequestOverrides     json.RawMessage `json:"request_overrides,omitzero"` // an object
}

// keys returns the keys of a patch, in the order of the fields.
func keys() []string {
	t := reflect.TypeFor[Patch]()
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return keys
}

// reserved are the members of a request that request_overrides cannot replace.
var reserved = []string{"model", "messages", "tools", "tool_choice", "response_format", "stream"}

// Check returns an error that begins with the name of the first invalid field, or nil. It checks tool_use_mode, tool_failure_policy,
// tool_choice, wire, fallback_retry_count (which must not be negative), the lists of transforms, and request_overrides, as [CheckOverrides]
// does. It does not check the other fields. The error has no code.
func (p *Patch) Check() error {
	if m := p.ToolUseMode; m != nil && !slices.Contains([]lathe.ToolUseMode{lathe.ModeRelaxed, lathe.ModeEnforced, lathe.ModeDisabled}, *m) {
		return fmt.Errorf("tool_use_mode: unknown value %.40q", *m)
	}
	if f := p.ToolFailurePolicy; f != nil && *f != lathe.FailureFatal && *f != lathe.FailureTolerated {
		return fmt.Errorf("tool_failure_policy: unknown value %.40q", *f)
	}
	if c := p.ToolChoice; c != nil && !slices.Contains([]string{"auto", "none", "required"}, *c) && !strings.HasPrefix(*c, "function:") {
		return fmt.Errorf("tool_choice: unknown value %.40q", *c)
	}
	if w := p.Wire; w != nil && !slices.Contains([]string{"openai", "responses", "anthropic", "gemini"}, *w) {
		return fmt.Errorf("wire: unknown value %.40q", *w)
	}
	if n := p.FallbackRetryCount; n != nil && *n < 0 {
		return fmt.Errorf("fallback_retry_count: %d is below 0", *n)
	}
	list := p.Transforms()
	for _, kind := range transform.Kinds() {
		for _, name := range list.Of(kind) {
			if _, err := transform.Check(kind, name); err != nil {
				return fmt.Errorf("%s_transforms: %w", kind, err)
			}
		}
	}
	return CheckOverrides(p.RequestOverrides)
}

// CheckOverrides returns an error if raw, a value of request_overrides, is not a JSON object, or if it has a member that only Lathe may
// set, such as model or messages, in any letter case. An empty raw is valid.
func CheckOverrides(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if err := rawjson.Check(raw, rawjson.Limits{}); err != nil {
		return fmt.Errorf("request_overrides: %w", err)
	}
	if !rawjson.IsObject(raw, rawjson.Limits{}) {
		return fmt.Errorf("request_overrides: wants an object")
	}
	for key := range rawjson.Members(raw) {
		name, err := rawjson.AppendUnquote(nil, key)
		if err != nil {
			return fmt.Errorf("request_overrides: %w", err)
		}
		// Some servers ignore the case of member names.
		i := slices.IndexFunc(reserved, func(s string) bool { return strings.EqualFold(s, string(name)) })
		if i >= 0 {
			return fmt.Errorf("request_overrides: %s cannot be replaced (nor %s)", reserved[i], strings.Join(slices.Delete(slices.Clone(reserved), i, i+1), ", "))
		}
	}
	return nil
}

// Transforms returns the transforms that p lists.
func (p *Patch) Transforms() transform.List {
	return transform.List{Message: p.MessageTransforms, Tool: p.ToolTransforms, Response: p.ResponseTransforms,
		ToolCall: p.ToolCallTransforms, ToolResult: p.ToolResultTransforms}
}

// Overrides returns copies of the members of request_overrides, in order; nil: none.
func (p *Patch) Overrides() []lathe.Member {
	var out []lathe.Member
	for key, value := range rawjson.Members(p.RequestOverrides) {
		name, err := rawjson.AppendUnquote(nil, key)
		if err == nil {
			out = append(out, lathe.Member{Name: string(name), Value: slices.Clone(json.RawMessage(value))})
		}
	}
	return out
}

// AllowsTool reports whether a tool with exactly this name may be offered: ToolAllowlist has it or is nil, and ToolDenylist, which takes
// precedence, does not have it.
func (p *Patch) AllowsTool(name string) bool {
	return (p.ToolAllowlist == nil || slices.Contains(p.ToolAllowlist, name)) && !slices.Contains(p.ToolDenylist, name)
}

// An Entry is a key that a patch sets, with its value.
type Entry struct {
	Key   string // of the configuration, such as "tool_choice"
	Value string // as the text of a flag: a list with commas, an object as JSON
	Run   bool   // a setting of runs, otherwise of the model
}

// Entries returns the keys that p sets, in the order of the fields.
func (p *Patch) Entries() []Entry {
	var out []Entry
	v := reflect.ValueOf(p).Elem()
	for i, key := range keys() {
		f := v.Field(i)
		if f.IsNil() {
			continue
		}
		out = append(out, Entry{Key: key, Value: valueText(f), Run: v.Type().Field(i).Tag.Get("run") != ""})
	}
	return out
}

// Sets reports whether p sets the field with this configuration key, such as "tool_choice". It returns false for an unknown key.
func (p *Patch) Sets(key string) bool {
	i := slices.Index(keys(), key)
	return i >= 0 && !reflect.ValueOf(p).Elem().Field(i).IsNil()
}

func valueText(f reflect.Value) string {
	switch v := f.Interface().(type) {
	case []string:
		return strings.Join(v, ",")
	case json.RawMessage:
		return string(v)
	}
	switch e := f.Elem(); e.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(e.Bool())
	case reflect.Int:
		return strconv.FormatInt(e.Int(), 10)
	default:
		return e.String()
	}
}
