package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/lab/eval"
)

// evalSchemas are the schemas of the result files and of the file of a suite, by name.
var evalSchemas = map[string]func() []byte{"run": eval.RunSchema, "summary": eval.SummarySchema, "suite": eval.SuiteSchema}

var evalSchemaNames = []string{"run", "summary", "suite"}

func evalSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [run|summary|suite]",
		Short: "Print the JSON Schema of the results, or of a suite",
		Long: `Prints the JSON Schema (draft 2020-12) of the file of a run, of summary.json, which --json prints too, or of the
file of a suite, for editors: a suite is written in YAML, which the schema describes as the JSON that it stands for.
Members are added in new versions, and never renamed.`,
		Example:   `  lathe eval schema summary > summary.schema.json`,
		ValidArgs: evalSchemaNames,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("want one of %s, got %d arguments", strings.Join(evalSchemaNames, ", "), len(args))
			}
			if len(args) == 1 && evalSchemas[args[0]] == nil {
				return usageError("no schema %q: %s", args[0], text.Suggest(args[0], evalSchemaNames, "there are "+strings.Join(evalSchemaNames, ", ")))
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
