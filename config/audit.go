package config

// Audit says where it is recorded what runs do.
type Audit struct {
	Path     string // as the file writes it; empty: nowhere
	MaxBytes int
}

// keys returns the rows of the audit log, bound to a.
func (a *Audit) keys() []key {
	return []key{
		{"audit.path", "", text(&a.Path), "File that records what runs do, before they do it; see docs/audit.md. A relative path starts at the configuration file. Read at start.", "audit_log log file"},
		{"audit.max_bytes", "100MiB", size(&a.MaxBytes, 1, maxSize), "Size at which the file is given a number, and another goes on.", "rotate max_size"},
	}
}
