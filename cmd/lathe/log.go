package main

import (
	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/daemon"
)

// logFormatFlag adds --log-format.
func logFormatFlag(cmd *cobra.Command, format *string) { daemon.LogFormatFlag(cmd.Flags(), format) }
