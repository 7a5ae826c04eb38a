package eval

import (
	"bytes"
	"fmt"
	"io"
)

// writeTrimmed writes lines without the blanks at their ends.
func writeTrimmed(w io.Writer, text []byte) error {
	for line := range bytes.Lines(text) {
		if _, err := fmt.Fprintf(w, "%s\n", bytes.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
