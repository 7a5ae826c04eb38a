package main

import (
	"github.com/spf13/cobra"
)

// evalCommand measures models when it is called with suites, and holds the commands around that.
func evalCommand() *cobra.Command {
	cmd := evalMeasureCommand()
	cmd.AddCommand(evalCompareCommand(), evalScoreCommand(), evalSchemaCommand())
	return cmd
}
