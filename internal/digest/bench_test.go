package digest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

const smallArgs = `{"path":"/srv/projects/lathe/internal","query":"func Check","limit":25,"recursive":true,"include":["*.go"]}`

// No t.Parallel: AllocsPerRun counts for the whole process.
func TestAllocations(t *testing.T) {
	testdata.CountsAllocations(t)
	small := []byte(smallArgs)
	large := []byte(`{"content":"` + strings.Repeat("All work and no play. ", 10_000) + `"}`)
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	hash := Tools([]*lathe.ToolSpec{{Name: "f", Schema: schema}, {Name: "g", Schema: schema}})
	s := sampling(0.2, 100)
	p := NewPrompt("m")
	p.Add(conversation()...)
	next := []lathe.Message{lathe.User("and more"), lathe.Assistant("yes"),
		message(lathe.RoleAssistant, lathe.ToolCall{ID: "c1", Name: "f", Arguments: `{"a": 1}`})}
	tests := []struct {
		name string
		max  float64
		fn   func()
	}{
		{"ArgsPreview small", 4, func() { ArgsPreview(small, Compat, nil) }},
		{"ArgsPreview large", 4, func() { ArgsPreview(large, Compat, nil) }},
		{"ArgsPreview full", 4, func() { ArgsPreview(small, Full, nil) }},
		{"ArgsPreview full large", 4, func() { ArgsPreview(large, Full, nil) }},
		{"ArgsPreview broken", 4, func() { ArgsPreview(small[:50], Compat, nil) }},
		{"ArgsDigest", 12, func() { ArgsDigest("run", "call", "tool", schema, small) }},
		{"Prompt.Sum", 12, func() { p.Sum(s, hash, lathe.ToolChoice{Mode: lathe.ChoiceAuto}) }},
		{"Prompt.Add", 10, func() { p.Add(next...) }},
	}
	for _, tt := range tests {
		if got := testing.AllocsPerRun(100, tt.fn); got > tt.max {
			t.Errorf("%s makes %v allocations, want at most %v", tt.name, got, tt.max)
		}
	}
}

func BenchmarkArgsPreview(b *testing.B) {
	for name, args := range map[string][]byte{
		"small": []byte(smallArgs),
		"200KB": []byte(`{"content":"` + strings.Repeat("All work and no play. ", 9000) + `"}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(args)))
			for b.Loop() {
				ArgsPreview(args, Compat, nil)
			}
		})
	}
}

func BenchmarkArgsDigest(b *testing.B) {
	schema := []byte(`{"type":"object","properties":{"path":{"type":"string"},"query":{"type":"string"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		ArgsDigest("run_1", "call_1", "search", schema, []byte(smallArgs))
	}
}

// BenchmarkPromptTurn adds two messages to a conversation of 200 and hashes it.
func BenchmarkPromptTurn(b *testing.B) {
	p := NewPrompt("m")
	text := strings.Repeat("All work and no play. ", 50)
	for range 200 {
		p.Add(lathe.User(text))
	}
	tools := Tools([]*lathe.ToolSpec{{Name: "f"}, {Name: "g"}})
	turn := []lathe.Message{message(lathe.RoleAssistant, lathe.ToolCall{ID: "c", Name: "f", Arguments: smallArgs}),
		message(lathe.RoleTool, lathe.ToolResult{CallID: "c", Content: text})}
	b.ReportAllocs()
	for b.Loop() {
		p.Add(turn...)
		p.Sum(nil, tools, lathe.ToolChoice{})
	}
}
