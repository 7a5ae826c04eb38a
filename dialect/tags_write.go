package dialect

import (
	"regexp"
	"strings"

	"github.com/lathe-run/lathe"
)

var tagsForm = form{parser: newTags, call: tagCallText, layout: tagsLayout, clean: cleanTags, explained: true, result: func(r lathe.ToolResult) string {
	r.Content = cleanTurns(r.Content)
	return tagResult(r)
}}

// turnMarks are the marks that templates of models write between turns and around results, except those of the form `<|…|>`, which every
// cleaner splits. The dialect tags is used with any model, so all of them are split in its text.
var turnMarks = strings.Fields(`
	<s> </s> <bos> <eos> [INST] [/INST] <<SYS>> <</SYS>> [SYSTEM_PROMPT] [/SYSTEM_PROMPT]
	[TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS]
	<start_of_turn> <end_of_turn> <|turn> <turn|> <tool_response|> <|tool_response>
	<start_function_response> <end_function_response>
	<tool_response> </tool_response> <tool_call> </tool_call>
	<｜User｜> <｜Assistant｜> <｜begin▁of▁sentence｜> <｜end▁of▁sentence｜>
	<｜tool▁outputs▁begin｜> <｜tool▁outputs▁end｜> <｜tool▁output▁begin｜> <｜tool▁output▁end｜>
	[gMASK] <sop> ]~b] ]~!b[ [e~[ <seed:bos> <seed:eos>
	<SPECIAL_10> <SPECIAL_11> <SPECIAL_12> <extra_id_0> <extra_id_1>
`)

var cleanTurns = newCleaner(func() []string { return turnMarks })

// cleanTags splits the marks of all models in text from outside, and masks the tags of calls and results.
func cleanTags(s string) string { return maskTags(cleanTurns(s)) }

func tagCallText(c lathe.ToolCall, args string) string {
	return `<tool name="` + safeName(c.Name) + `" args>` + args + "</tool>"
}

// tagResult returns `<tool_result name="NAME">…</tool_result>`, with a backslash before the tags of calls and results in the content.
func tagResult(r lathe.ToolResult) string {
	mark := ""
	if r.IsError {
		mark = " error"
	}
	return `<tool_result name="` + safeName(r.Name) + `"` + mark + ">" + maskTags(r.Content) + "</tool_result>"
}

var toolTag = regexp.MustCompile("(?i)</?tool")

// maskTags inserts a backslash before each `<tool` and `</tool`.
func maskTags(s string) string { return toolTag.ReplaceAllString(s, `\$0`) }

// safeName returns a tool's name. A model may have invented the name: bytes that names cannot contain become underscores.
func safeName(name string) string {
	b := []byte(name)
	for i, c := range b {
		if !isNameByte(c) {
			b[i] = '_'
		}
	}
	return string(b)
}
