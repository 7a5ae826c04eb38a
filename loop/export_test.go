package loop

// What the tests of the package use of it from outside.
const (
	MaxLabelNameBytes  = maxLabelNameBytes
	MaxLabelValueBytes = maxLabelValueBytes
)

var Depth = depthOf
