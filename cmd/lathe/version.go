package main

import (
	"encoding/json"
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
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Schemas are the versions of the schemas that the program writes, by kind of store. Older schemas are migrated.
	Schemas map[string]int `json:"schemas"`
	// Protocols are the supported versions of each protocol, the newest first.
	Protocols map[string][]string `json:"protocols"`
}

// release is the version of a binary that `make release` built; "": the version of the module applies.
var release string

// currentVersion returns the version that the Go toolchain recorded in the binary.
func currentVersion() versionInfo {
	v := versionInfo{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Schemas:   map[string]int{"sqlite": sqlite.SchemaVersion(), "postgres": postgres.SchemaVersion()},
		Protocols: map[string][]string{"mcp": mcp.ProtocolVersions(), "worker": {workers.Protocol}, "opentelemetry_semconv": {observe.SemconvVersion()}}}
	if info, ok := debug.ReadBuildInfo(); ok {
		if release != "" {
			v.Version = release
		} else if mv := info.Main.Version; mv != "" && mv != "(devel)" {
			v.Version = mv
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
	}
	return v
}

// String returns the output of `lathe version`.
func (v versionInfo) String() string { return "lathe " + v.Version + " " + v.Go + " " + v.Platform }

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
				return json.NewEncoder(jsonOut(cmd.OutOrStdout())).Encode(v)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		},
	}, &f)
}
