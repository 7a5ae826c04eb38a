package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
)

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // the commit
	Time     string `json:"time,omitempty"`     // that of the commit, in RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Schemas are the versions of the schemas that the program writes, by kind of store. Older schemas are migrated.
	Schemas map[string]int `json:"schemas"`
	// Protocols are the supported versions of each protocol, the newest first.
	Protocols map[string][]string `json:"protocols"`
}

// version is the version of the clone that the program is built in: that of the first entry of CHANGELOG.md, or, while that entry is Unreleased, the next minor version
// with the suffix -dev.
const version = "v0.2.0-dev"

// release is the version of a binary that `make release` built; "": version applies.
var release string

// currentVersion returns the version of the program and what the Go toolchain recorded in it.
func currentVersion() versionInfo {
	v := versionInfo{Version: cmp.Or(release, version), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Schemas:   map[string]int{"sqlite": sqlite.SchemaVersion(), "postgres": postgres.SchemaVersion()},
		Protocols: map[string][]string{"mcp": mcp.ProtocolVersions(), "worker": {workers.Protocol}, "opentelemetry_semconv": {observe.SemconvVersion()}}}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.time":
				v.Time = s.Value
			}
		}
		if mv := info.Main.Version; release == "" && v.Revision == "" && mv != "" && mv != "(devel)" { // built from the module, not in a clone
			v.Version = mv
		}
	}
	return v
}

// String returns the output of `lathe version`.
func (v versionInfo) String() string {
	s := "lathe " + v.Version
	if v.Revision != "" {
		s += fmt.Sprintf(" (commit %.12s of %.10s)", v.Revision, v.Time)
	}
	return s + " " + v.Go + " " + v.Platform
}

func versionCommand() *cobra.Command {
	var f struct {
		JSON bool `flag:"json" usage:"print JSON"`
	}
	return withFlags(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := currentVersion()
			if f.JSON {
				return writeLines(cmd, v)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		},
	}, &f)
}
