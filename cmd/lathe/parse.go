package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// maxParseText is the largest size of a model's text on standard input, and maxToolsFile that of the file of --tools, in bytes.
const (
	maxParseText = 64 << 20
	maxToolsFile = 16 << 20
)

type parseFlags struct {
	Dialect    string `flag:"dialect" usage:"*name* of the dialect, or auto: by the first mark in the text" complete:"written"`
	Tools      string `flag:"tools" usage:"*file* with the tools that the model was offered"`
	Cut        int    `flag:"cut" usage:"hand the text over in pieces of this many *bytes*"`
	Batch      bool   `flag:"batch" usage:"read JSON lines from standard input"`
	Deprecated bool   `flag:"allow-deprecated-syntax" usage:"read <tool:NAME>{…} as a call"`
	Bare       bool   `flag:"bare-calls" usage:"read a text that is one JSON object with a tool's name and arguments as a call"`
	StartsOpen bool   `flag:"thinking-starts-open" usage:"the text begins inside a block of thinking"`
	MaxPayload int    `flag:"max-payload-bytes" usage:"most *bytes* of one call; 0: as in runs"`
	Grammar    string `flag:"grammar" usage:"print the grammar of calls in the dialect of this *name*"`
	Form       string `flag:"form" default:"gbnf" usage:"*form* of the grammar: gbnf, xgrammar, llamacpp, vllm, sglang"`
	Choice     string `flag:"tool-choice" default:"auto" usage:"*choice* for the grammar: auto, required, or function:NAME"`
	Single     bool   `flag:"single-call" usage:"allow one call in a turn in the grammar"`
	JSON       bool   `flag:"json" usage:"print JSON, as it does anyway"`
}

func parseCommand() *cobra.Command {
	var f parseFlags
	return withFlags(&cobra.Command{
		Use:   "parse (--dialect NAME | --grammar NAME) [flags]",
		Short: "Read the tool calls in a model's text",
		Long: `Reads a model's text from standard input and prints what it says as one JSON object:
{"text","reasoning","commentary","calls":[{"id","name","arguments","incomplete"}],"errors":[{"code","bytes"}]}.
"arguments" is the argument text, as the model wrote it where the dialect writes JSON; "repair" says what was
mended in it, as "repair: safe" does in runs. A call that cannot be
read stays in "text" and is one of the "errors"; a call that the end of the text cuts off is "incomplete".
Calls whose dialect carries no id get one that depends on nothing but their place.

With --batch it reads JSON lines {"id","dialect","text","prefix","tools"} and writes one line for each, in the
same order and with the same id. "dialect" is --dialect where it is left out, "prefix" is prompt text that
stands before the text, such as an open think tag, and "tools" is as in --tools. A line that cannot be read
gets {"id","error"}, and the exit code is 1 then.

--tools names a file with the tools that the model was offered: a JSON array of OpenAI's tool objects, of
{"name","parameters"}, or of names. Dialects without an unmistakable mark take no other names for calls, and
those without types of their own take types from the schemas.

--grammar DIALECT prints what makes a server constrain a model to calls of the --tools in that dialect, and reads
nothing. --form says how: gbnf, a grammar for llama.cpp, which xgrammar reads as EBNF; xgrammar, a structural tag; or
llamacpp, vllm, sglang, the members of a request to that server. What the grammar allows beyond the schemas is
listed on standard error.`,
		Example: `  lathe parse --dialect hermes < answer.txt
  lathe parse --dialect qwen3-coder --tools tools.json --cut 1 < answer.txt
  lathe parse --batch < answers.jsonl
  lathe parse --grammar hermes --tools tools.json --form vllm`,
		Args: cobra.NoArgs,
		RunE: f.run,
	}, &f)
}

func (f *parseFlags) run(cmd *cobra.Command, _ []string) error {
	if f.Grammar != "" {
		return f.printGrammar(cmd)
	}
	switch {
	case f.Dialect == "" && !f.Batch:
		return usageError("--dialect is required: one of %s", strings.Join(dialect.Names(), ", "))
	case f.Cut < 0 || f.Cut == 0 && cmd.Flags().Changed("cut"):
		return usageError("--cut wants a number above 0")
	case f.MaxPayload < 0:
		return usageError("--max-payload-bytes must be 0 or a number of bytes, such as 8192")
	}
	job := parseJob{cut: f.Cut, opts: dialect.Options{MaxPayloadBytes: f.MaxPayload, AllowDeprecatedSyntax: f.Deprecated, BareCalls: f.Bare, ThinkingStartsOpen: f.StartsOpen}}
	if f.Dialect != "" {
		var err error
		if job.dialect, err = app.LookupDialect(f.Dialect); err != nil {
			return &exitError{exitUsage, err}
		}
	}
	if f.Tools != "" {
		var err error
		if job.opts.Tools, err = readToolsFile(f.Tools); err != nil {
			return usageError("--tools: %w", err)
		}
	}
	if f.Batch {
		return parseBatch(stdin(cmd, "JSON lines"), cmd.OutOrStdout(), &job)
	}
	text, err := readAtMost(stdin(cmd, "the text"), maxParseText)
	if err != nil {
		return failure("standard input: %w", err)
	}
	_, err = cmd.OutOrStdout().Write(job.parse(wire.JSON("{"), string(text)).Lit("}\n"))
	return err
}

// A parseJob has the dialect and the options with which a text is parsed.
type parseJob struct {
	dialect *dialect.Dialect
	opts    dialect.Options
	cut     int // bytes of a piece; 0: the whole text
}

// parse appends the parsed parts of text as members of a JSON object.
func (j *parseJob) parse(dst wire.JSON, text string) wire.JSON {
	opts := j.opts
	opts.Rand = rand.New(rand.NewPCG(1, 1)).Uint64 // the same text gets the same ids
	message, failures := j.dialect.Read(j.pieces(text), &opts)
	return appendParsed(dst, message, failures)
}

// pieces yields the pieces of a text.
func (j *parseJob) pieces(text string) iter.Seq[string] {
	size := cmp.Or(j.cut, len(text))
	return func(yield func(string) bool) {
		rest := text
		for rest != "" {
			piece := rest[:min(size, len(rest))]
			if !yield(piece) {
				return
			}
			rest = rest[len(piece):]
		}
	}
}

func appendParsed(dst wire.JSON, m lathe.Message, failures []dialect.Failure) wire.JSON {
	var shown, reasoning, commentary strings.Builder
	calls := wire.JSON("[")
	for _, part := range m.Parts {
		switch p := part.(type) {
		case lathe.Text:
			if p.Commentary {
				commentary.WriteString(p.Text)
			} else {
				shown.WriteString(p.Text)
			}
		case lathe.Reasoning:
			reasoning.WriteString(p.Text)
		case lathe.ToolCall:
			if p.ParseError == "" {
				calls = appendParsedCall(calls, &p)
			}
		default: // dialects produce no other parts
		}
	}
	dst = dst.Fields("text", shown.String(), "reasoning", reasoning.String(), "commentary", commentary.String(), "calls", calls.Lit("]")).Arr("errors")
	for _, f := range failures {
		dst = dst.Next().Lit("{").Fields("code", string(f.Code), "bytes", f.Bytes).Lit("}")
	}
	return dst.Lit("]")
}

func appendParsedCall(dst wire.JSON, c *lathe.ToolCall) wire.JSON {
	args, mended := c.Arguments, ""
	if !c.Incomplete && !rawjson.IsObject([]byte(args), rawjson.Limits{}) {
		if object, how, ok := rawjson.RepairObject(bytes.TrimSpace([]byte(args))); ok {
			args, mended = string(object), how
		}
	}
	return dst.Next().Lit("{").Fields("id", c.ID, "name", c.Name, "arguments", args, "repair", wire.Optional(mended), "incomplete", c.Incomplete).Lit("}")
}

// parseBatch writes one line for each line of in.
func parseBatch(in io.Reader, out io.Writer, job *parseJob) error {
	bad := 0
	err := eachLine(in, out, func(line []byte) []byte {
		out, err := parseLine(line, job)
		if err != nil {
			bad++
		}
		return out
	})
	if err == nil && bad > 0 {
		err = failure("%s could not be read", count(bad, "line"))
	}
	return err
}

// parseLine parses the text of one line of a batch, such as {"id":1,"dialect":"hermes","text":"Hello"}. After an error, the result has its
// text.
func parseLine(line []byte, job *parseJob) ([]byte, error) {
	members, err := lineMembers(line, "id", "dialect", "text", "prefix", "tools")
	id, idErr := lineID(members)
	out := wire.JSON("{").Val("id", id)
	var text string
	switch {
	case idErr != nil:
		err = fmt.Errorf("id: %w", idErr)
	case err == nil:
		job, text, err = job.forLine(members)
	}
	if err != nil {
		return out.Str("error", err.Error()).Lit("}"), err
	}
	return job.parse(out, text).Lit("}"), nil
}

// forLine returns a copy of the job with what the members of a line set, and the text of the line.
func (j *parseJob) forLine(members map[string][]byte) (job *parseJob, text string, err error) {
	job = new(*j)
	texts := map[string]string{}
	for _, name := range []string{"dialect", "text", "prefix"} {
		raw := members[name]
		if raw == nil || string(raw) == "null" {
			continue
		}
		if raw[0] != '"' {
			return nil, "", errors.New(name + " is no string")
		}
		texts[name] = rawjson.Text(raw)
	}
	if members["text"] == nil {
		return nil, "", errors.New("there is no text")
	}
	if name := texts["dialect"]; name != "" {
		if job.dialect, err = app.LookupDialect(name); err != nil {
			return nil, "", err
		}
	}
	if job.dialect == nil {
		return nil, "", errors.New("there is no dialect")
	}
	if raw := members["tools"]; raw != nil && string(raw) != "null" {
		if job.opts.Tools, err = parsedTools(raw); err != nil {
			return nil, "", fmt.Errorf("tools: %w", err)
		}
	}
	job.opts.Prefix = texts["prefix"]
	return job, texts["text"], nil
}

func readToolsFile(path string) ([]*lathe.ToolSpec, error) {
	b, err := readFile(path, maxToolsFile)
	if err != nil {
		return nil, err
	}
	return parsedTools(b)
}

// parsedTools parses the tools that a model was offered. It accepts names that tools of Lathe cannot have, because the text may come from
// another program.
func parsedTools(raw []byte) ([]*lathe.ToolSpec, error) {
	if err := rawjson.Check(raw, rawjson.Limits{}); err != nil {
		return nil, errors.New(jsonProblem(err))
	}
	raw = raw[rawjson.SkipSpace(raw, 0):]
	if raw[0] == '{' {
		if list, ok := rawjson.Get(raw, "tools"); ok {
			raw = list
		}
	}
	if raw[0] != '[' {
		return nil, errors.New("want an array of tools")
	}
	var tools []*lathe.ToolSpec
	for el := range rawjson.Elements(raw) {
		t, err := parsedTool(el)
		if err != nil {
			return nil, fmt.Errorf("tool %d: %w", len(tools)+1, err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

func parsedTool(raw []byte) (*lathe.ToolSpec, error) {
	if raw[0] == '"' {
		return &lathe.ToolSpec{Name: rawjson.Text(raw)}, nil
	}
	if raw[0] != '{' {
		return nil, errors.New("neither a name nor an object")
	}
	if fn, ok := rawjson.Get(raw, "function"); ok && fn[0] == '{' {
		raw = fn
	}
	name, ok := rawjson.Get(raw, "name")
	if !ok || name[0] != '"' {
		return nil, errors.New("it has no name")
	}
	t := &lathe.ToolSpec{Name: rawjson.Text(name)}
	for _, key := range []string{"parameters", "input_schema", "schema"} {
		if schema, ok := rawjson.Get(raw, key); ok && schema[0] == '{' {
			t.Schema = slices.Clone(schema)
			break
		}
	}
	return t, nil
}
