package main

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/report"
)

// jsonOut returns a writer for JSON values, each in one write. If w is a terminal, characters that JSON does not escape and that a terminal
// interprets or does not show (C1 controls, direction and zero-width characters) are written as \u escapes: the values do not change.
func jsonOut(w io.Writer) io.Writer {
	if isTerminal(w) {
		return jsonTerminal{w}
	}
	return w
}

// writeJSON prints v as indented JSON.
func writeJSON(cmd *cobra.Command, v any) error {
	return report.WriteJSON(jsonOut(cmd.OutOrStdout()), v)
}

// show prints v as indented JSON if asJSON is set, and otherwise what text writes.
func show(cmd *cobra.Command, asJSON bool, v any, text func(io.Writer) error) error {
	if asJSON {
		return writeJSON(cmd, v)
	}
	return text(cmd.OutOrStdout())
}

type jsonTerminal struct{ w io.Writer }

// Write expects complete values: no character may be split between two writes.
func (t jsonTerminal) Write(b []byte) (int, error) {
	var out []byte
	for _, r := range string(b) {
		ascii := r < utf8.RuneSelf && r != 0x7f // JSON has escaped the control characters except DEL
		if ascii || unicode.IsPrint(r) && r != utf8.RuneError {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) { // r is in a string: other parts of JSON are ASCII
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
