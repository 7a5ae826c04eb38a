package provider

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// Servers report the same failures in different words and with different statuses. These functions recognize the errors that change how a
// call continues. Their parameter text is the message in lower case.

// A phrase is a part of a server's message, in lower case.
type phrase struct {
	text   string
	server string
	source string // where the message was observed, and when
}

// contextPhrases report that the conversation exceeds the context window.
var contextPhrases = []phrase{
	{"exceeds the available context size", "llama.cpp", ""},
	{"maximum context length", "vLLM, OpenAI", ""},
	{"model's context length is only", "vLLM since 0.11", "anomalyco/opencode#17746, 2026-11-28"},
	{"exceeds the context length", "Ollama", ""},
	{"prompt too long; exceeded max context length", "Ollama", "earendil-works/pi#5930, 2026-11-28"},
	{"longer than the model's context length", "SGLang", ""},
	{"context the overflows", "LM Studio", ""},
	{"prompt is too long", "Anthropic", ""},
	{"exceed context limit", "Anthropic", ""},
	{"exceeds the maximum number of tokens allowed", "Gemini", ""},
	{"maximum prompt length is", "xAI", "anomalyco/opencode#17746, 2026-11-28"},
	{"input is too long for requested model", "Bedrock", "anomalyco/opencode#17762, 2026-11-28"},
	{"exceeded model token limit", "Kimi", "anomalyco/opencode#17762, 2026-11-28"},
	{"prompt exceeds max length", "Z.ai", "ericc-ch/copilot-api#210, 2026-11-28"},
	{"context length exceeded", "several", ""},
	{"exceeds the context window", "several", ""},
	{"context window exceeded", "several", ""},
	{"exceeds maximum context", "several", ""},
}

func exceedsContext(code, typ, text string) bool {
	for _, word := range [...]string{code, typ} {
		switch strings.ToLower(word) {
		case lathe.CodeContextLength, "exceed_context_size_error", "context_window_exceeded", "model_context_window_exceeded":
			return true
		}
	}
	return slices.ContainsFunc(contextPhrases, func(p phrase) bool { return strings.Contains(text, p.text) })
}

// requestWords are in errors with status 500 that the request itself causes, so that a repeated request fails again. llama.cpp returns
// them for tools without --jinja, for messages that its template rejects, and for arguments that are not JSON.
var requestWords = []string{"requires --jinja", "jinja exception", "parse tool call arguments", "while executing callexpression"}

func isRequestFault(status int, typ, text string) bool {
	return status == http.StatusNotImplemented || typ == "invalid_request_error" || typ == "not_supported_error" || containsAny(text, requestWords)
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// outputWords are in errors of servers that could not parse the call that the model wrote: llama.cpp (current versions, and those before
// its PEG parsers) and Ollama.
var outputWords = []string{"output that does not match the expected", "failed to parse input at pos", "invalid diff: ", "error parsing tool call"}

// isOutputFault reports whether an error is about the output of the model. Groq has a code for such errors. llama.cpp's messages about a
// call in the conversation are similar, but are faults of the request: see requestWords.
func isOutputFault(api *wire.APIError) bool {
	text := strings.ToLower(api.Message)
	if api.Code == "tool_use_failed" || containsAny(text, outputWords) {
		return true
	}
	return strings.Contains(text, "failed to parse") && strings.Contains(text, "tool call") && !containsAny(text, requestWords)
}

// idWords are in errors of Mistral's templates, and of its server, that require ids of calls of nine letters and digits.
var idWords = []string{"tool call ids should be alphanumeric", "tool call id was"}

// refusesIDs reports whether an error is about the ids of the calls in the conversation.
func refusesIDs(err *lathe.Error) bool {
	var up *lathe.UpstreamError
	return errors.As(err, &up) && up.Status >= 400 && containsAny(strings.ToLower(up.Message), idWords)
}
