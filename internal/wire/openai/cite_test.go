package openai

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// The places of annotations count from the beginning of the content, which may have the texts of earlier turns, also relayed ones.
func TestAnnotationsOfALaterTurn(t *testing.T) {
	t.Parallel()
	const annotation, want = `{"type":"url_citation","url_citation":{"start_index":1,"end_index":3,"url":"u","title":"t"}}`, `{"type":"url_citation","url_citation":{"start_index":7,"end_index":9,"url":"u","title":"t"}}`
	cited := lathe.Delta{Kind: lathe.DeltaTextEnd, Part: lathe.Text{Text: "spät", Extra: []lathe.Member{{Name: "annotations", Value: []byte("[" + annotation + "]")}}}}
	for _, passed := range []bool{false, true} {
		w := Served{}.NewWriter(&wire.AnswerHead{ID: "1", Model: "m", Created: 1, Request: &wire.ClientRequest{}})
		var dst []byte
		early := lathe.Delta{Kind: lathe.DeltaText, Text: "früh\n\n"}
		if passed {
			w.Pass(&lathe.Raw{Deltas: []lathe.Delta{early}})
		} else {
			dst = w.AppendDelta(dst, early)
		}
		dst = w.AppendDelta(w.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaText, Text: "spät"}), cited)
		if !strings.Contains(string(dst), want) {
			t.Errorf("passed %t: there is no %s in\n%s", passed, want, dst)
		}
	}
}
