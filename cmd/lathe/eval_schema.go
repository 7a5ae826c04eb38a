package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/nearest"
	"github.com/lathe-run/lathe/lab/eval"
)

// evalSchemas are the schemas of what an evaluation writes, by name.
var evalSchemas = map[string]func() []byte{"run": eval.RunSchema, "summary": eval.SummarySchema}

var evalSchemaNames = []string{"run", "summary"}

func evalSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [run|summary]",
		Short: "Print the JSON Schema of the results",
		Long: `Prints the JSON Schema (draft 2020-12) of the file of a run, or of summary.json, which --json prints too.
Members are added in new versions, and never renamed.`,
		Example:   `  lathe eval schema summary > summary.schema.json`,
		ValidArgs: evalSchemaNames,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("want one of run and summary, got %d arguments", len(args))
			}
			if len(args) == 1 && evalSchemas[args[0]] == nil {
				return usageError("no schema %q: %s", args[0], nearest.Suggest(args[0], evalSchemaNames, "there are "+strings.Join(evalSchemaNames, " and ")))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "run"
			if len(args) == 1 {
				name = args[0]
			}
			_, err := cmd.OutOrStdout().Write(evalSchemas[name]())
			return err
		},
	}
}
