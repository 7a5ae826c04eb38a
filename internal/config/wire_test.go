package config

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// TestWireOfAModel: the wire is what the entry says, else that of the vendor at its address, else chat completions.
func TestWireOfAModel(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]lathe.Wire{
		"{}":                                    lathe.WireOpenAIChat,
		"{base_url: http://127.0.0.1:11434/v1}": lathe.WireOpenAIChat,
		"{base_url: https://api.anthropic.com}": lathe.WireMessages,
		"{base_url: https://api.anthropic.com/v1, wire: openai}":                            lathe.WireOpenAIChat,
		"{base_url: https://generativelanguage.googleapis.com/v1beta}":                      lathe.WireGemini,
		"{base_url: https://generativelanguage.googleapis.com/v1beta/openai}":               lathe.WireOpenAIChat,
		"{base_url: https://generativelanguage.googleapis.com/v1beta/openai, wire: gemini}": lathe.WireGemini,
		"{base_url: https://api.anthropic.com.example.org/v1}":                              lathe.WireOpenAIChat,
		"{wire: responses}": lathe.WireResponses,
		"{wire: anthropic}": lathe.WireMessages,
		"{wire: gemini}":    lathe.WireGemini,
		"{wire: openai}":    lathe.WireOpenAIChat,
	} {
		cfg, err := parse("lathe.yaml", []byte("models: {m: "+entry+"}"), &LoadOptions{})
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		if got := cfg.Models["m"].Wire; got != want {
			t.Errorf("%s: got %q, want %q", entry, got, want)
		}
	}
	for word, hint := range map[string]string{"messages": "anthropic", "google": "gemini", "chat": "openai", "telegraph": "openai, responses, anthropic, gemini"} {
		_, err := parse("lathe.yaml", []byte("models: {m: {wire: "+word+"}}"), &LoadOptions{})
		if err == nil || !strings.Contains(err.Error(), "models.m.wire") || !strings.Contains(strings.ReplaceAll(err.Error(), "`", ""), hint) {
			t.Errorf("wire: %s: got %v, want an error that names the setting and says %s", word, err, hint)
		}
	}
}
