// Package dialect parses and writes tool calls that models write as text.
//
// A [Dialect] is one such format: [Lookup] finds it by its name, [ForModel] by the name of a model.
// Its [Parser] is a streaming transformer without I/O. It accepts the model's text in pieces of any
// size and returns deltas: text, reasoning, commentary, and calls with their argument text.
//
//	p := d.NewParser(nil)
//	for piece := range pieces {
//		deltas = p.Append(deltas[:0], piece)
//		…
//	}
//	deltas, err = p.Flush(deltas[:0])
//
// Every parser guarantees, and package dialecttest checks for each:
//
//   - The joined deltas do not depend on how the text was divided, even inside a rune.
//   - A parser buffers only text that may still become a mark; it returns argument text as it arrives.
//   - The time is linear in the text, and the memory does not grow with it.
//   - No text makes a parser fail. Unreadable text stays text and is followed by a ParseError.
//   - A call that the end of the text truncates is incomplete; the parser does not complete it.
//   - Marks of other formats, and a format's own marks inside a JSON string, are data.
//
// A [Collector] joins deltas into a message. [NewAuto] detects the dialect by the first mark, and
// [NewThink] parses reasoning only, for models with native calls.
//
// A Dialect also writes. [Dialect.Rewrite] encodes a request for a server without tool support:
// the tools become text of the system message, calls and results text of the history.
//
// # Adding a dialect
//
// A dialect is a row of the table in dialect.go, a file with its name, and cases in
// testdata/<name>. A format whose calls are JSON inside a tag or after a mark is a jsonFamily in
// table_json.go and needs no code. Otherwise its parser embeds a reader: the scanner divides the text into runs and
// marks, and emit, start, args, end and fail append the deltas. The formats
// share prose (text, reasoning, and Markdown code in which nothing is a call), payload (a call
// that is one JSON object with name and arguments) and jsonScan (which finds the end of a JSON value).
package dialect
