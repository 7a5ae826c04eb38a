// Package dialecttest proves parsers of package dialect: cases in txtar files, and the rules that
// hold for every parser and every text. A dialect's test is
//
//	func TestHermes(t *testing.T) { dialecttest.Run(t, os.DirFS("testdata/hermes"), "hermes") }
//	func FuzzHermes(f *testing.F) { dialecttest.Fuzz(f, os.DirFS("testdata/hermes"), "hermes") }
//
// A case is a txtar archive. Its comment says which bug it guards. Its files are
//
//   - input: the text; the newline that ends the file is not part of it
//   - options: a JSON object, optional: tools (names, or objects with name and schema), prefix,
//     max_payload_bytes, allow_deprecated_syntax
//   - want: the joined deltas in the form of [Format]
package dialecttest
