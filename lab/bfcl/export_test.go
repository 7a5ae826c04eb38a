package bfcl

// Schema returns the JSON Schema of the parameters of a function.
func Schema(parameters []byte) []byte { return jsonSchema(parameters) }
