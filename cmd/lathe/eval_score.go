package main

import (
	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/lab/bfcl"
)

// scoreFormats are the formats of outputs and answers that score supports.
var scoreFormats = []string{"bfcl"}

func evalScoreCommand() *cobra.Command {
	var f struct {
		Format string `flag:"format" default:"bfcl" usage:"*name* of the form of outputs and answers: bfcl" complete:"bfcl"`
		Batch  bool   `flag:"batch" usage:"read JSON lines from standard input"`
		Data   string `flag:"data" usage:"*folder* with functions and answers" complete:"folders"`
	}
	return withFlags(&cobra.Command{
		Use:   "score --data DIR",
		Short: "Judge recorded calls by the answers of a leaderboard",
		Long: `Judges calls that were recorded elsewhere, by the rules of the Berkeley Function Calling Leaderboard.
--data is the folder with its files BFCL_v4_CATEGORY.json, and the answers below it in possible_answer.

With --batch it reads JSON lines {"id","category","model_output"} from standard input and writes one
line {"id","valid","error_type"} for each, in the same order and with the same id. "model_output" is a
list of calls, [{"function":{"parameter":value}}]; "error_type" is the leaderboard's, and null for what
is valid. A line that cannot be judged is not valid, and its error type begins with "input_error:".
The exit code is 0 when all lines were answered.`,
		Example: `  lathe eval score --format bfcl --batch --data bfcl < outputs.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return usageError("score takes no arguments: it reads lines from standard input")
			case f.Format != "bfcl":
				return usageError("no format %q: %s", f.Format, text.Suggest(f.Format, scoreFormats, "score knows bfcl"))
			case !f.Batch:
				return usageError("score reads lines from standard input: give --batch")
			case f.Data == "":
				return usageError("there are no answers: --data names the folder of the leaderboard's files")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			fsys, err := openLeaderboard(f.Data)
			if err != nil {
				return err
			}
			s := bfcl.NewScorer(fsys)
			return eachLine(cmd.InOrStdin(), cmd.OutOrStdout(), func(line []byte) []byte { return scoreLine(line, s) })
		},
	}, &f)
}

// scoreLine judges one line of a batch, such as {"id":"simple_0","category":"simple","model_output":[{"f":{"a":1}}]}.
func scoreLine(line []byte, s *bfcl.Scorer) []byte {
	members, err := lineMembers(line, "id", "category", "model_output")
	id, _ := lineID(members) // null if the id is not valid
	verdictLine := func(v bfcl.Verdict) []byte {
		j := wire.JSON("{").Key("id").Compact(id).Bool("valid", v.Valid).Key("error_type")
		if v.Valid {
			return j.Lit("null}")
		}
		return j.Quote(v.ErrorType).Lit("}")
	}
	wrong := func(what string) []byte { return verdictLine(bfcl.Verdict{ErrorType: bfcl.InputError + what}) }
	if err != nil {
		return wrong("line")
	}
	for _, name := range []string{"id", "category"} {
		if raw := members[name]; raw == nil || raw[0] != '"' || rawjson.Check(raw, rawjson.Limits{}) != nil {
			return wrong(name)
		}
	}
	if members["model_output"] == nil {
		return wrong("model_output")
	}
	plain := func(name string) string { return rawjson.Text(members[name]) }
	return verdictLine(s.Score(plain("category"), plain("id"), members["model_output"]))
}
