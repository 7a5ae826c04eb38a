package observe

import "path"

// SemconvVersion returns the version of OpenTelemetry's semantic conventions that spans and metrics follow, such as "1.41.0".
func SemconvVersion() string { return path.Base(semconvSchema) }
