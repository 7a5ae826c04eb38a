package splice

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/testdata"
)

// plainSum computes the hashes of a conversation from whole texts. The hashes are stored with runs and read by other
// processes: they must not change.
type plainSum struct{ bytes.Buffer }

func (p *plainSum) text(s string) {
	_, _ = p.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
	_, _ = p.WriteString(s)
}

func (p *plainSum) sum() [sha256.Size]byte { return sha256.Sum256(p.Bytes()) }

func (p *plainSum) key(calls []lathe.ToolCall) Key {
	s := p.sum()
	var part plainSum
	_, _ = part.Write(s[:])
	for _, call := range calls {
		part.text(call.ID)
		part.text(call.Name)
		args, err := rawjson.AppendCanonical(nil, []byte(call.Arguments))
		if err != nil {
			args = []byte(strings.TrimSpace(call.Arguments))
		}
		if len(args) == 0 {
			args = []byte("{}")
		}
		part.text(string(args))
	}
	return part.sum()
}

func (p *plainSum) textKey(text string) Key {
	s := p.sum()
	var part plainSum
	_, _ = part.Write(s[:])
	part.text("text")
	_, _ = part.WriteString(strings.Join(strings.Fields(text), ""))
	return part.sum()
}

// The hashes of a conversation are those of its texts in one piece, whatever their lengths and wherever a sum is taken.
func TestConversationSumsAreThoseOfWholeTexts(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	pieces := []string{"a", "word ", " \t\n\v\f\r", "\u00a0\u2003é", "日本", "\x80\xff", "\u0085", "\xe2\x80", "😀", strings.Repeat("long ", 300), strings.Repeat("x", hashPiece), ""}
	for seed := range uint64(testdata.Cases(200)) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func() string {
			var b strings.Builder
			for range r.IntN(8) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			return b.String()[:min(b.Len(), r.IntN(3*hashPiece))]
		}
		who := Owner{text(), text(), text()}
		c, want := newHash(who), &plainSum{}
		want.text(who.Principal)
		want.text(who.User)
		want.text(who.Model)
		for i := range 12 {
			said, id := text(), text()
			calls := []lathe.ToolCall{{ID: id, Name: fmt.Sprint("f", i), Arguments: `{"b": "` + strings.Repeat("y", r.IntN(2*hashPiece)) + `", "a":1.0}`}, {ID: "c", Arguments: "no JSON "}, {}}
			if r.IntN(2) == 0 {
				if c.Sum().key(calls) != want.key(calls) {
					t.Fatal("key of calls", seed, i)
				}
				if c.Sum().textKey(said) != want.textKey(said) {
					t.Fatalf("key of the text %q", said)
				}
			}
			c.Add(&lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: said}, calls[0], lathe.ToolResult{CallID: id, Content: said}, lathe.Blob{URL: id, Data: []byte(said)}}})
			for _, s := range []string{"assistant", said, id, calls[0].Name, id, said, id, said} {
				want.text(s)
			}
		}
		if c.Sum() != want.sum() {
			t.Fatal("sum", seed)
		}
	}
}
