package observe

import "path"

// SemconvVersion returns the version of OpenTelemetry's semantic conventions whose names spans and metrics have.
func SemconvVersion() string { return path.Base(semconvSchema) }
