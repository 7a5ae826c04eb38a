package search

// The bounds, for tests of the package from outside.
const (
	MaxToolBytes   = maxToolBytes
	MaxSchemaDepth = maxSchemaDepth
	MaxQueryBytes  = maxQueryBytes
	MaxQueryTerms  = maxQueryTerms
	MaxTermBytes   = maxTermBytes
)
