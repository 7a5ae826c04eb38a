package eval

import (
	_ "embed" // the schemas
	"slices"
)

//go:embed run.schema.json
var runSchema []byte

//go:embed summary.schema.json
var summarySchema []byte

//go:embed suite.schema.json
var suiteSchema []byte

// SuiteSchema returns the JSON Schema (draft 2020-12) of a suite file as JSON. [Parse] checks more than the schema can express. The result
// belongs to the caller.
func SuiteSchema() []byte { return slices.Clone(suiteSchema) }

// RunSchema returns the JSON Schema (draft 2020-12) of the file of a run. The caller owns the result.
func RunSchema() []byte { return slices.Clone(runSchema) }

// SummarySchema returns the JSON Schema (draft 2020-12) of summary.json. The caller owns the result.
func SummarySchema() []byte { return slices.Clone(summarySchema) }
