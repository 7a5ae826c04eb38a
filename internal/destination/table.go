package destination

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// A Rule is a row for some destinations, with the source of its facts.
type Rule struct {
	Server string     // kind of server, one of [Servers]; "": all
	Wire   lathe.Wire // wire to which the rule is limited; "": all
	// Family is a family of models (claude, gemini, gpt, o, mistral), with its variant after a hyphen (claude-opus); "": all. From and To
	// are the first and the last of its versions as major*100 + minor, such as 405 for 4.5; 0: no bound. If From or To is set, the rule
	// does not apply to a model of unknown version.
	Family   string
	From, To int
	Row
	Source string // documents or issues that state the facts
	Read   string // date on which the source was read
}

// A Server is a kind of model server.
type Server struct {
	Name string
	// Hosts are its host names. One that begins with . or - is the end of a host name. It is empty for servers that users run themselves.
	Hosts []string
}

// Servers are the kinds of servers.
var Servers = []Server{
	{"openai", []string{"api.openai.com", ".api.openai.com"}},
	{"azure", []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"}},
	{"anthropic", []string{"api.anthropic.com"}},
	{"bedrock", []string{".amazonaws.com"}},
	{"gemini", []string{"generativelanguage.googleapis.com"}},
	{"vertex", []string{"aiplatform.googleapis.com", "-aiplatform.googleapis.com"}},
	{"openrouter", []string{"openrouter.ai"}},
	{"deepseek", []string{"api.deepseek.com"}},
	{"mistral", []string{"api.mistral.ai"}},
	{"xai", []string{"api.x.ai"}},
	{"groq", []string{"api.groq.com"}},
	{"cerebras", []string{"api.cerebras.ai"}},
	{"kimi", []string{"api.moonshot.ai", "api.moonshot.cn"}},
	{"zai", []string{"api.z.ai", "open.bigmodel.cn"}},
	{"vllm", nil}, {"sglang", nil}, {"llamacpp", nil}, {"ollama", nil}, {"lmstudio", nil},
}

// Check returns an error if server is no kind of server or accepts has an unknown rule, with key, the name of the setting at fault. server
// may be "".
func Check(server string, accepts map[string]string) (key string, err error) {
	if _, err := Accepts(accepts); err != nil {
		return "accepts", err
	}
	names := make([]string, len(Servers))
	for i, s := range Servers {
		names[i] = s.Name
	}
	if server == "" || slices.Contains(names, server) {
		return "", nil
	}
	return "destination", fmt.Errorf("unknown kind of server %.40q: %s", server, text.Suggest(server, names, "there are "+strings.Join(names, ", ")))
}

// aliases are profiles of package preset whose kind of server has another name. A profile that is not listed has the name of its kind.
var aliases = map[string]string{"openai_responses": "openai", "google": "gemini"}

// template is the row of servers that render the chat template of the model.
var template = Row{System: one, Developer: no, Documents: asText, Reasoning: ownOnly}

// Rows that are added after a server has refused a request because of the role developer, several system messages, the order of roles (the
// rules of the strictest chat templates) or an effort.
var (
	NoDeveloper = Row{Developer: no}
	OneSystem   = Row{System: one, Developer: no}
	StrictRoles = Row{System: one, Developer: no, Turns: alternate}
	NoThinking  = Row{Thinking: none}
)

const (
	chat      = lathe.WireOpenAIChat
	responses = lathe.WireResponses
	messages  = lathe.WireMessages
	gemini    = lathe.WireGemini

	templates = "chat templates of Qwen 3.5, Mistral and Nemo in llama.cpp; vllm-project/vllm#41114, ggml-org/llama.cpp#20215, sgl-project/sglang#40082"
)

// Rules are the rules, general ones first. If several apply, a later one overrides the columns that it sets.
var Rules = []Rule{
	// Defaults of each wire, for unknown servers, then the kinds of servers.
	{Wire: chat, Row: Row{Thinking: effort, Documents: asText, Reasoning: Calls, Schema: free}, Source: "forms that most servers of the wire read; agentgateway/agentgateway#3518", Read: "2026-11-28"},
	{Wire: responses, Row: Row{Thinking: effort, Documents: asText, Status: Yes, Schema: openAI}, Source: "published schema of the wire; vercel/ai#20828", Read: "2026-11-28"},
	{Wire: messages, Row: Row{System: Leading, Schema: object}, Source: "published schema of the wire", Read: "2026-11-22"},
	{Wire: gemini, Row: Row{System: Leading}, Source: "published schema of the wire", Read: "2026-11-22"},

	{Server: "openai", Row: Row{Schema: openAI, MaxUser: 64, Reasoning: ownOnly}, Source: "maximhq/bifrost#1000, microsoft/agent-framework#4771, langchain-ai/langchain-mcp-adapters#137", Read: "2026-11-28"},
	{Server: "openai", Wire: chat, Row: Row{MaxStop: 4}, Source: "OpenAI's API description, member stop; braintrustdata/lingua#186", Read: "2026-11-28"},
	{Server: "openai", Wire: responses, Row: Row{Documents: asFile, LeastOutput: 16}, Source: "OpenAI's API description; vectorize-io/hindsight#58", Read: "2026-11-28"},
	{Server: "azure", Row: Row{Schema: openAI, MaxUser: 64, Reasoning: ownOnly}, Source: "as OpenAI", Read: "2026-11-28"},
	{Server: "azure", Wire: chat, Row: Row{MaxStop: 4}, Source: "as OpenAI", Read: "2026-11-28"},
	{Server: "azure", Wire: responses, Row: Row{Documents: asFile, LeastOutput: 16}, Source: "as OpenAI; status: microsoft/agent-framework#4701", Read: "2026-11-28"},
	{Server: "anthropic", Wire: messages, Row: Row{System: free}, Source: "Anthropic's SDK, MessageParamRoleSystem", Read: "2026-11-22"},
	{Server: "bedrock", Wire: messages, Row: Row{System: Leading}, Source: "default of the wire", Read: "2026-11-28"},
	{Server: "gemini", Wire: chat, Row: Row{Reasoning: ownOnly}, Source: "reasoning travels in extra_content", Read: "2026-11-22"},
	{Server: "vertex", Wire: chat, Row: Row{Reasoning: ownOnly}, Source: "as Gemini", Read: "2026-11-22"},
	{Server: "openrouter", Row: Row{System: one, Developer: no, Schema: openAI, MaxUser: 128, Reasoning: ownOnly}, Source: "passes requests to servers of all kinds; maximhq/bifrost#1000", Read: "2026-11-28"},
	{Server: "deepseek", Wire: chat, Row: Row{System: one, Developer: no, Reasoning: Calls}, Source: "BerriAI/litellm#26395, 9router#355", Read: "2026-11-28"},
	{Server: "mistral", Wire: chat, Row: Row{System: one, Developer: no, Turns: alternate, Reasoning: ownOnly, Thinking: free}, Source: "BerriAI/litellm#17761, avante-corp/avante.nvim#2562", Read: "2026-11-28"},
	{Server: "xai", Wire: chat, Row: Row{Reasoning: ownOnly, Thinking: free}, Source: "no rule beyond those of the wire is known", Read: "2026-11-28"},
	{Server: "groq", Wire: chat, Row: Row{Reasoning: ownOnly}, Source: "refuses reasoning_content; maximhq/bifrost#5410", Read: "2026-11-22"},
	{Server: "cerebras", Wire: chat, Row: Row{Reasoning: ownOnly}, Source: "as Groq", Read: "2026-11-22"},
	{Server: "kimi", Wire: chat, Row: Row{Reasoning: Calls}, Source: "reasoning_content beside calls comes back unmodified", Read: "2026-11-22"},
	{Server: "zai", Wire: chat, Row: Row{Reasoning: Calls}, Source: "reasoning_content beside calls comes back unmodified", Read: "2026-11-22"},
	{Server: "vllm", Row: template.With(&Row{Format: alone}), Source: templates + "; format: vllm-project/vllm#39929", Read: "2026-11-28"},
	{Server: "sglang", Row: template, Source: templates, Read: "2026-11-28"},
	{Server: "llamacpp", Row: template.With(&Row{Format: alone}), Source: templates + "; format: measured with llama.cpp 0.5.0", Read: "2026-11-28"},
	{Server: "ollama", Row: template.With(&Row{Thinking: free}), Source: templates, Read: "2026-11-28"},
	{Server: "lmstudio", Row: template, Source: templates, Read: "2026-11-28"},

	// Models.
	{Wire: chat, Family: "mistral", Row: Row{System: one, Developer: no, Turns: alternate}, Source: "chat templates of Nemo and Mistral Small in llama.cpp; NousResearch/hermes-agent#20154", Read: "2026-11-28"},
	{Family: "gpt", To: 499, Row: Row{Thinking: none}, Source: "OpenAI's API description: reasoning models only", Read: "2026-11-28"},
	{Server: "openai", Wire: chat, Family: "gpt", From: 500, Row: Row{TokenLimit: MaxCompletionTokens}, Source: "OpenAI's API description, max_tokens", Read: "2026-11-28"},
	{Server: "openai", Wire: chat, Family: "o", Row: Row{TokenLimit: MaxCompletionTokens}, Source: "OpenAI's API description, max_tokens", Read: "2026-11-28"},
	{Family: "gpt", From: 600, Row: Row{Sampling: effortless}, Source: "OpenAI's guide to GPT-6", Read: "2026-11-28"},
	{Wire: messages, Family: "claude", From: 100, To: 306, Row: Row{Thinking: none}, Source: "Anthropic's guide to extended thinking: from Claude 3.7 on", Read: "2026-11-28"},
	{Wire: messages, Family: "claude", From: 307, To: 405, Row: Row{Thinking: Budget}, Source: "elizaOS/eliza#16175, envoyproxy/ai-gateway#1988, mozilla-ai/any-llm#1345", Read: "2026-11-28"},
	{Wire: messages, Family: "claude-opus", From: 405, To: 405, Row: Row{Thinking: BudgetEffort}, Source: "Anthropic's guide to effort", Read: "2026-11-28"},
	{Wire: messages, Family: "claude", From: 407, Row: Row{Thinking: Adaptive}, Source: "Anthropic's migration guide to Claude Opus 4.7; NousResearch/hermes-agent#11137", Read: "2026-11-28"},
	{Wire: messages, Family: "claude", From: 505, Row: Row{ThinkingBinding: DropBlock}, Source: "Anthropic's guides to preserved thinking and to prefix checks", Read: "2026-11-28"},
	{Wire: messages, Family: "claude-fable", From: 501, Row: Row{ThinkingBinding: DropBlock}, Source: "Anthropic's guides to preserved thinking and to prefix checks", Read: "2026-11-28"},
	{Family: "claude", From: 401, To: 406, Row: Row{Sampling: one}, Source: "aws-samples/bedrock-access-gateway#191, anomalyco/opencode#28930", Read: "2026-11-28"},
	{Family: "claude", From: 407, Row: Row{Sampling: none}, Source: "Anthropic's migration guide to Claude Opus 4.7; Comfy-Org/ComfyUI#13923", Read: "2026-11-28"},
	{Wire: gemini, Family: "gemini", From: 100, To: 299, Row: Row{Thinking: Budget, Format: alone}, Source: "Google's guide to thinking; googleapis/python-genai#867", Read: "2026-11-28"},
	{Wire: gemini, Family: "gemini", From: 300, Row: Row{Thinking: Level}, Source: "Google's guide to thinking", Read: "2026-11-22"},
	{Wire: gemini, Family: "gemini-pro", From: 205, To: 205, Row: Row{LeastThinking: 128}, Source: "Google's guide to thinking; mozilla-ai/any-llm#1345", Read: "2026-11-28"},
}

// For returns the row of a model on a wire. server is a kind of server or a profile of package preset. If it is "", the host name decides
// or, failing that, the vendor of the model, if its models are known to run on one kind of server. For an unknown server, only the rules of
// the wire and of the model apply.
func For(w lathe.Wire, server, host, model string) Row {
	if w == "" {
		w = lathe.WireOpenAIChat
	}
	f := familyOf(model)
	if alias := aliases[server]; alias != "" {
		server = alias
	}
	if server == "" {
		server = serverOf(host)
	}
	if server == "" && (f.name == "gpt" || f.name == "o") {
		server = "openai"
	}
	var r Row
	for i := range Rules {
		if Rules[i].fits(w, server, f) {
			r = r.With(&Rules[i].Row)
		}
	}
	return r
}

// serverOf returns the kind of the server with a host name, or "" if it is not known.
func serverOf(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	for _, s := range Servers {
		for _, end := range s.Hosts {
			if host == end || (end[0] == '.' || end[0] == '-') && strings.HasSuffix(host, end) {
				return s.Name
			}
		}
	}
	return ""
}

func (r *Rule) fits(w lathe.Wire, server string, f family) bool {
	if r.Wire != "" && r.Wire != w || r.Server != "" && r.Server != server {
		return false
	}
	if r.Family == "" {
		return true
	}
	name, variant, _ := strings.Cut(r.Family, "-")
	if name != f.name || variant != "" && variant != f.variant {
		return false
	}
	if r.From == 0 && r.To == 0 {
		return true
	}
	return f.version >= max(r.From, 1) && (r.To == 0 || f.version <= r.To)
}
