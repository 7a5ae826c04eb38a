package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes v as indented JSON for files and programs. The characters <, > and & are not escaped.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
