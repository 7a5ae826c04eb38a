package wasmtool

// ParseManifest is parseManifest for tests.
var ParseManifest = parseManifest
