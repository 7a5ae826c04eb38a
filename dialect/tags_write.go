package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

var tagsForm = form{call: appendTagCall, layout: tagsLayout, clean: cleanTags, explained: true, result: func(dst []byte, r lathe.ToolResult) []byte {
	r.Content = cleanTurns(r.Content)
	return appendTagResult(dst, r)
}}

// turnMarks are the marks that templates of models write between turns and around results, except those of the form `<|…|>`, which every
// cleaner splits. The dialect tags is used with any model, so all of them are split in its text.
var turnMarks = []string{
	"<s>", "</s>", "<bos>", "<eos>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
	"[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
	"<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>", "<tool_response|>", "<|tool_response>",
	"<start_function_response>", "<end_function_response>",
	"<tool_response>", "</tool_response>", "<tool_call>", "</tool_call>",
	"<｜User｜>", "<｜Assistant｜>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>",
	"<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>",
	"[gMASK]", "<sop>", "]~b]", "]~!b[", "[e~[", "<seed:bos>", "<seed:eos>",
	"<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<extra_id_0>", "<extra_id_1>",
}

var cleanTurns = newCleaner(func() []string { return turnMarks })

// cleanTags splits the marks of all models in text from outside, and masks the tags of calls and results.
func cleanTags(s string) string { return maskTags(cleanTurns(s)) }

func appendTagCall(dst []byte, c lathe.ToolCall, args string) []byte {
	dst = append(dst, `<tool name="`...)
	dst = appendName(dst, c.Name)
	dst = append(dst, `" args>`...)
	dst = append(dst, args...)
	return append(dst, "</tool>"...)
}

// appendTagResult appends `<tool_result name="NAME">…</tool_result>`, with a backslash before the tags of calls and results in the
// content.
func appendTagResult(dst []byte, r lathe.ToolResult) []byte {
	dst = append(dst, `<tool_result name="`...)
	dst = appendName(dst, r.Name)
	dst = append(dst, '"')
	if r.IsError {
		dst = append(dst, " error"...)
	}
	dst = append(dst, '>')
	dst = append(dst, maskTags(r.Content)...)
	return append(dst, "</tool_result>"...)
}

// maskTags inserts a backslash before each `<tool` and `</tool`.
func maskTags(s string) string {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '<' {
			continue
		}
		rest := strings.TrimPrefix(s[i+1:min(len(s), i+len("</tool"))], "/")
		if len(rest) >= len("tool") && strings.EqualFold(rest[:len("tool")], "tool") {
			b.WriteString(s[from:i])
			b.WriteByte('\\')
			from = i
		}
	}
	if from == 0 && b.Len() == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// appendName appends a tool's name. A model may have invented the name: bytes that names cannot contain become underscores.
func appendName(dst []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; isNameByte(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '_')
		}
	}
	return dst
}
