package wire_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
)

// A model reads of each part of a result that its API has no form for that it is missing, and what it was.
func TestResultsNameThePartsThatAreNotSent(t *testing.T) {
	t.Parallel()
	all := []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages, lathe.WireGemini}
	for _, tt := range []struct {
		blob lathe.Blob
		note string
		on   []lathe.Wire
	}{
		{lathe.Blob{MediaType: "image/png", Data: []byte("abc")}, "not sent", nil},
		{lathe.Blob{MediaType: "audio/wav", Data: []byte("abc")}, "[audio/wav, 3 bytes: not sent", []lathe.Wire{lathe.WireResponses, lathe.WireMessages}},
		{lathe.Blob{MediaType: "audio/wav", URL: "vendor:1"}, "[audio/wav: not sent", all},
	} {
		for _, w := range all {
			from := lathe.WireMessages // what another wire can say
			if w == from {
				from = lathe.WireResponses
			}
			body, dropped := upstreams.Of(w).AppendRequest(nil, &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a"),
				{Role: lathe.RoleAssistant, Wire: from, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f", Arguments: "{}"}}},
				{Role: lathe.RoleTool, Wire: from, Parts: []lathe.Part{lathe.ToolResult{CallID: "a", Name: "f", Content: "b", Blobs: []lathe.Blob{tt.blob}}}}}}, nil)
			want := slices.Contains(tt.on, w)
			if got := bytes.Contains(body, []byte(tt.note)); got != want || want && len(dropped) == 0 {
				t.Errorf("%s %s: a note: %v, want %v; dropped %q: %s", w, tt.blob.MediaType, got, want, dropped, body)
			}
		}
	}
}
