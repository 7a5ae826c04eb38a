package verify

import _ "embed" // the schema

//go:embed report.schema.json
var reportSchema []byte

// Schema returns the JSON Schema (draft 2020-12) of a report as [Report.WriteJSON] writes it. The caller owns it.
func Schema() []byte { return append([]byte(nil), reportSchema...) }
