package dialect

import (
	"encoding/json"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

var harmonyForm = form{
	call:   appendHarmonyCall,
	layout: harmonyLayout,
	result: appendHarmonyResult,
	tools: func(dst []byte, tools []*lathe.ToolSpec) []byte {
		dst = appendNamespace(dst, tools)
		dst = append(dst, "\n\n"...)
		return append(dst, harmonyToolsLine...)
	},
	native: true,
	clean:  cleanHarmony,
}

const harmonyToolsLine = "Calls to these tools must go to the commentary channel: 'functions'."

// HarmonyOptions are the choices of [AppendHarmony]. The zero value is useful.
type HarmonyOptions struct {
	Identity        string   // first line of the system message; default: the line that the models were trained with
	KnowledgeCutoff string   // default: "2024-06"
	CurrentDate     string   // "" omits the line
	Channels        []string // default: analysis, commentary, final
	NoSystem        bool     // omit the system message, because the server writes one
	NoGeneration    bool     // do not open the assistant's turn at the end
}

// AppendHarmony appends req as a harmony prompt: system message, developer message with the
// instructions, the tools and the response format, and the history.
//
// It writes calls, reasoning and commentary of the history on their channels. It keeps reasoning between the calls of a turn and omits
// the reasoning of turns that have an answer. Text beside calls becomes commentary. Special tokens in text of users and tools are split
// by a space. An unreadable call is omitted, because the message already contains its text.
func AppendHarmony(dst []byte, req *lathe.Request, opts *HarmonyOptions) []byte {
	var o HarmonyOptions
	if opts != nil {
		o = *opts
	}
	if !o.NoSystem {
		dst = appendHarmonySystem(dst, req, &o)
	}
	n := 0
	for n < len(req.Messages) && isSystem(req.Messages[n].Role) {
		n++
	}
	dst = appendDeveloper(dst, req.Messages[:n], req)
	answered := lastAnswer(req.Messages)
	for i := n; i < len(req.Messages); i++ {
		m := &req.Messages[i]
		switch m.Role {
		case lathe.RoleAssistant:
			dst = appendHarmonyTurn(dst, m, i > answered)
		case lathe.RoleTool:
			for _, p := range m.Parts {
				if r, ok := p.(lathe.ToolResult); ok {
					dst = appendHarmonyResult(dst, r)
				}
			}
		case lathe.RoleUser:
			dst = appendHarmonyMessage(dst, "user", "", cleanHarmony(m.Text()))
		default:
			dst = appendHarmonyMessage(dst, "developer", "", "# Instructions\n\n"+cleanHarmony(m.Text()))
		}
	}
	if !o.NoGeneration {
		dst = append(dst, "<|start|>assistant"...)
	}
	return dst
}

func appendHarmonySystem(dst []byte, req *lathe.Request, o *HarmonyOptions) []byte {
	or := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	channels := o.Channels
	if len(channels) == 0 {
		channels = []string{"analysis", "commentary", "final"}
	}
	dst = append(dst, "<|start|>system<|message|>"...)
	dst = append(dst, or(o.Identity, "You are ChatGPT, a large language model trained by OpenAI.")...)
	dst = append(dst, "\nKnowledge cutoff: "...)
	dst = append(dst, or(o.KnowledgeCutoff, "2024-06")...)
	if o.CurrentDate != "" {
		dst = append(dst, "\nCurrent date: "...)
		dst = append(dst, o.CurrentDate...)
	}
	dst = append(dst, "\n\nReasoning: "...)
	dst = append(dst, or(req.Sampling.ReasoningEffort, "medium")...)
	dst = append(dst, "\n\n# Valid channels: "...)
	dst = append(dst, strings.Join(channels, ", ")...)
	dst = append(dst, ". Channel must be included for every message."...)
	if len(req.Tools) > 0 {
		dst = append(dst, '\n')
		dst = append(dst, harmonyToolsLine...)
	}
	return append(dst, "<|end|>"...)
}

// appendDeveloper appends the developer message: instructions, tools and response format. It appends nothing if all are empty.
func appendDeveloper(dst []byte, system []lathe.Message, req *lathe.Request) []byte {
	var parts []string
	for i := range system {
		if text := system[i].Text(); text != "" {
			parts = append(parts, cleanHarmony(text))
		}
	}
	if len(parts) > 0 {
		parts = []string{"# Instructions\n\n" + strings.Join(parts, "\n\n")}
	}
	if len(req.Tools) > 0 {
		parts = append(parts, string(appendNamespace(nil, req.Tools)))
	}
	if format := responseFormat(req.Sampling.ResponseFormat); format != "" {
		parts = append(parts, format)
	}
	if len(parts) == 0 {
		return dst
	}
	return appendHarmonyMessage(dst, "developer", "", strings.Join(parts, "\n\n"))
}

// responseFormat returns the section for a response format of type `json_schema`, and "" for other formats.
func responseFormat(raw json.RawMessage) string {
	var f struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &f) != nil || f.Type != "json_schema" || len(f.JSONSchema.Schema) == 0 {
		return ""
	}
	out := "# Response Formats\n\n## " + string(appendName(nil, f.JSONSchema.Name)) + "\n\n"
	if f.JSONSchema.Description != "" {
		out += string(appendComment(nil, "", f.JSONSchema.Description))
	}
	return out + cleanHarmony(string(rawjson.AppendCompact(nil, f.JSONSchema.Schema)))
}

// lastAnswer returns the index of the last answer, which is an assistant message with text and without calls, or -1.
func lastAnswer(messages []lathe.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if m.Role == lathe.RoleAssistant && len(m.Calls()) == 0 && m.Text() != "" {
			return i
		}
	}
	return -1
}

// appendHarmonyTurn appends one message of the assistant; reasoning includes its reasoning.
func appendHarmonyTurn(dst []byte, m *lathe.Message, reasoning bool) []byte {
	beside := len(m.Calls()) > 0
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Reasoning:
			if reasoning {
				dst = appendHarmonyMessage(dst, "assistant", "analysis", cleanHarmony(p.Text))
			}
		case lathe.Text:
			channel := "final"
			if beside || p.Commentary {
				channel = "commentary"
			}
			dst = appendHarmonyMessage(dst, "assistant", channel, cleanHarmony(p.Text))
		case lathe.Refusal:
			dst = appendHarmonyMessage(dst, "assistant", "final", cleanHarmony(p.Text))
		case lathe.ToolCall:
			if p.ParseError == "" {
				dst = append(dst, "<|start|>"...)
				dst = (&Dialect{form: harmonyForm}).AppendCall(dst, p)
			}
		case lathe.Blob, lathe.ToolResult, lathe.Opaque: // not part of an assistant's text
		}
	}
	return dst
}

func appendHarmonyMessage(dst []byte, role, channel, text string) []byte {
	dst = append(dst, "<|start|>"...)
	dst = append(dst, role...)
	if channel != "" {
		dst = append(dst, "<|channel|>"...)
		dst = append(dst, channel...)
	}
	dst = append(dst, "<|message|>"...)
	dst = append(dst, text...)
	return append(dst, "<|end|>"...)
}

// appendHarmonyCall appends a call from the role on; the caller has appended `<|start|>`.
func appendHarmonyCall(dst []byte, c lathe.ToolCall, args string) []byte {
	dst = append(dst, "assistant to=functions."...)
	dst = appendName(dst, c.Name)
	dst = append(dst, "<|channel|>commentary <|constrain|>json<|message|>"...)
	dst = append(dst, cleanArguments(args)...)
	return append(dst, "<|call|>"...)
}

func appendHarmonyResult(dst []byte, r lathe.ToolResult) []byte {
	dst = append(dst, "<|start|>functions."...)
	dst = appendName(dst, r.Name)
	dst = append(dst, " to=assistant<|channel|>commentary<|message|>"...)
	dst = append(dst, cleanHarmony(r.Content)...)
	return append(dst, "<|end|>"...)
}

// cleanArguments splits special tokens in argument text. In valid JSON they can only be inside strings, where `\u003c` replaces `<`.
func cleanArguments(args string) string {
	if rawjson.Check([]byte(args), rawjson.Limits{}) == nil {
		return replaceTokens(args, `\u003c`)
	}
	return cleanHarmony(args)
}

// cleanHarmony inserts a space into each text that has the form of a special token, so that the tokenizer reads it as text: `<|end|>`
// becomes `< |end|>`.
func cleanHarmony(s string) string { return replaceTokens(s, "< ") }

// replaceTokens replaces the `<` of each special token in s by less.
func replaceTokens(s, less string) string {
	if !strings.Contains(s, "<|") {
		return s
	}
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); i++ {
		if n := tokenLen(s[i:]); n > 0 {
			b.WriteString(s[from:i])
			b.WriteString(less)
			from = i + 1
		}
	}
	b.WriteString(s[from:])
	return b.String()
}

// tokenLen returns the length of the special token at the beginning of s, or 0 if none exists.
func tokenLen(s string) int {
	const maxToken = 40
	if !strings.HasPrefix(s, "<|") {
		return 0
	}
	for i := 2; i < len(s) && i < maxToken; i++ {
		switch c := s[i]; {
		case c == '|' && i > 2 && i+1 < len(s) && s[i+1] == '>':
			return i + 2
		case !isLetter(c) && c != '_' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}
