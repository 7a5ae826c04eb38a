package transform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// A Kind is what a transform changes: messages, tool definitions, answers, calls or results.
type Kind string

// The kinds of transforms.
const (
	Message    Kind = "message"     // a message of a request
	Tool       Kind = "tool"        // a tool definition of a request
	Response   Kind = "response"    // an answer
	ToolCall   Kind = "tool_call"   // a call, in an answer and in the messages of a request
	ToolResult Kind = "tool_result" // the text of a result in a request
)

// Kinds returns all kinds, in the order in which they apply to a request and its answer.
func Kinds() []Kind { return []Kind{Message, Tool, Response, ToolCall, ToolResult} }

// An Info describes a transform.
type Info struct {
	Kind   Kind
	Name   string
	Effect string // one sentence
	For    string // the servers or models that need it
	// Always says that the transform is applied to every answer, even if no configuration lists it.
	Always bool
}

// A row is the description and the implementation of one transform. A transform without a function either acts on the stream of an answer,
// where [Chain] finds it by its name, or is done by the codec.
type row struct {
	Info
	message func(lathe.Message) lathe.Message
	tool    func(*lathe.ToolSpec) *lathe.ToolSpec
	result  func(string) string
}

// The names of the transforms that act on more than a single message, definition or result.
const (
	tagCalls   = "assistant_content_tool_call_tags_to_tool_calls"
	blankArgs  = "assistant_tool_calls_arguments_blank_to_empty_object"
	nineLetter = "tool_call_ids_nine_alphanumeric"
)

// table lists the transforms. A new transform is a row in it and a function.
var table = []row{
	{Info: Info{Kind: Message, Name: "assistant_tool_calls_content_null_if_blank",
		Effect: "Sends `content: null` for an assistant message that has calls and only white space as text.",
		For:    "servers that refuse an empty text"}, message: nullBlankContent},
	{Info: Info{Kind: Message, Name: "assistant_tool_calls_reasoning_content_empty_if_missing",
		Effect: "Adds `reasoning_content: \"\"` to an assistant message with calls that would be sent without it.",
		For:    "DeepSeek's thinking mode, which refuses a history without it"}, message: addReasoningContent},
	{Info: Info{Kind: Message, Name: "assistant_tool_calls_signature_skip_validator_if_missing",
		Effect: "Adds `signature: \"skip_thought_signature_validator\"` to each call that has none.",
		For:    "Gemini behind OpenRouter, with a history from elsewhere"}, message: addSignature},
	{Info: Info{Kind: Message, Name: "assistant_tool_calls_extra_content_skip_validator_if_missing",
		Effect: "Adds the same as `extra_content.google.thought_signature` to the first call of a message in which none has one.",
		For:    "Gemini behind Google's own compatible endpoint"}, message: addExtraContent},
	{Info: Info{Kind: Tool, Name: "openai_tools_strip_function_descriptions",
		Effect: "Leaves out the description of each tool; those of its parameters stay.",
		For:    "small contexts"}, tool: stripDescription},
	{Info: Info{Kind: Response, Name: "assistant_function_call_to_tool_calls",
		Effect: "Reads the old `function_call` as one call with the id `call_1`.",
		For:    "old servers", Always: true}},
	{Info: Info{Kind: Response, Name: "assistant_tool_calls_object_to_array",
		Effect: "Reads `tool_calls` that is one object as a list of it.",
		For:    "sloppy servers", Always: true}},
	{Info: Info{Kind: Response, Name: "assistant_tool_calls_arguments_json_string_if_hash",
		Effect: "Takes arguments that are an object or a list as their text, byte for byte.",
		For:    "servers that send objects", Always: true}},
	{Info: Info{Kind: Response, Name: tagCalls,
		Effect: "Takes `<tool_call>…</tool_call>` in the text for a call, as long as the answer has no calls of its own.",
		For:    "models of the Qwen and GLM families behind a server that does not read their calls"}},
	{Info: Info{Kind: ToolCall, Name: blankArgs,
		Effect: "Makes `{}` of arguments that are nothing but white space.",
		For:    "calls without parameters, of many models"}},
	{Info: Info{Kind: ToolCall, Name: nineLetter,
		Effect: "Sends ids of nine letters and digits in place of others, and gives the first ids back where the server names them.",
		For:    "Mistral, which refuses any other id"}},
	{Info: Info{Kind: ToolResult, Name: "tool_result_compact_envelope",
		Effect: "Leaves empty `warnings`, `errors` and `data` out of a result envelope.",
		For:    "small contexts"}, result: compactEnvelope},
}

// All returns the descriptions of all transforms, grouped by kind. The slice belongs to the caller.
func All() []Info {
	out := make([]Info, len(table))
	for i := range table {
		out[i] = table[i].Info
	}
	return out
}

// names returns the names of the transforms of one kind.
func names(kind Kind) []string {
	var names []string
	for i := range table {
		if table[i].Kind == kind {
			names = append(names, table[i].Name)
		}
	}
	return names
}

// Check returns the canonical form of a transform's name: lower case, with _ in place of -. If kind has no transform of this name, the
// error suggests the nearest name, or the kind that has it.
func Check(kind Kind, name string) (string, error) {
	r, err := find(kind, name)
	if err != nil {
		return "", err
	}
	return r.Name, nil
}

func find(kind Kind, name string) (*row, error) {
	if !slices.Contains(Kinds(), kind) {
		return nil, fmt.Errorf("no transforms of kind %.40q", kind)
	}
	want := strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for i := range table {
		r := &table[i]
		switch {
		case r.Name == want && r.Kind == kind:
			return r, nil
		case r.Name == want:
			return nil, fmt.Errorf("%s is a %s transform, not a %s transform", r.Name, r.Kind, kind)
		}
	}
	if best := text.Nearest(want, names(kind)); best != "" {
		return nil, fmt.Errorf("no %s transform %.80q, did you mean %s?", kind, name, best)
	}
	return nil, fmt.Errorf("no %s transform %.80q (%s)", kind, name, strings.Join(names(kind), ", "))
}
