package dialect

import "iter"

// Anomalies counts the deviations from the format that a parser tolerated. The parser implements [Counter]. All but ToolName are of
// harmony.
type Anomalies struct {
	// ToolName counts names of tools from which residue of the format was taken, such as functions.NAME.
	ToolName int

	// The stages of harmony_parse_error_total.
	UnknownChannel int // an unknown channel that resembles none: its content is text
	ForeignRole    int // a message of another role than the assistant's
	Header         int // a header that is too long, or that ends without `<|message|>`
	Truncated      int // a header cut off by the end of the text
	Stray          int // text between two messages

	// The types of harmony_unexpected_order_total, all after a final message was closed.
	ExtraFinal           int
	AnalysisAfterFinal   int
	CommentaryAfterFinal int
	InterleavedFinal     int // another final message after one of another channel
}

// A Counter is a [Parser] that counts tolerated deviations. Test for it with a type assertion.
type Counter interface {
	Anomalies() Anomalies
}

func anomalies(p Parser) Anomalies {
	if c, ok := p.(Counter); ok {
		return c.Anomalies()
	}
	return Anomalies{}
}

// ParseErrors yields each value of the label `stage` of harmony_parse_error_total with its count, if the count is not 0.
func (a Anomalies) ParseErrors() iter.Seq2[string, int] {
	return counts([]count{{"unknown_channel", a.UnknownChannel}, {"foreign_role", a.ForeignRole},
		{"header", a.Header}, {"truncated_header", a.Truncated}, {"stray_text", a.Stray}})
}

// UnexpectedOrder yields each value of the label `type` of harmony_unexpected_order_total with its count, if the count is not 0.
func (a Anomalies) UnexpectedOrder() iter.Seq2[string, int] {
	return counts([]count{{"extra_final", a.ExtraFinal}, {"analysis_after_final", a.AnalysisAfterFinal},
		{"commentary_after_final", a.CommentaryAfterFinal}, {"interleaved_final", a.InterleavedFinal}})
}

type count struct {
	label string
	n     int
}

func counts(list []count) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, c := range list {
			if c.n != 0 && !yield(c.label, c.n) {
				return
			}
		}
	}
}
