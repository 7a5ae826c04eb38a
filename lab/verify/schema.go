package verify

import _ "embed" // the schema

//go:embed report.schema.json
var reportSchema []byte

// Schema returns the JSON Schema (draft 2020-12) of the JSON that [Report.WriteJSON] writes. It belongs to the caller.
func Schema() []byte { return append([]byte(nil), reportSchema...) }
