package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/wire"
)

func toolsCheckCommand() *cobra.Command {
	var f struct {
		Batch  bool   `flag:"batch" usage:"read JSON lines from standard input"`
		JSON   bool   `flag:"json" usage:"print the verdict as JSON"`
		Schema string `flag:"schema" usage:"*file* with the JSON Schema, instead of a tool's"`
	}
	return withFlags(&cobra.Command{
		Use:   "check NAME ARGUMENTS",
		Short: "Check arguments against a tool's schema, without calling it",
		Long: `Checks arguments against the schema of a tool, or of --schema FILE. ARGUMENTS - reads standard input.
The exit code is 1 where they are not valid.

With --batch it reads JSON lines {"id","schema","arguments"} from standard input and writes one line
{"id","valid","errors"} for each, in the same order and with the same id. "arguments" is a JSON value; a
string that holds a JSON object or array is taken as argument text. A line that cannot be read is not
valid, and its id is null where it has none. The exit code is 0 when all lines were judged.`,
		Example: `  lathe tools check calculator '{"expression":7}'
  lathe tools check --schema person.json '{"age":-1}'
  lathe tools check --batch < calls.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			want := 2
			switch {
			case f.Batch && (f.Schema != "" || f.JSON):
				return usageError("--batch takes no other flag: each line has its schema, and lines are JSON")
			case f.Batch:
				want = 0
			case f.Schema != "":
				want = 1
			}
			if len(args) != want {
				return usageError("want %s, got %d: check NAME ARGUMENTS, check --schema FILE ARGUMENTS, or check --batch", count(want, "argument"), len(args))
			}
			return nil
		},
		ValidArgsFunction: first(completeTools),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Batch {
				return checkBatch(stdin(cmd, "JSON lines"), cmd.OutOrStdout())
			}
			text, err := argumentText(cmd, args[len(args)-1])
			if err != nil {
				return err
			}
			rawSchema, err := schemaOf(cmd, f.Schema, args[0])
			if err != nil {
				return err
			}
			v := check(rawSchema, []byte(text))
			out := cmd.OutOrStdout()
			switch {
			case f.JSON:
				_, err = out.Write(append(v.appendJSON(nil), '\n'))
			case v.valid:
				_, err = fmt.Fprintln(out, "valid")
			default:
				for _, e := range v.errors {
					where := cmp.Or(e.Pointer, "ARGUMENTS")
					if e.Keyword == "schema" {
						where = "the schema of " + args[0]
						if f.Schema != "" {
							where = f.Schema
						}
					}
					_, err = fmt.Fprintf(out, "%s: %s (%s)\n", where, e.Message, e.Keyword)
				}
			}
			if err != nil || !v.valid {
				return &exitError{exitFailed, err}
			}
			return nil
		},
	}, &f)
}

// schemaOf returns the schema in the file or, if file is "", that of the named tool.
func schemaOf(cmd *cobra.Command, file, name string) ([]byte, error) {
	if file != "" {
		b, err := readNamedFile(file, schema.MaxSchemaBytes)
		if err != nil {
			return nil, usageError("%w", err)
		}
		return b, nil
	}
	cfg, set, err := configuredTools(cmd)
	if err != nil {
		return nil, err
	}
	modules, err := app.StartModules(cmd.Context(), cfg, set, nil)
	if err != nil {
		return nil, err
	}
	defer modules.Close()
	t, ok := set.Lookup(name)
	if !ok {
		return nil, noTool("", name, set)
	}
	return t.Spec().Schema, nil
}

// A verdict is the result of checking one set of arguments.
type verdict struct {
	id     []byte // JSON value of the id in a line of a batch; nil: none
	valid  bool
	errors []schema.Violation
}

// appendJSON appends the verdict as one JSON object.
func (v *verdict) appendJSON(dst []byte) []byte {
	j := wire.JSON(dst).Lit("{")
	if v.id != nil {
		j = j.Key("id").Compact(v.id)
	}
	j = j.Bool("valid", v.valid).Arr("errors")
	for _, e := range v.errors {
		j = j.Next().Lit("{").Fields("pointer", e.Pointer, "keyword", e.Keyword, "message", e.Message).Lit("}")
	}
	return j.Lit("]}")
}

func wrong(keyword, message string) verdict {
	return verdict{errors: []schema.Violation{{Keyword: keyword, Message: message}}}
}

// check checks argument text against a schema.
func check(rawSchema, args []byte) verdict {
	s, err := schema.Compile(rawSchema)
	if err != nil {
		return wrong("schema", schemaProblem(err))
	}
	return judge(s, args)
}

func judge(s *schema.Schema, args []byte) verdict {
	if err := rawjson.Check(args, rawjson.Limits{}); err != nil {
		return wrong("json", jsonProblem(err))
	}
	errs := s.ValidateArguments(args)
	return verdict{valid: len(errs) == 0, errors: errs}
}

func schemaProblem(err error) string { return strings.TrimPrefix(err.Error(), "schema: ") }

func jsonProblem(err error) string {
	var syntax *rawjson.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("not valid JSON: %s at byte %d", strings.ReplaceAll(syntax.Kind, "_", " "), syntax.Offset)
	}
	return "not valid JSON"
}
