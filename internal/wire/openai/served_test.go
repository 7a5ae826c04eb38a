package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// After chunks of a model's server were passed on, the writer continues with their id and model, and ends the stream once.
func TestServedWriterContinuesAfterPassedChunks(t *testing.T) {
	t.Parallel()
	req := &wire.ClientRequest{IncludeUsage: true}
	w := openai.Served{}.NewWriter(&wire.AnswerHead{ID: "1", Model: "m", Created: 9, Request: req})
	w.Pass(&lathe.Raw{ID: "up-1", Model: "up", Deltas: []lathe.Delta{{Kind: lathe.DeltaText, Text: "a"}}})
	out := w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaText, Text: "b"})
	out = w.AppendServerCall(out, &wire.ServerCall{ID: "call_1"})
	out = w.AppendApproval(out, &wire.Approval{ID: "mcpr_1"})
	out = w.AppendCarrier(out, "seal")
	out = w.AppendFinish(out, &lathe.Finish{Reason: lathe.FinishStop}, []lathe.Member{{Name: "lathe", Value: json.RawMessage(`{}`)}})
	text := string(out)
	if n := strings.Count(text, `"id":"up-1"`); n != 3 || strings.Contains(text, "chatcmpl-") || strings.Contains(text, "seal") {
		t.Errorf("%d chunks with the passed id: %s", n, text)
	}
	if !strings.HasSuffix(text, "data: [DONE]\n\n") || strings.Count(text, "[DONE]") != 1 || strings.Contains(text, `"role"`) {
		t.Errorf("got %s", text)
	}
}
