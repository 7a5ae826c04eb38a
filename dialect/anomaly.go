package dialect

import "iter"

// Anomalies counts the deviations from the format that a parser tolerated. All fields but ToolName count deviations in the dialect harmony.
// A parser that counts deviations implements [Counter].
type Anomalies struct {
	// ToolName counts the names of tools from which the parser removed residue of the format, such as "functions." in functions.NAME.
	ToolName int

	// UnknownChannel, ForeignRole, Header, Truncated and Stray count text of the dialect harmony that could not be read: see
	// [Anomalies.ParseErrors].
	UnknownChannel int // a channel whose name resembles no known one: its content is text
	ForeignRole    int // a message whose role is not assistant
	Header         int // a header that is too long, or that ends without `<|message|>`
	Truncated      int // a header cut off by the end of the text
	Stray          int // text between two messages

	// ExtraFinal, AnalysisAfterFinal, CommentaryAfterFinal and InterleavedFinal count messages of the dialect harmony that follow a closed
	// final message: see [Anomalies.UnexpectedOrder].
	ExtraFinal           int // a further final message
	AnalysisAfterFinal   int
	CommentaryAfterFinal int
	InterleavedFinal     int // a further final message with a message of another channel in between; counted in ExtraFinal, too
}

// A Counter is a [Parser] that counts tolerated deviations. Test for it with a type assertion.
type Counter interface {
	// Anomalies returns the counts so far. They are complete after Flush.
	Anomalies() Anomalies
}

// ParseErrors yields the counts above 0 of text of the dialect harmony that could not be read, each with its stage, such as "header". The
// stages are the values of the label `stage` of the metric harmony_parse_error_total.
func (a Anomalies) ParseErrors() iter.Seq2[string, int] {
	return counts([]count{{"unknown_channel", a.UnknownChannel}, {"foreign_role", a.ForeignRole},
		{"header", a.Header}, {"truncated_header", a.Truncated}, {"stray_text", a.Stray}})
}

// UnexpectedOrder yields the counts above 0 of harmony messages in an unexpected order, each with its type, such as "extra_final". The
// types are the values of the label `type` of the metric harmony_unexpected_order_total.
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
