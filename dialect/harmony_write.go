package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

var harmonyForm = form{
	parser: newHarmony,
	call:   harmonyCall,
	layout: harmonyLayout,
	result: harmonyResult,
	tools: func(tools []*lathe.ToolSpec) string {
		return namespace(tools) + "\n\n" + harmonyToolsLine
	},
	native: true,
	clean:  cleanHarmony,
}

const harmonyToolsLine = "Calls to these tools must go to the commentary channel: 'functions'."

// harmonyCall returns a call from the role on; the caller has written `<|start|>`.
func harmonyCall(c lathe.ToolCall, args string) string {
	return "assistant to=functions." + safeName(c.Name) + "<|channel|>commentary <|constrain|>json<|message|>" + cleanArguments(args) + "<|call|>"
}

func harmonyResult(r lathe.ToolResult) string {
	return "<|start|>functions." + safeName(r.Name) + " to=assistant<|channel|>commentary<|message|>" + cleanHarmony(r.Content) + "<|end|>"
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
	return edited(s, func(s string) (n int, by string) {
		return min(tokenLen(s), 1), less
	})
}

// edited returns s with parts replaced. find gets the rest of s at each position, and returns the length of the part with which it begins and
// the replacement; length 0: nothing is replaced there.
func edited(s string, find func(s string) (n int, by string)) string {
	var b strings.Builder
	from := 0
	for i := range len(s) {
		if i < from {
			continue
		}
		if n, by := find(s[i:]); n > 0 {
			b.WriteString(s[from:i])
			b.WriteString(by)
			from = i + n
		}
	}
	if from == 0 {
		return s
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
