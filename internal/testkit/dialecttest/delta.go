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
	for i := 0; i < len(deltas); {
		d := deltas[i]
		n := i + 1
		if pieced(d.Kind) {
			var b strings.Builder
			for n = i; n < len(deltas) && deltas[n].Kind == d.Kind && deltas[n].Index == d.Index; n++ {
				b.WriteString(deltas[n].Text)
			}
			d.Text = b.String()
		}
		out = append(out, d)
		i = n
	}
	return out
}

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
			switch {
			case open != (d.Index >= 0) || open && d.Index != calls-1:
				err = fmt.Errorf("error with index %d", d.Index)
			case d.Code == "" || len(d.Text) > 200 || d.Bytes < len(d.Text):
				err = fmt.Errorf("error %q of %d bytes with an excerpt of %d", d.Code, d.Bytes, len(d.Text))
			case open && (i+1 == len(whole) || whole[i+1].Kind != lathe.DeltaCallEnd || !whole[i+1].Incomplete):
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

// textOf returns all that the deltas say of the text: text, argument text, in order. What was said
// as arguments of a call that was taken back has been said again as text, and is left out; and so
// are arguments that p itself wrote.
func textOf(deltas []lathe.Delta, p dialect.Parser) string {
	w, ok := p.(dialect.ArgumentWriter)
	written := ok && w.WritesArguments()
	taken := map[int]bool{}
	for _, d := range deltas {
		if d.Kind == lathe.DeltaParseError && d.Index >= 0 {
			taken[d.Index] = true
		}
	}
	var b strings.Builder
	for _, d := range deltas {
		if pieced(d.Kind) && (d.Kind != lathe.DeltaCallArgs || !written && !taken[d.Index]) {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}
