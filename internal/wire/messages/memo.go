package messages

import (
	"bytes"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A memo stores the last event that added one string to a block: the bytes before and after the string, and the block. If the
// next event differs only in the string, the assembler does not need to parse it. White space after the string is not compared,
// since the API pads events with it.
type memo struct {
	b             *block // nil: nothing is remembered
	kind          lathe.DeltaKind
	before, after []byte
}

// remember stores that the event data added the string quoted to b, unless the string occurs twice in the event, since its place
// is then ambiguous.
func (a *assembler) remember(b *block, kind lathe.DeltaKind, data, quoted []byte) {
	lo := bytes.Index(data, quoted)
	if lo < 0 || bytes.LastIndex(data, quoted) != lo {
		return
	}
	m := &a.memo
	m.b, m.kind = b, kind
	m.before = append(m.before[:0], data[:lo]...)
	m.after = append(m.after[:0], data[lo+len(quoted):]...)
}

// again appends the delta of an event that is like the last one. ok is false if it is not.
func (a *assembler) again(dst []lathe.Delta, data []byte) (_ []lathe.Delta, ok bool) {
	m := &a.memo
	n := len(m.before)
	if m.b == nil || len(data) <= n || data[n] != '"' || string(data[:n]) != string(m.before) {
		return dst, false
	}
	end, plain := rawjson.PlainString(data, n+1)
	text := data[n+1 : max(n+1, end-1)]
	if !plain {
		var simple bool
		if a.scratch, end, simple = rawjson.AppendSimple(a.scratch[:0], data, n+1); !simple {
			var err error
			if end, err = rawjson.Scan(data, n); err != nil {
				return dst, false
			}
			a.scratch = rawjson.AppendUnquoteLossy(a.scratch[:0], data[n:end])
		}
		text = a.scratch
	}
	if !equalButSpace(data[end:], m.after) {
		return dst, false
	}
	s := a.add(&m.b.text, text)
	if m.kind == lathe.DeltaCallArgs {
		return m.b.emitInput(dst), true
	}
	return a.emit(dst, m.kind, s), true
}

// equalButSpace reports whether the texts are equal, or are both nothing but the same number of braces and white space.
func equalButSpace(text, after []byte) bool {
	if bytes.Equal(text, after) {
		return true
	}
	i, k := 0, 0
	for {
		i, k = rawjson.SkipSpace(text, i), rawjson.SkipSpace(after, k)
		if i == len(text) || k == len(after) {
			return i == len(text) && k == len(after)
		}
		if text[i] != after[k] || text[i] != '}' {
			return false
		}
		i, k = i+1, k+1
	}
}
