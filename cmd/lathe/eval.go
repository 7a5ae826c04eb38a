package main

import (
	"github.com/spf13/cobra"
)

// evalCommand returns the command that measures models, with its subcommands.
func evalCommand() *cobra.Command {
	cmd := evalMeasureCommand()
	cmd.AddCommand(evalCompareCommand(), evalScoreCommand(), evalSchemaCommand())
	return cmd
}
