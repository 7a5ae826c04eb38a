package dialecttest

import (
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// Join makes neighbouring pieces of one kind (and one call) into one delta.
func Join(deltas []lathe.Delta) []lathe.Delta {
	var out []lathe.Delta
	for len(deltas) > 0 {
		d, n := deltas[0], pieces(deltas)
		if n > 1 {
			var text strings.Builder
			for _, piece := range deltas[:n] {
				text.WriteString(piece.Text)
			}
			d.Text = text.String()
		}
		out = append(out, d)
		deltas = deltas[n:]
	}
	return out
}

// pieces counts the first delta and its continuations.
func pieces(deltas []lathe.Delta) int {
	first := deltas[0]
	n := 1
	for pieced(first.Kind) && n < len(deltas) && deltas[n].Kind == first.Kind && deltas[n].Index == first.Index {
		n++
	}
	return n
}

// pieced reports whether a text of this kind may be split into several deltas.
func pieced(k lathe.DeltaKind) bool {
	switch k {
	case lathe.DeltaText, lathe.DeltaReasoning, lathe.DeltaCommentary, lathe.DeltaCallArgs:
		return true
	default:
		return false
	}
}

// Format writes deltas one a line:
//
//	text "…"
//	reasoning "…"
//	commentary "…"
//	call 0 "name" [id "…"] [deprecated]
//	args 0 "…"
//	end 0 [id "…"] [incomplete]
//	error code bytes "beginning" [name "…"] [call 0]
func Format(deltas []lathe.Delta) string {
	var b strings.Builder
	for _, d := range deltas {
		switch d.Kind {
		case lathe.DeltaText:
			fmt.Fprintf(&b, "text %q", d.Text)
		case lathe.DeltaReasoning:
			fmt.Fprintf(&b, "reasoning %q", d.Text)
		case lathe.DeltaCommentary:
			fmt.Fprintf(&b, "commentary %q", d.Text)
		case lathe.DeltaCallStart:
			fmt.Fprintf(&b, "call %d %q", d.Index, d.Name)
			if d.ID != "" {
				fmt.Fprintf(&b, " id %q", d.ID)
			}
			if d.Deprecated {
				b.WriteString(" deprecated")
			}
		case lathe.DeltaCallArgs:
			fmt.Fprintf(&b, "args %d %q", d.Index, d.Text)
		case lathe.DeltaCallEnd:
			fmt.Fprintf(&b, "end %d", d.Index)
			if d.ID != "" {
				fmt.Fprintf(&b, " id %q", d.ID)
			}
			if d.Incomplete {
				b.WriteString(" incomplete")
			}
		case lathe.DeltaParseError:
			fmt.Fprintf(&b, "error %s %d %q", d.Code, d.Bytes, d.Text)
			if d.Name != "" {
				fmt.Fprintf(&b, " name %q", d.Name)
			}
			if d.Index >= 0 {
				fmt.Fprintf(&b, " call %d", d.Index)
			}
		default:
			fmt.Fprintf(&b, "kind %d", d.Kind)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Verify reports the first rule of [dialect.Parser] that whole, the deltas of one turn, break.
func Verify(whole []lathe.Delta) error {
	calls, open := 0, false
	for i, d := range whole {
		var err error
		switch d.Kind {
		case lathe.DeltaText, lathe.DeltaReasoning, lathe.DeltaCommentary:
			if d.Text == "" {
				err = fmt.Errorf("an empty piece")
			}
		case lathe.DeltaCallStart:
			if open || d.Index != calls || d.Name == "" {
				err = fmt.Errorf("call %d %q begins where call %d was to", d.Index, d.Name, calls)
			}
			calls, open = calls+1, true
		case lathe.DeltaCallArgs, lathe.DeltaCallEnd:
			if !open || d.Index != calls-1 {
				err = fmt.Errorf("call %d is not open", d.Index)
			}
			open = open && d.Kind == lathe.DeltaCallArgs
		case lathe.DeltaParseError:
			callIndex := -1 // of the open call
			if open {
				callIndex = calls - 1
			}
			endsCall := i+1 < len(whole) && whole[i+1].Kind == lathe.DeltaCallEnd && whole[i+1].Incomplete
			switch {
			case d.Index != callIndex && (open || d.Index >= 0):
				err = fmt.Errorf("error with index %d", d.Index)
			case d.Code == "" || len(d.Text) > 200 || d.Bytes < len(d.Text):
				err = fmt.Errorf("error %q of %d bytes with an excerpt of %d", d.Code, d.Bytes, len(d.Text))
			case open && !endsCall:
				err = fmt.Errorf("the call that was taken back is not ended as incomplete")
			}
		default:
			err = fmt.Errorf("kind %d", d.Kind)
		}
		if err != nil {
			return fmt.Errorf("delta %d: %w", i, err)
		}
	}
	if open {
		return fmt.Errorf("call %d is still open", calls-1)
	}
	return nil
}

// textOf returns the text that the deltas contain, in order, arguments included. It leaves out the arguments of a call that ended with an error,
// because the error repeats them as text, and arguments that p has written itself.
func textOf(deltas []lathe.Delta, p dialect.Parser) string {
	w, ok := p.(dialect.ArgumentWriter)
	ownArguments := ok && w.WritesArguments()
	failed := map[int]bool{} // by the index of the call
	for _, d := range deltas {
		if d.Kind == lathe.DeltaParseError && d.Index >= 0 {
			failed[d.Index] = true
		}
	}
	var b strings.Builder
	for _, d := range deltas {
		leftOut := d.Kind == lathe.DeltaCallArgs && (ownArguments || failed[d.Index])
		if pieced(d.Kind) && !leftOut {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}
