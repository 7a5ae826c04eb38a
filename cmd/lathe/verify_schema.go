package main

import (
	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/lab/verify"
)

func verifySchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the report",
		Long: `Prints the JSON Schema (draft 2020-12) of report.json, which --json prints too. Members are added in new versions, and
never renamed.`,
		Example: `  lathe verify schema > verify.schema.json`,
		Args:    wants(0, 0, "want no arguments, got %d"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(verify.Schema())
			return err
		},
	}
}
