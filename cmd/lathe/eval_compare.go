package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/eval"
)

func evalCompareCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Say what changed between two folders of results",
		Long: `Compares the rates of two folders of results, by model, by scenario and by both. Fisher's exact test
says whether a difference is more than noise: whether chance alone would make one that large in fewer
than 5 of 100 cases.

The exit code is 0 unless something got worse by more than noise: then it is 1.`,
		Example: `  lathe eval compare results-before results-after`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("want two folders of results, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := eval.Load(args[0])
			if err != nil {
				return usageError("%w", err)
			}
			b, err := eval.Load(args[1])
			if err != nil {
				return usageError("%w", err)
			}
			c := eval.Compare(a, b)
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(c)
			} else {
				err = c.WriteTable(cmd.OutOrStdout())
			}
			if err != nil {
				return err
			}
			for _, l := range c.Lines {
				if l.Real && l.B.OKRate < l.A.OKRate {
					return &exitError{exitFailed, nil}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the comparison as JSON")
	return cmd
}
