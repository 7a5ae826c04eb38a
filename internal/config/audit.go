package config

// Audit configures the audit log of runs.
type Audit struct {
	// File that records what runs do, before they do it; see docs/audit.md. A relative path starts at
	// `state_dir`. Read at start.
	Path string `key:"path" also:"audit_log log file"`
	// Size at which the file is renamed with a number and a new one begins.
	MaxBytes int `key:"max_bytes" default:"100MiB" is:"size" range:"1.." also:"rotate max_size"`
}
