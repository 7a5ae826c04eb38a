package dialect_test

import (
	"testing"

	"github.com/lathe-run/lathe/dialect"
)

// Auto goes by the marks of thinking and text that only one family of models writes, also in an answer without calls, and for
// any cut of the text.
func TestAutoKnowsCommandsThinking(t *testing.T) {
	t.Parallel()
	const text = "<|START_THINKING|>Easy.<|END_THINKING|><|START_RESPONSE|>It is 42.<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"
	for cut := range len(text) {
		p := dialect.NewAuto(nil)
		var c dialect.Collector
		c.AddAll(p.Append(nil, text[:cut]))
		c.AddAll(p.Append(nil, text[cut:]))
		rest, err := p.Flush(nil)
		c.AddAll(rest)
		m := c.Message()
		if err != nil || m.Text() != "It is 42." || p.(dialect.Chooser).Chosen() != "command-r7b" {
			t.Fatalf("cut at %d: %q, %v", cut, m.Text(), err)
		}
	}
}
