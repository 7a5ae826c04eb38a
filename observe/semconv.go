package observe

import "path"

// SemconvVersion returns the version of OpenTelemetry's semantic conventions that names of spans and metrics follow.
func SemconvVersion() string { return path.Base(semconvSchema) }
