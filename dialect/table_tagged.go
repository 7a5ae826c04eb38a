package dialect

import "strings"

// taggedDialects are the dialects whose calls are not JSON: tags around unquoted values, the brace syntax of Gemma, and the syntax of
// Python.
var taggedDialects = []*Dialect{
	{
		name:   "qwen3-coder",
		models: strings.Fields("qwen3-coder qwen3.5 qwen3.6 qwen3.8 nemotron-3 nemotron3 step-3.5 mimo-v2"),
		marks:  []string{"<tool_call>\n<function=", "<tool_call><function="},
		form:   qwenGrammar.form(toolResponseText),
	},
	{
		name:   "seed-oss",
		models: strings.Fields("seed-oss seed_oss"),
		marks:  seedGrammar.wrap,
		form:   seedGrammar.form(nil),
	},
	{
		name:   "glm",
		models: strings.Fields("glm- longcat hunyuan hy3"),
		marks:  glmGrammar.wrap,
		form:   glmGrammar.form(toolResponseText),
	},
	{
		name:   "laguna",
		models: []string{"laguna"},
		form:   glmGrammar.form(toolResponseText),
	},
	{
		name:   "minimax-m2",
		models: []string{"minimax-m2"},
		marks:  minimaxGrammar.wrap[:1], // the second opening selects apriel
		form:   minimaxGrammar.form(nil),
	},
	{
		name:   "deepseek-dsml",
		models: strings.Fields("deepseek-v3.2 deepseek-v4"),
		marks:  dsmlGrammar.wrap,
		form:   dsmlGrammar.form(nil),
	},
	{
		name:   "gemma4",
		models: strings.Fields("gemma-4 gemma4"),
		marks:  []string{"<|tool_call>"},
		form:   cleanForm(gemma4.parser, gemma4.callLayout, gemma4.call, nil, append(gemma4.marks.list, "<|turn>", "<tool_response|>")),
	},
	{
		name:   "functiongemma",
		models: strings.Fields("functiongemma function-gemma"),
		marks:  []string{"<start_function_call>"},
		form:   cleanForm(functionGemma.parser, functionGemma.callLayout, functionGemma.call, functionGemma.response, append(functionGemma.marks.list, "<start_of_turn>")),
	},
	{
		name:   "pythonic",
		models: strings.Fields("llama-4 llama4"),
		form:   cleanForm(llamaPython.parser, llamaPython.callLayout, llamaPython.call, nil, llamaPython.marks.list),
	},
	{
		name:   "lfm2",
		models: []string{"lfm2"},
		marks:  []string{"<|tool_call_start|>"},
		form:   cleanForm(lfmPython.parser, lfmPython.callLayout, lfmPython.call, nil, lfmPython.marks.list),
	},
	{
		name:   "olmo3",
		models: strings.Fields("olmo-3 olmo3"),
		marks:  []string{"<function_calls>"},
		form:   cleanForm(olmoPython.parser, olmoPython.callLayout, olmoPython.call, nil, olmoPython.marks.list),
	},
	{
		name:   "glimmer",
		models: []string{"glimmer"},
		marks:  []string{"<atem:function_calls>", " to=self<|message|>", " to=user<|message|>"},
		form:   glimmerGrammar.form(nil),
	},
}

var gemma4 = newGemmaForm(gemmaForm{
	open: "<|tool_call>", close: "<tool_call|>", quote: `<|"|>`,
	drops: []string{"<turn|>", "<|tool_response>"},
	think: thinkMarks{"<|channel>thought\n", "<channel|>"}, bareThink: "<|channel>",
})

var functionGemma = newGemmaForm(gemmaForm{
	open: "<start_function_call>", close: "<end_function_call>", quote: "<escape>",
	drops: []string{"<end_of_turn>", "<start_function_response>", "<end_function_response>"},
	think: plainThink,
})

var llamaPython = newPythonicForm(pythonicForm{
	bare:  true,
	drops: []string{"<|python_start|>", "<|python_end|>", "<|eot|>", "<|eom|>", "<|eot_id|>", "<|eom_id|>"},
})

var lfmPython = newPythonicForm(pythonicForm{
	open: "<|tool_call_start|>", close: "<|tool_call_end|>",
	bare:  true,
	drops: []string{"<|im_end|>"},
})

var olmoPython = newPythonicForm(pythonicForm{
	open: "<function_calls>", close: "</function_calls>",
	drops: []string{"<|im_end|>", "<|endoftext|>"},
})

// toolResponse are the tags that [toolResponseText] writes.
var toolResponse = []string{"<tool_response>", "</tool_response>"}

var qwenGrammar = newGrammar(grammar{
	wrap: []string{"<tool_call>"}, wrapClose: []string{"</tool_call>"},
	call: []string{"<function="}, callClose: []string{"</function>"},
	param: []string{"<parameter="}, paramClose: []string{"</parameter>"},
	newline: true, python: true, json: true,
	drops:    []string{"<|im_end|>", "<|endoftext|>"},
	reserved: toolResponse,
	layout: layout{name: "<tool_call>\n<function=", params: ">\n", key: "<parameter=", value: ">\n", valueEnd: "\n</parameter>\n",
		end: "</function>\n</tool_call>"},
})

var seedGrammar = newGrammar(grammar{
	wrap: []string{"<seed:tool_call>"}, wrapClose: []string{"</seed:tool_call>"},
	call: []string{"<function="}, callClose: []string{"</function>"},
	param: []string{"<parameter="}, paramClose: []string{"</parameter>"},
	newline: true, paired: true, python: true, json: true,
	think:    thinkMarks{"<seed:think>", "</seed:think>"},
	drops:    []string{"<seed:eos>"},
	reserved: []string{"<seed:bos>"},
	layout: layout{name: "<seed:tool_call>\n<function=", params: ">\n", key: "<parameter=", value: ">", valueEnd: "</parameter>\n",
		end: "</function>\n</seed:tool_call>"},
})

// LongCat writes the same format with tags of its own. Hunyuan adds a tag after the name and tags around all calls.
var glmGrammar = newGrammar(grammar{
	wrap:      []string{"<tool_call>", "<longcat_tool_call>", "<tool_calls><tool_call>", "<tool_calls>\n<tool_call>"},
	wrapClose: []string{"</tool_call>", "</longcat_tool_call>", "</tool_call></tool_calls>", "</tool_call>\n</tool_calls>"},
	nameEnd:   []string{"<tool_sep>"},
	param:     []string{"<arg_key>", "<longcat_arg_key>"}, keyClose: []string{"</arg_key>", "</longcat_arg_key>"},
	valueTag: []string{"<arg_value>", "<longcat_arg_value>"}, paramClose: []string{"</arg_value>", "</longcat_arg_value>"},
	json:     true,
	drops:    []string{"<|observation|>", "<|user|>"},
	reserved: append([]string{"[gMASK]", "<sop>"}, toolResponse...),
	layout: layout{name: "<tool_call>", params: "\n", key: "<arg_key>", value: "</arg_key>\n<arg_value>", valueEnd: "</arg_value>\n",
		end: "</tool_call>"},
})

var minimaxGrammar = newGrammar(grammar{
	wrap: []string{"<minimax:tool_call>", "<tool_calls>"}, wrapClose: []string{"</minimax:tool_call>", "</tool_calls>"},
	call: []string{"<invoke "}, callClose: []string{"</invoke>"},
	param: []string{"<parameter "}, paramClose: []string{"</parameter>"},
	attrs: true, newline: true, paired: true,
	drops:    []string{"[e~["},
	reserved: []string{"]~b]", "]~!b["},
	layout: layout{name: "<minimax:tool_call>\n<invoke name=\"", params: "\">\n", key: "<parameter name=\"", value: "\">",
		valueEnd: "</parameter>\n", end: "</invoke>\n</minimax:tool_call>"},
})

var dsmlGrammar = newGrammar(grammar{
	wrap:      append(dsmlTags("<", "function_calls>"), dsmlTags("<", "tool_calls>")...),
	wrapClose: append(dsmlTags("</", "function_calls>"), dsmlTags("</", "tool_calls>")...),
	call:      dsmlTags("<", "invoke "), callClose: dsmlTags("</", "invoke>"),
	param: dsmlTags("<", "parameter "), paramClose: dsmlTags("</", "parameter>"),
	attrs: true, typed: true, single: true,
	drops:    []string{"<｜end▁of▁sentence｜>"},
	reserved: []string{"<｜User｜>", "<｜Assistant｜>", "<｜begin▁of▁sentence｜>"},
	layout: layout{name: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"", params: "\">\n", key: "<｜DSML｜parameter name=\"",
		value: "\" string=\"true\">", jsonValue: "\" string=\"false\">", valueEnd: "</｜DSML｜parameter>\n",
		end: "</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
})

// dsmlTags returns the spellings of a tag: as the models write it, and with its bars converted to other characters.
func dsmlTags(front, back string) []string {
	return []string{front + "｜DSML｜" + back, front + "｜｜DSML｜｜" + back, front + "‖DSML‖" + back, front + "|DSML|" + back}
}

// The layout covers the call only; the server writes the message around it.
var glimmerGrammar = newGrammar(grammar{
	wrap: []string{"<atem:function_calls>"}, wrapClose: []string{"</atem:function_calls>"},
	call: []string{"<atem:invoke "}, callClose: []string{"</atem:invoke>"},
	param: []string{"<atem:parameter "}, paramClose: []string{"</atem:parameter>"},
	attrs: true, messages: true,
	start: []string{"<|start|>assistant"}, message: []string{"<|message|>"}, endings: []string{"<|eom|>", "<|eot|>"},
	layout: layout{name: "<atem:function_calls>\n<atem:invoke name=\"", params: "\">\n", key: "<atem:parameter name=\"", value: "\">",
		valueEnd: "</atem:parameter>\n", end: "</atem:invoke>\n</atem:function_calls>"},
})
