// Package dialect reads and writes tool calls that models write as text.
//
// A [Dialect] is one such way: [Lookup] finds it by name, [ForModel] by the name of a model.
// Its [Parser] is a pure streaming transformer. It takes the model's text in whatever pieces it
// comes and says it as deltas: text, reasoning, commentary, and calls with their argument text.
//
//	p := d.NewParser(nil)
//	for piece := range pieces {
//		deltas = p.Append(deltas[:0], piece)
//		…
//	}
//	deltas, err = p.Flush(deltas[:0])
//
// What holds for every parser, and is proved for each by package dialecttest:
//
//   - Joined, the deltas do not depend on how the text was cut, even inside a rune.
//   - Only what may still become a mark is held back; argument text flows as it comes.
//   - The time is linear in the text, and the memory does not grow with it.
//   - No text makes a parser fail. What it cannot read stays text, and a ParseError says so.
//   - A call that the end of the text cuts off is incomplete; nothing is guessed.
//   - Marks of other formats, and a format's own marks inside of a JSON string, are data.
//
// A [Collector] joins deltas into a message. [NewAuto] finds the dialect by the first mark, and
// [NewThink] reads nothing but thinking, for models that make native calls.
//
// A Dialect also writes. [Dialect.Rewrite] makes of a request one for a server that knows no tools:
// the tools become text of the system message, calls and results text of the history. Harmony has
// a prompt form of its own besides, [AppendHarmony].
//
// # Adding a dialect
//
// A dialect is a row of the table in dialect.go, a file with its name, and cases in
// testdata/<name>. A format whose calls are JSON inside a tag or after a mark is a jsonFamily in
// table_json.go, and needs no code. Else its parser embeds a reader: the scanner cuts the text into runs and marks and
// deals with the pieces, say, start, args, end and fail give the deltas. The parts that formats
// share are prose (text, thinking, and Markdown code in which nothing is a call), payload (a call
// that is one JSON object with name and arguments) and jsonScan (where a JSON value ends).
package dialect
