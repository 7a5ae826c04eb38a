package dialect

import "strings"

// jsonDialects are the dialects whose calls are JSON inside a tag or after a mark.
var jsonDialects = []*Dialect{
	{
		name:   "hermes",
		models: strings.Fields("hermes hermes-2 hermes-3 hermes-4 qwen2 qwen3 qwq granite-4 granite4 exaone-4 exaone4 reka bielik smollm3 mimo-vl"),
		// `<tool_call>` without JSON after it belongs to the dialect glm.
		marks: []string{"<tool_call>{", "<tool_call>[", "<tool_call> {", "<tool_call>\n{", "<tool_call>\n[", "<tool_call>\n```"},
		form: jsonForm(hermesFamily,
			"<tool_call>\n{\"name\": \"NAME\", \"arguments\": ARGS}\n</tool_call>",
			"<tool_response>\nTEXT\n</tool_response>"),
	},
	{
		name:   "llama3-json",
		models: strings.Fields("llama-3 llama3"),
		marks:  []string{"<|python_tag|>"},
		form:   jsonForm(llamaFamily, `{"name": "NAME", "parameters": ARGS}`, ""),
	},
	{
		name:   "mistral",
		models: strings.Fields("mistral ministral mixtral devstral magistral codestral pixtral"),
		marks:  []string{"[TOOL_CALLS]"},
		form:   mistralForm(),
	},
	{
		name:   "deepseek-v3",
		models: strings.Fields("deepseek-v3 deepseek-r1 deepseek-chat cogito cogito-v1 cogito-v2"),
		marks:  []string{"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"},
		form: jsonForm(deepseekFamily,
			"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGS\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
			"<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>TEXT<｜tool▁output▁end｜><｜tool▁outputs▁end｜>"),
	},
	{
		name:   "deepseek-v3.1",
		models: strings.Fields("deepseek-v3.1 deepseek-chat-v3.1"),
		form: jsonForm(deepseekFamily,
			"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGS<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
			"<｜tool▁output▁begin｜>TEXT<｜tool▁output▁end｜>"),
	},
	{
		name:   "kimi-k2",
		models: strings.Fields("kimi-k2 kimi_k2 kimi-dev"),
		marks:  []string{"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"},
		form: jsonForm(kimiFamily,
			"<|tool_calls_section_begin|><|tool_call_begin|>ID<|tool_call_argument_begin|>ARGS<|tool_call_end|><|tool_calls_section_end|>",
			"## Return of ID\nTEXT"),
	},
	{
		name:     "command-r7b",
		models:   strings.Fields("command-r7b command-a command_r7b"),
		marks:    []string{"<|START_ACTION|>"},
		ownMarks: []string{"<|START_THINKING|>", "<|START_RESPONSE|>", "<|START_TEXT|>"},
		form: jsonForm(commandFamily,
			`<|START_ACTION|>[{"tool_call_id": "ID", "tool_name": "NAME", "parameters": ARGS}]<|END_ACTION|>`,
			`<|START_TOOL_RESULT|>[{"tool_call_id": "ID", "results": {"0": "JSON"}}]<|END_TOOL_RESULT|>`),
	},
	{
		name:   "granite",
		models: strings.Fields("granite-3 granite3 granite-20b-function granite-8b"),
		marks:  []string{"<|tool_call|>"},
		form:   jsonForm(graniteFamily, `<|tool_call|>[{"name": "NAME", "arguments": ARGS}]`, ""),
	},
	{
		name:   "nemotron-v2",
		models: strings.Fields("nemotron-nano-9b-v2 nemotron-nano-12b-v2 nemotron-nano-v2 nemotron-v2"),
		marks:  []string{"<TOOLCALL>"},
		form: jsonForm(nemotronFamily,
			`<TOOLCALL>[{"name": "NAME", "arguments": ARGS}]</TOOLCALL>`,
			"<TOOL_RESPONSE>[\"JSON\"]</TOOL_RESPONSE>"),
	},
	{
		name:   "apriel",
		models: []string{"apriel"},
		marks:  []string{"<tool_calls>"},
		form:   jsonForm(aprielFamily, `<tool_calls>[{"name": "NAME", "arguments": ARGS}]</tool_calls>`, ""),
	},
	{
		name:   "apertus",
		models: []string{"apertus"},
		marks:  []string{"<|tools_prefix|>"},
		form:   jsonForm(apertusFamily, `<|tools_prefix|>[{"NAME": ARGS}]<|tools_suffix|>`, ""),
	},
	{
		name:   "functionary-v3.1",
		models: strings.Fields("functionary-v3.1 functionary-small-v3.1 functionary-medium-v3.1"),
		marks:  []string{"<function="},
		form:   jsonForm(functionary31Family, "<function=NAME>ARGS</function>", ""),
	},
	{
		name:   "functionary-v3.2",
		models: []string{"functionary"},
		form:   jsonForm(functionary32Family, ">>>NAME\nARGS", ""),
	},
	{
		name:   "gigachat3",
		models: strings.Fields("gigachat3 gigachat-3"),
		marks:  []string{"<|function_call|>", "function call<|role_sep|>"},
		form:   jsonForm(gigachatFamily, `<|function_call|>{"name": "NAME", "arguments": ARGS}`, ""),
	},
	{
		name:   "solar",
		models: strings.Fields("solar-open solar_open"),
		marks:  []string{"<|tool_calls|>", "<|tool_call:begin|>"},
		form:   jsonForm(solarFamily, "<|tool_calls|><|tool_call:begin|>ID<|tool_call:name|>NAME<|tool_call:args|>ARGS<|tool_call:end|><|calls|>", ""),
	},
	{
		name:   "phi4-mini",
		models: strings.Fields("phi-4-mini phi4-mini firefunction"),
		marks:  []string{"functools["},
		form:   jsonForm(phiFamily, `functools[{"name": "NAME", "arguments": ARGS}]`, ""),
	},
	{
		name:   "xlam",
		models: []string{"xlam"},
		form:   jsonForm(xlamFamily, `[{"name": "NAME", "arguments": ARGS}]`, ""),
	},
}

// The texts that begin an object or a list of calls without a mark; white space may precede the first member.
var (
	objectOpenings = []string{`{"`, "{ ", "{\n", "{\t", "{\r"}
	listOpenings   = []string{"[{", "[ ", "[\n", "[\t", "[\r"}
)

var (
	hermesFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<tool_response>", "</tool_response>", "<|im_start|>"},
		blocks:   []jsonBlock{{opens: []string{"<tool_call>"}, close: "</tool_call>", object: plainObject}},
		drops:    []string{"<|im_end|>", "<|endoftext|>"},
	})
	llamaFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<|start_header_id|>", "<|begin_of_text|>"},
		blocks: []jsonBlock{
			{opens: []string{"<|python_tag|>"}, object: plainLlama, builtin: true},
			{opens: objectOpenings, keep: 2, quiet: true, object: closedObject},
		},
		drops: []string{"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"},
	})
	mistralFamily = newJSONFamily(jsonFamily{
		reserved: []string{"[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]"},
		blocks: []jsonBlock{{
			opens: []string{"[TOOL_CALLS]"},
			head: []headPart{
				{field: headName, json: true, ends: []headEnd{{"[CALL_ID]", 1}, {"[ARGS]", 2}}},
				{field: headID, json: true, ends: []headEnd{{"[ARGS]", 2}}},
			},
			object: plainObject,
		}},
		drops:   []string{"</s>"},
		think:   thinkMarks{"[THINK]", "[/THINK]"},
		special: true,
		id:      idLate,
	})
	deepseekFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<｜User｜>", "<｜Assistant｜>", "<｜begin▁of▁sentence｜>"},
		sections: [][2]string{{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}},
		blocks: []jsonBlock{{
			opens: []string{"<｜tool▁call▁begin｜>"},
			head: []headPart{
				{field: headName, ends: []headEnd{{"<｜tool▁sep｜>", 1}}},
				{field: headName, json: true, ends: []headEnd{{"\n", 2}}},
			},
			fence: true,
			close: "<｜tool▁call▁end｜>",
		}},
		drops: []string{"<｜end▁of▁sentence｜>", "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>",
			"<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"},
	})
	kimiFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"},
		sections: [][2]string{
			{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
			{"<|tool_call_section_begin|>", "<|tool_call_section_end|>"},
		},
		blocks: []jsonBlock{{
			opens: []string{"<|tool_call_begin|>"},
			head:  []headPart{{field: headIDName, ends: []headEnd{{"<|tool_call_argument_begin|>", 1}}}},
			close: "<|tool_call_end|>",
		}},
		drops: []string{"<|im_end|>"},
		id:    idInName,
	})
	commandFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>", "<|START_OF_TURN_TOKEN|>"},
		blocks:   []jsonBlock{{opens: []string{"<|START_ACTION|>"}, close: "<|END_ACTION|>", object: cohereObject}},
		drops: []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>",
			"<|END_OF_TURN_TOKEN|>"},
		cites:   true,
		think:   thinkMarks{"<|START_THINKING|>", "<|END_THINKING|>"},
		special: true,
		id:      idPosition,
	})
	graniteFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<|start_of_role|>", "<|end_of_role|>"},
		blocks:   []jsonBlock{{opens: []string{"<|tool_call|>", "<tool_call>"}, object: plainObject}},
		drops:    []string{"</tool_call>", "<|end_of_text|>"},
	})
	nemotronFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<TOOL_RESPONSE>", "</TOOL_RESPONSE>", "<SPECIAL_1"},
		blocks:   []jsonBlock{{opens: []string{"<TOOLCALL>"}, close: "</TOOLCALL>", object: plainObject}},
	})
	aprielFamily = newJSONFamily(jsonFamily{
		blocks: []jsonBlock{{opens: []string{"<tool_calls>"}, close: "</tool_calls>", object: plainObject}},
		drops:  []string{"[END FINAL RESPONSE]", "<|end|>"},
		think:  thinkMarks{"Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"},
	})
	apertusFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<|system_start|>", "<|user_start|>", "<|assistant_start|>"},
		blocks:   []jsonBlock{{opens: []string{"<|tools_prefix|>"}, close: "<|tools_suffix|>", object: keyedObject}},
		drops:    []string{"<|assistant_end|>"},
		think:    thinkMarks{"<|inner_prefix|>", "<|inner_suffix|>"},
		special:  true,
	})
	functionary31Family = newJSONFamily(jsonFamily{
		reserved: []string{"<|start_header_id|>"},
		blocks: []jsonBlock{{
			opens: []string{"<function="},
			head:  []headPart{{field: headName, ends: []headEnd{{">", 1}}}},
			close: "</function>",
		}},
		drops: []string{"<|eot_id|>", "<|eom_id|>"},
	})
	functionary32Family = newJSONFamily(jsonFamily{
		reserved: []string{"<|start_header_id|>"},
		blocks: []jsonBlock{{
			opens: []string{">>>"},
			head:  []headPart{{field: headName, ends: []headEnd{{"\n", 1}}}},
			quiet: true,
			plain: "all",
		}},
		drops:  []string{"<|eot_id|>", "<|eom_id|>"},
		starts: true,
	})
	gigachatFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<|role_sep|>"},
		blocks:   []jsonBlock{{opens: []string{"<|function_call|>", "function call<|role_sep|>"}, object: plainObject}},
		drops:    []string{"<|message_sep|>"},
	})
	solarFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<|begin|>"},
		sections: [][2]string{{"<|tool_calls|>", "<|calls|>"}},
		blocks: []jsonBlock{{
			opens: []string{"<|tool_call:begin|>"},
			head: []headPart{
				{field: headID, ends: []headEnd{{"<|tool_call:name|>", 1}}},
				{field: headName, ends: []headEnd{{"<|tool_call:args|>", 2}}},
			},
			close: "<|tool_call:end|>",
		}},
		drops:   []string{"<|begin|>assistant", "<|content|>", "<|flush|>"},
		think:   thinkMarks{"<|think|>", "<|end|>"},
		special: true,
	})
	phiFamily = newJSONFamily(jsonFamily{
		reserved: []string{"<|assistant|>", "<|user|>", "<|system|>"},
		blocks: []jsonBlock{
			{opens: []string{"functools["}, keep: 1, object: plainObject},
			{opens: []string{"<|tool_call|>"}, close: "<|/tool_call|>", object: plainObject},
		},
		drops: []string{"<|end|>"},
	})
	xlamFamily = newJSONFamily(jsonFamily{
		blocks: []jsonBlock{
			{opens: []string{"[TOOL_CALLS]"}, object: plainObject},
			{opens: []string{"<tool_call>"}, close: "</tool_call>", object: plainObject},
			{opens: []string{"```json"}, close: "```", quiet: true, object: closedObject},
			{opens: listOpenings, keep: 2, quiet: true, object: closedObject},
		},
	})
)
