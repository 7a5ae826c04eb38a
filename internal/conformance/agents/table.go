package agents

import "github.com/lathe-run/lathe/internal/connect"

// All are the agents, in the order of docs/internals/agents.md.
var All = []*Agent{
	{
		Name: "codex", Wire: connect.Responses, Package: "@openai/codex", main: "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
		args: func(prompt string) []string {
			return []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", prompt}
		},
		more: func(prompt string) []string {
			return []string{"exec", "resume", "--last", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", prompt}
		},
		carries: true,
		Tool:    "exec_command", Arguments: func(c string) map[string]any { return map[string]any{"cmd": c} },
	},
	{
		Name: "claude-code", Wire: connect.Messages, Package: "@anthropic-ai/claude-code", main: "@anthropic-ai/claude-code-linux-x64/claude",
		args: func(prompt string) []string {
			return []string{"-p", prompt, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"}
		},
		env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1"},
		more: func(prompt string) []string {
			return []string{"-c", "-p", prompt, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"}
		},
		carries: true,
		Tool:    "Bash", Arguments: command(true), stamps: true,
	},
	{
		Name: "gemini-cli", Wire: connect.Gemini, Package: "@google/gemini-cli", node: true, main: "@google/gemini-cli/bundle/gemini.js",
		args: func(prompt string) []string { return []string{"--yolo", "-o", "json", "-p", prompt} },
		env:  []string{"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_TELEMETRY_ENABLED=false"},
		more: func(prompt string) []string {
			return []string{"--resume", "latest", "--yolo", "-o", "json", "-p", prompt}
		},
		Tool: "run_shell_command", Arguments: command(true),
	},
	{
		Name: "opencode", Wire: connect.Chat, Package: "opencode-ai", main: "opencode-linux-x64/bin/opencode",
		args: func(prompt string) []string { return []string{"run", prompt} },
		env:  []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1"},
		more: func(prompt string) []string { return []string{"run", "-c", prompt} },
		Tool: "bash", Arguments: command(true),
	},
	{
		Name: "qwen-code", Wire: connect.Chat, Package: "@qwen-code/qwen-code", node: true, main: "@qwen-code/qwen-code/cli.js",
		args: func(prompt string) []string { return []string{"--yolo", "-p", prompt} },
		more: func(prompt string) []string { return []string{"-c", "--yolo", "-p", prompt} },
		Tool: "run_shell_command", Arguments: func(c string) map[string]any {
			return map[string]any{"command": c, "is_background": false}
		},
	},
	{
		Name: "cline", Wire: connect.Chat, Package: "cline", main: "@cline/cli-linux-x64/bin/cline",
		args: func(prompt string) []string { return []string{"-k", Key, prompt, "--json"} },
		env:  []string{"CLINE_TELEMETRY_DISABLED=1", "CLINE_NO_AUTO_UPDATE=1"},
		Tool: "run_commands", Arguments: func(c string) map[string]any { return map[string]any{"commands": []string{c}} },
	},
	{
		Name: "continue", Wire: connect.Chat, Package: "@continuedev/cli", node: true, main: "@continuedev/cli/dist/cn.js",
		args: func(prompt string) []string { return []string{"--auto", "-p", prompt} },
		env:  []string{"CONTINUE_TELEMETRY_ENABLED=0", "CONTINUE_ALLOW_ANONYMOUS_TELEMETRY=0"},
		more: func(prompt string) []string { return []string{"--resume", "--auto", "-p", prompt} },
		Tool: "Bash", Arguments: command(false),
	},
	{
		Name: "pi", Wire: connect.Chat, Package: "@earendil-works/pi-coding-agent", node: true, main: "@earendil-works/pi-coding-agent/dist/cli.js",
		args:   func(prompt string) []string { return []string{"-p", prompt} },
		env:    []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"},
		more:   func(prompt string) []string { return []string{"-c", "-p", prompt} },
		silent: true,
		Tool:   "bash", Arguments: command(false),
	},
	{
		Name: "kilo", Wire: connect.Chat, Package: "@kilocode/cli-linux-x64", main: "@kilocode/cli-linux-x64/bin/kilo",
		args: func(prompt string) []string { return []string{"run", "--auto", prompt} },
		env:  []string{"KILO_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "KILO_DISABLE_AUTOUPDATE=1"},
		more: func(prompt string) []string { return []string{"run", "-c", "--auto", prompt} },
		Tool: "bash", Arguments: command(true), stamps: true,
	},
}

// Copilot is GitHub's agent with a model of its user's. `lathe connect` does not know it, and it has no cases of its own.
var Copilot = &Agent{
	Name: "copilot", Wire: connect.Chat, Package: "@github/copilot", main: "@github/copilot-linux-x64/copilot",
	args: func(prompt string) []string {
		return []string{"-p", prompt, "--no-auto-update", "--disable-builtin-mcps"}
	},
	variables: func(s *Setting) []string {
		return []string{"COPILOT_PROVIDER_BASE_URL=" + s.URL + "/v1", "COPILOT_PROVIDER_API_KEY=" + Key, "COPILOT_MODEL=" + s.Model, "COPILOT_OFFLINE=true"}
	},
}
