package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/lab/bfcl"
	"github.com/lathe-run/lathe/lab/eval"
	"github.com/lathe-run/lathe/sim"
)

// bfclSuite is the SUITE argument for the files of a leaderboard.
const bfclSuite = "bfcl"

// bfclFlags select the cases of a leaderboard.
type bfclFlags struct {
	Data       string   `flag:"data" usage:"of bfcl: *folder* with the leaderboard's files" complete:"folders"`
	Categories []string `flag:"category" usage:"of bfcl: *names* of categories, such as multiple,live_*; default: all that have a verdict" complete:"categories"`
	Limit      int      `flag:"limit" usage:"of bfcl: *number* of cases of each category, the first ones; 0: all"`
	Answers    string   `flag:"answers" usage:"of bfcl: *file* of recorded outputs that are judged in place of a model's"`

	suite *bfcl.Measured // set by read
}

func completeCategories(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	data := cmd.Flags().Lookup("data").Value.String()
	if data == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	categories, err := bfcl.Categories(os.DirFS(data))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return categories, cobra.ShellCompDirectiveNoFileComp
}

// read returns the suite with the cases that the flags select.
func (f *bfclFlags) read(view *screen) (*eval.Suite, error) {
	switch {
	case f.Data == "":
		return nil, usageError("bfcl wants --data, the folder of the leaderboard's files BFCL_v4_CATEGORY.json")
	case f.Limit < 0:
		return nil, usageError("--limit wants a number from 0 on")
	}
	fsys, err := openLeaderboard(f.Data)
	if err != nil {
		return nil, err
	}
	categories, err := bfcl.Select(fsys, f.Categories...)
	if err != nil {
		return nil, usageError("--category: %w", err)
	}
	if f.suite, err = bfcl.Measure(fsys, categories, f.Limit); err != nil {
		return nil, usageError("--data: %w", err)
	}
	if n := f.suite.LeftOut; n > 0 {
		view.note(fmt.Sprintf("%s left out: there is no answer to judge by", count(n, "case")))
	}
	if len(f.suite.Suite.Scenarios) == 0 {
		return nil, usageError("--data: no case has an answer to judge by")
	}
	return f.suite.Suite, nil
}

// openLeaderboard returns the folder with the files of a leaderboard. It returns a usage error if the folder has none.
func openLeaderboard(dir string) (fs.FS, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, usageError("--data: %w", err)
	}
	if !info.IsDir() {
		return nil, usageError("--data: %s is not a folder", dir)
	}
	fsys := os.DirFS(dir)
	categories, err := bfcl.Categories(fsys)
	if err != nil {
		return nil, usageError("--data: %w", err)
	}
	if len(categories) == 0 {
		return nil, usageError("--data: %s has no file BFCL_v4_CATEGORY.json", dir)
	}
	return fsys, nil
}

// recorded returns a target that answers with the recorded outputs in --answers.
func (f *bfclFlags) recorded() (t eval.Target, err error) {
	file, err := os.Open(f.Answers)
	if err != nil {
		return t, usageError("--answers: %w", err)
	}
	defer file.Close()
	sum := sha256.New()
	model, err := f.suite.Recorded(io.TeeReader(file, sum))
	if err != nil {
		return t, usageError("--answers: %s: %w", f.Answers, err)
	}
	return eval.Target{Name: "recorded", Identity: hex.EncodeToString(sum.Sum(nil)), ModelFor: model}, nil
}

// simulated returns the model to measure if none is named.
func (f *evalFlags) simulated(suite *eval.Suite) string {
	switch {
	case f.bfclFlags.suite != nil:
		return sim.DemoModel
	case withoutGold(suite) == "":
		return eval.GoldModel
	}
	return sim.EvalModel
}

// withoutGold returns the id of the first scenario without gold actions, or "".
func withoutGold(suite *eval.Suite) string {
	for _, sc := range suite.Scenarios {
		if sc.Gold == nil {
			return sc.ID
		}
	}
	return ""
}
