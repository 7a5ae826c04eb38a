package config

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// A key is one row of the reference: the place of a setting, its default, what it means, and how to set it.
type key struct {
	path string // from the top, or from a model's entry
	def  string // the default as one would write it; "" when the zero value of v is meant
	v    value
	doc  string
	also string // other words that people look for, separated by blanks: errors name the right one
}

// last returns the last word of the key's path.
func (k *key) last() string { return k.path[strings.LastIndexByte(k.path, '.')+1:] }

// keys returns the rows of everything but models, bound to c.
func (c *Config) keys() []key {
	rows := []key{
		{"default_model", "", text(&c.DefaultModel), "Model of runs that name none: a name under `models`, or `sim/…`. Default: the only model there is, else `" + SimModel + "`.", "model"},
	}
	rows = append(rows, c.ToolCalling.keys()...)
	rows = append(rows, c.ToolCalling.limitKeys()...)
	t := &c.Telemetry
	rows = append(rows,
		key{"tools.builtin", "all", list(&c.Tools.Builtin), "Builtin tools that runs may use, by name; `all` for every one, an empty list for none.", "enabled"},

		key{"tools.http", "", group(&c.Tools.HTTP, "tool name", isToolName, (*HTTPTool).keys), "Tools that are one HTTP request each; see docs/tools-http.md.", "rest"},
		key{"tools.openapi", "", group(&c.Tools.OpenAPI, "name", isToolName, (*OpenAPI).keys), "Tools that are operations of an OpenAPI document; see docs/tools-http.md.", "swagger"},
		key{"tools.mcp", "", group(&c.Tools.MCP, "server name", isServerName, (*MCPServer).keys), "MCP servers, whose tools are offered as `NAME__tool`; see docs/tools-mcp.md.", "mcp_servers mcpServers"},
		key{"tools.run", "", group(&c.Tools.Run, "tool name", isToolName, (*Agent).keys), "Agents as tools: each call is a run of its own; see docs/tools-agents.md.", "agents agent"},
		key{"tools.pins", "lathe.pins.json", text(&c.Tools.Pins), "File of the accepted definitions of MCP tools; a relative path starts at the configuration file.", "pins_file lockfile"},
		key{"tools.tokens", "lathe.tokens.json", text(&c.Tools.Tokens), "File of the access tokens for servers of tools, readable by its owner alone; a relative path starts at the configuration file.", "tokens_file"},
		key{"tools.egress.private", "", addresses(&c.Tools.Egress.Private), "Prefixes, addresses and host names that tools may reach although they are not public, such as `10.1.0.0/16` or `127.0.0.1`.", "allow_private"},
		key{"tools.egress.redirect_hosts", "", addresses(&c.Tools.Egress.RedirectHosts), "Hosts besides a tool's own to which its server may redirect: names, addresses, `*.example.com`.", "hosts allow_hosts"},
		key{"tools.egress.max_redirects", "5", count(&c.Tools.Egress.MaxRedirects, 0, 20), "Redirects that one request of a tool follows.", ""},
		key{"tools.egress.max_response_bytes", "8MiB", size(&c.Tools.Egress.MaxResponseBytes, 1, maxSize), "What one request of a tool may answer, decompressed.", "max_body_bytes"},
	)
	rows = append(rows, c.Tools.WASM.keys()...)
	rows = append(rows, c.Tools.guardKeys()...)
	rows = append(rows, c.Policy.keys()...)
	rows = append(rows, c.Secrets.keys()...)
	rows = append(rows, c.Serve.keys()...)
	rows = append(rows, c.Cluster.keys()...)
	rows = append(rows,
		key{"mcp.resources", "", group(&c.MCP.Resources, "resource name", isOfferName, (*MCPResource).keys), "What MCP clients of this server may read; policy knows it as the tool `resource__NAME`. See docs/mcp-serve.md.", ""},
		key{"mcp.prompts", "", group(&c.MCP.Prompts, "prompt name", isOfferName, (*MCPPrompt).keys), "Prompts that people choose in MCP clients; policy knows them as the tools `prompt__NAME`.", ""},
	)
	rows = append(rows, c.Approval.keys()...)
	rows = append(rows, c.Audit.keys()...)
	rows = append(rows, c.Keep.keys()...)
	rows = append(rows, key{"keys", "", group(&c.Keys, "key name", isRuleName, (*APIKey).keys), "Who may call the daemon; without any, everybody on this machine. The name is the principal of runs.", "api_keys"})
	rows = append(rows, key{"workers", "", group(&c.Workers, "name", isRuleName, (*Workers).keys), "Who may execute tools for the daemon from elsewhere, over `GET /v1/worker`; see docs/workers.md.", "worker fleets"})
	return append(rows,
		key{"telemetry.content", "false", boolean(&t.Content), "Put message, argument and output text into traces and audit lines.", ""},
		key{"telemetry.args_preview_hash", "compat", words(&t.ArgsPreviewHash, "compat", "full", "keyed"), "How arguments are hashed for events: `compat` the first 200 characters, `full` all, `keyed` all under `args_preview_key`.", "hash_mode"},
		key{"telemetry.otlp_endpoint", "", reference(&t.OTLPEndpoint, isURL), "Address of an OpenTelemetry collector that takes spans over HTTP, such as `http://127.0.0.1:4318`; see docs/telemetry.md. Read at start.", "otel otlp traces collector"},
		key{"telemetry.args_preview_key", "", reference(&t.ArgsPreviewKey, isKey), "Key of the `keyed` hash, as a reference.", ""},

		key{"sim.token_delay", "30ms", duration(&c.Sim.TokenDelay, 0), "Pause between the tokens of the model `sim/slow`.", "delay"},
		key{"sim.scripts", "", table(&c.Sim.Scripts, "name", "path", isScriptName, newText), "Script files; `NAME` is the model `sim/script-NAME`.", "script"},
	)
}

// keys returns the modes of runs.
func (t *ToolCalling) keys() []key {
	s := &t.Settings
	return []key{
		{"tool_calling.enabled", "true", boolean(&t.Enabled), "Whether runs may use tools; `false` is `tool_use_mode: disabled` for all.", ""},
		{"tool_calling.tool_use_mode", "relaxed", words(&s.ToolUseMode, "relaxed=preferred,optional,auto", "enforced=required,must", "disabled=off,none,no,0,false"),
			"`relaxed`: calls are allowed; `enforced`: a run without any call fails; `disabled`: no tools are sent.", "mode"},
		{"tool_calling.tool_failure_policy", "fatal", words(&s.FailurePolicy, "fatal=strict", "tolerated=tolerate,ignore"),
			"With `enforced`: whether a tool that failed last fails the run, or one success is enough.", "failure_policy"},
		{"tool_calling.tool_choice", "auto", choice(&s.ToolChoice), "What the model is told: `auto`, `none`, `required`, or `function:NAME`.", ""},
		{"tool_calling.tool_choice_every_turn", "false", boolean(&s.ToolChoiceEveryTurn), "Tell `required` or a function in every turn instead of the first only.", ""},
		{"tool_calling.parallel_tool_calls", "unset", unsetOrBool(&s.ParallelToolCalls), "Sent to the server unless `unset`; with `false`, calls beyond the first of a turn are refused.", "parallel"},
		{"tool_calling.max_parallel_tool_calls", "1", count(&s.MaxParallel, 1, 256), "Calls of one turn that run side by side, where their tools only read.", "max_parallel"},
		{"tool_calling.fix_empty_final", "true", not(&s.NoFixEmptyFinal), "Ask once more when the answer after tool calls is blank.", ""},
		{"tool_calling.fix_empty_final_user_text", lathe.DefaultFixEmptyFinalText, text(&s.FixEmptyFinalText), "The words of that request.", ""},
		{"tool_calling.fix_empty_final_disable_tools", "true", not(&s.FixEmptyFinalKeepTools), "Send that request without tools.", ""},
		{"tool_calling.fallback_retry_count", "0", count(&s.FallbackRetryCount, 0, 10), "Times a turn is repeated without tools when the server says that it cannot do tools.", "retries"},
		{"tool_calling.executor", "real", words(&s.Executor, "real", "noop=dry_run,stub,fake"), "`noop`: every stage but the tool itself, whose result is `{\"ok\":true}`.", ""},
		{"tool_calling.on_parse_error", "tell", words(&s.OnParseError, "tell", "retry_without_tools=retry"), "After a call written as text that cannot be read: tell the model, or repeat the turn without tools.", ""},
		{"tool_calling.on_limit", "finish", words(&s.OnLimit, "finish=answer", "stop=abort"), "At a limit: one last model call without tools, or end at once.", ""},
		{"tool_calling.oversize_output", "error", words(&s.OversizeOutput, "error=fail", "truncate=cut"), "An output above `max_tool_output_bytes` fails, or keeps its head and tail.", ""},
		{"tool_calling.repair", "safe", words(&s.Repair, "safe=on,true", "off=none,false"), "Unwrap fenced and doubly encoded arguments once.", ""},
		{"tool_calling.result_format", "plain", words(&s.ResultFormat, "plain=raw", "envelope"), "How the model is told results: the output itself, or an object with `ok`, `data` and `errors`.", ""},
		{"tool_calling.tool_result_compact_envelope", "false", boolean(&s.CompactEnvelope), "Leave empty members out of the envelope.", "compact_envelope"},
		{"tool_calling.strict_unknown_tool", "false", boolean(&s.StrictUnknownTool), "End the run when the model asks for a tool that is not there.", ""},
		{"tool_calling.allow_deprecated_syntax", "false", boolean(&t.AllowDeprecatedSyntax), "Read the short form `<tool:NAME>{…}` as a call.", ""},
		{"tool_calling.show_unreadable_calls", "false", boolean(&t.ShowUnreadableCalls), "Show the text of calls that could not be read as a part of the answer.", ""},
		{"tool_calling.retention.mode", "metrics_only", words(&t.Retention.Mode, "metrics_only", "hashed_slice", "redacted_snippets", "raw_ephemeral"),
			"What a session's history keeps of what a model said between its calls: nothing, its length and a hash, its beginning without words that name secrets, or all of it in memory.", ""},
		{"tool_calling.retention.store_raw_tool_output", "false", boolean(&t.Retention.StoreRawToolOutput), "Keep tool results whole, in a session's history and in the store.", ""},
		{"tool_calling.retention.max_output_bytes", "2KiB", size(&t.Retention.MaxOutputBytes, 0, maxSize), "What is kept of each otherwise; `0`: the default, and less than 64 counts as 64.", ""},
	}
}

// limitKeys returns the limits of runs.
func (t *ToolCalling) limitKeys() []key {
	l := &t.Limits
	return []key{
		{"tool_calling.max_iterations", "8", count(&l.MaxIterations, 1, maxCount), "Model calls of one run.", "max_turns max_steps max_rounds"},
		{"tool_calling.max_total_tool_calls", "32", count(&l.MaxToolCalls, 1, maxCount), "Tool calls of one run.", "max_tool_calls max_calls"},
		{"tool_calling.max_depth", "1", depth(&l.MaxDepth), "Runs that a tool may start inside a run; `0`: none.", ""},
		{"tool_calling.max_repeated_calls", "3", count(&l.MaxRepeatedCalls, 1, maxCount), "Equal calls with equal results.", ""},
		{"tool_calling.max_unknown_tools", "3", count(&l.MaxUnknownTools, 1, maxCount), "Calls in a row to tools that are not there.", ""},
		{"tool_calling.max_tool_args_bytes", "200000", size(&l.MaxToolArgsBytes, 1, maxSize), "Argument text of one call.", "max_args_bytes max_arguments_bytes"},
		{"tool_calling.max_payload_bytes", "8KiB", size(&l.MaxPayloadBytes, 1, maxSize), "One call written as text.", ""},
		{"tool_calling.max_tool_output_bytes", "64KiB", size(&l.MaxOutputBytes, 1, maxSize), "Output of one call.", "max_output_bytes"},
		{"tool_calling.max_json_depth", "64", count(&l.MaxJSONDepth, 1, 1000), "Nesting of arguments.", ""},
		{"tool_calling.max_json_keys", "10000", count(&l.MaxJSONKeys, 1, maxCount), "Members of one object in arguments.", ""},
		{"tool_calling.max_tools", "128", count(&l.MaxTools, 1, maxCount), "Tool definitions sent.", ""},
		{"tool_calling.max_tools_bytes", "200000", size(&l.MaxToolsBytes, 1, maxSize), "Tool definitions sent, in bytes.", ""},
		{"tool_calling.tool_timeout", "30s", duration(&l.ToolTimeout, 1), "Time of one call; a tool may have its own.", ""},
		{"tool_calling.run_timeout", "15m", durationOr(&l.RunTimeout, "none"), "Time of one run, or `none`.", ""},
		{"tool_calling.approval_ttl", "1h", duration(&l.ApprovalTTL, 1), "Time in which a person may approve a call.", "approval_timeout"},
		{"tool_calling.max_tokens_total", "none", tokens(&l.MaxTokensTotal), "Tokens of one run, or `none`.", "max_tokens"},
		{"tool_calling.max_cost", "none", dollars(&l.MaxCost), "US dollars of one run, as far as servers say it, or `none`.", "max_cost_usd"},
	}
}

// keys returns the rows of one model, bound to m.
func (m *Model) keys() []key {
	t := &m.Transforms
	return []key{
		{"provider", "openai", words(&m.Provider, "openai=openrouter,vllm,ollama,llamacpp,litellm,sglang,lmstudio,openai_compatible", "sim=simulated,fake"),
			"`openai`: every server that speaks OpenAI's chat completions; `sim`: the simulated model. What a vendor needs besides is its `profile`.", "type kind"},
		{"label", "", label(&m.Label), "The provider's name in events and metrics. Default: `provider`.", "name"},
		{"base_url", "", reference(&m.BaseURL, isURL), "Address of the server, with its version: `https://api.openai.com/v1` when empty. May be a reference.", "url endpoint api_base"},
		{"key", "", reference(&m.Key, isKey), "Key of the server, as a reference: `${OPENAI_API_KEY}` or `${file:/run/secrets/key}`.", "api_key token secret"},
		{"headers", "", table(&m.Headers, "header name", "text, may be a reference", isHeaderName, newHeader), "Further headers of each request.", "extra_headers"},
		{"model", "", text(&m.Model), "The model's name on the server. Default: the entry's name.", "id"},
		{"profile", "", word(&m.Profile), "What the provider or server needs, its address included, by name: `openrouter`, `mistral`, `vllm` and others in docs/presets.md. Keys that are set here win.", "vendor"},
		{"presets", "", names(&m.Presets), "Presets of docs/presets.md, by name; a later one wins over an earlier, and over the profile.", "preset"},
		{"dialect", "native", word(&m.Dialect), "How the model writes tool calls: `native`, `auto` or a dialect by name.", "format"},
		{"recover_leaked_calls", "false", boolean(&m.RecoverLeakedCalls), "Also take calls that a server with calls of its own lets slip into the text; only of tools that were offered.", "leaked_calls recover"},
		{"client_timeout", "120s", durationOr(&m.ClientTimeout, "0"), "Time to the first piece of an answer, attempts included; `0`: no bound. After it `read_timeout` and `run_timeout` apply: a stream that moves is not cut.", "timeout request_timeout"},
		{"open_timeout", "10s", durationOr(&m.OpenTimeout, "0"), "Time to connect; `0`: no bound.", "connect_timeout"},
		{"read_timeout", "", durationOr(&m.ReadTimeout, "0"), "Wait for each next byte; `0`: no bound. Default: `client_timeout`.", "idle_timeout"},
		{"loading_timeout", "2m", durationOr(&m.LoadingTimeout, "0"), "Wait for a server that says that it loads the model, no part of `client_timeout`; `0`: such an answer is a failed attempt.", "startup_timeout wait_for_model"},
		{"max_attempts", "3", count(&m.MaxAttempts, 1, 20), "Attempts of one model call, the first one included.", "retries max_retries"},
		{"supports_tools", "true", boolean(&m.SupportsTools), "`false`: runs with this model use no tools.", "tools"},
		{"supports_parallel", "true", boolean(&m.SupportsParallel), "`false`: the model asks for one call a turn.", "parallel"},
		{"reasoning_field", "", word(&m.ReasoningField), "Member in which reasoning is sent back to the entry; `\"*\"`, the default: the one it came in; `none`: it is not sent.", ""},
		{"include_usage", "true", boolean(&m.IncludeUsage), "Ask for token counts in streams.", "stream_usage"},
		{"max_completion_tokens", "false", boolean(&m.MaxCompletionTokens), "Send the token limit under this name, as OpenAI's reasoning models want it.", ""},
		{"max_line_bytes", "1MiB", size(&m.MaxLineBytes, 1, maxSize), "One line of a stream.", ""},
		{"max_event_bytes", "8MiB", size(&m.MaxEventBytes, 1, maxSize), "One event of a stream.", ""},
		{"transforms.message", "", names(&t.Message), "Transforms of docs/presets.md that change messages on their way out; added to those of presets. An empty list clears.", "message_transforms"},
		{"transforms.tool", "", names(&t.Tool), "The same for tool definitions.", "tool_transforms"},
		{"transforms.response", "", names(&t.Response), "The same for answers.", "response_transforms"},
		{"transforms.tool_call", "", names(&t.ToolCall), "The same for calls, in answers and in the history.", "tool_call_transforms"},
		{"transforms.tool_result", "", names(&t.ToolResult), "The same for results as they enter the request.", "tool_result_transforms"},
		{"pass", "", names(&m.Pass), "Members of a request that go to the model server besides those of OpenAI's published schema and of the profile.", "pass_through forward extra_members"},
		{"request_overrides", "", object(&m.RequestOverrides), "Further members of each request, merged with those of presets; not model, messages, tools, tool_choice, response_format or stream.", "extra_body overrides"},
	}
}
