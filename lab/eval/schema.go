package eval

import _ "embed" // the schemas

//go:embed run.schema.json
var runSchema []byte

//go:embed summary.schema.json
var summarySchema []byte

// RunSchema returns the JSON Schema (draft 2020-12) of the file of a run. The caller owns it.
func RunSchema() []byte { return append([]byte(nil), runSchema...) }

// SummarySchema returns the JSON Schema (draft 2020-12) of summary.json. The caller owns it.
func SummarySchema() []byte { return append([]byte(nil), summarySchema...) }
