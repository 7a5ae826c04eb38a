package provider

import (
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

func TestWordsForLogsQuoteNoRequest(t *testing.T) {
	t.Parallel()
	msgs := []lathe.Message{
		lathe.User("my secret is hunter2 and my address is 1 Long Road, Oslo"),
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "c", Name: "calculator", Arguments: `{"expression":"6 * 7`}}},
		{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c", Content: "the balance is 3.50"}}},
	}
	for in, want := range map[string]string{
		"":                         "",
		"Loading model":            "Loading model",
		`model "nosuch" not found`: `model "nosuch" not found`,
		"bad text: my address is 1 Long Road, Oslo!":                  "bad text:…!",
		"invalid string: missing closing quote; last read: '\"6 * 7'": "invalid string: missing closing quote; last read: '…'",
		"cannot use `hunter2` here, nor \"balance\"":                  "cannot use `…` here, nor \"…\"",
		"é my secret is hunter2 é":                                    "é …é",
	} {
		if got := unquote(in, msgs); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := unquote("Loading model", []lathe.Message{lathe.User(strings.Repeat("x", maxSearched+1))}); got != "" {
		t.Errorf("words beside a conversation too long to search: %q", got)
	}
}

// An upstream that repeats what it was sent cannot make the search slow.
func TestSearchForQuotesIsLinear(t *testing.T) {
	t.Parallel()
	start := time.Now()
	got := unquote(strings.Repeat("a", maxMessage), []lathe.Message{lathe.User(strings.Repeat("a", maxSearched/2)), lathe.User(strings.Repeat("'", maxSearched/2))})
	if took := time.Since(start); got != omitted || took > time.Minute {
		t.Errorf("got %q after %v", got, took)
	}
}
