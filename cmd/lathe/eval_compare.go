package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/lab/eval"
)

func evalCompareCommand() *cobra.Command {
	var f struct {
		A    string `flag:"a" usage:"*model* of the folder A to compare; default: all of them"`
		B    string `flag:"b" usage:"*model* of the folder B to compare; default: all of them"`
		JSON bool   `flag:"json" usage:"print the comparison as JSON"`
	}
	return withFlags(&cobra.Command{
		Use:   "compare A B",
		Short: "Say what changed between two folders of results",
		Long: `Compares the rates of two folders of results: each model at each scenario that both folders have, and all of
these. Different models are compared only where each side has one; --a and --b choose one of a folder's
models, so that two models of one folder can be compared. Fisher's exact test says whether a difference is more than noise: whether chance alone would make one that large in fewer
than 5 of 100 cases.

The exit code is 0 unless something got worse by more than noise: then it is 1.`,
		Example: `  lathe eval compare results-before results-after
  lathe eval compare results results --a fast --b careful`,
		Args: wants(2, 2, "want two folders of results, got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := loadResults(args[0], "--a", f.A)
			if err != nil {
				return err
			}
			b, err := loadResults(args[1], "--b", f.B)
			if err != nil {
				return err
			}
			c := eval.Compare(a, b)
			if err := show(cmd, f.JSON, c, c.WriteTable); err != nil {
				return err
			}
			for _, l := range c.Lines {
				if l.Real && l.B.OKRate < l.A.OKRate {
					return errReported
				}
			}
			return nil
		},
	}, &f)
}

// loadResults reads a folder of results. If model is not "", it returns only the runs of that model.
func loadResults(dir, flag, model string) (*eval.Report, error) {
	rep, err := eval.Load(dir)
	if err != nil {
		return nil, usageError("%w", err)
	}
	if model == "" {
		return rep, nil
	}
	of, ok := rep.Of(model)
	if !ok {
		var names []string
		for _, row := range rep.Summary().Models {
			names = append(names, row.Model)
		}
		return nil, usageError("%s %s: no run of this model in %s: %s", flag, model, dir, text.Suggest(model, names, "it has "+strings.Join(names, ", ")))
	}
	return of, nil
}
