package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/lab/eval"
)

// The flags of settings and limits are made from the tables of package config. Their values are texts, which config parses like those of
// the file and the environment.

// A settingValue is the value of the flag of one setting.
type settingValue struct {
	setting config.Setting
	text    string
	usual   string // default of the command; "": that of the setting
}

func (v *settingValue) Set(s string) error { v.text = s; return nil }
func (v *settingValue) String() string     { return v.text }
func (v *settingValue) Type() string       { return "value" }

// switches reports whether the setting is a boolean, whose flag needs no value.
func (v *settingValue) switches() bool {
	return v.setting.Default == "true" || v.setting.Default == "false"
}

// shown returns the default in the form of the help text.
func (v *settingValue) shown() string {
	usual := cmp.Or(v.usual, v.setting.Default)
	if strings.ContainsAny(usual, " \t") {
		return strconv.Quote(usual)
	}
	return usual
}

func addSettings(fs *pflag.FlagSet) {
	for _, s := range config.RunSettings() {
		v := &settingValue{setting: s}
		f := fs.VarPF(v, s.Flag, "", flagText(s.Doc))
		if v.switches() {
			f.NoOptDefVal = "true"
		}
	}
}

// addEvalSettings adds the flags of settings with the defaults of evaluations. It hides run-timeout, which --timeout replaces.
func addEvalSettings(fs *pflag.FlagSet) {
	addSettings(fs)
	fs.Lookup("run-timeout").Hidden = true
	for _, s := range (&eval.Suite{}).Required() {
		if v, ok := fs.Lookup(strings.ReplaceAll(s.Key, "_", "-")).Value.(*settingValue); ok {
			v.usual = s.Value
		}
	}
}

// flagText converts a sentence of the reference into the usage text of a flag.
func flagText(doc string) string {
	doc = strings.TrimSuffix(strings.ReplaceAll(doc, "`", ""), ".")
	if first, rest, _ := strings.Cut(doc, " "); first != strings.ToUpper(first) {
		doc = strings.ToLower(first) + " " + rest
	}
	return doc
}

// settingOverrides returns the settings that flags set.
func settingOverrides(cmd *cobra.Command) []config.Override {
	var over []config.Override
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(*settingValue); ok {
			over = append(over, config.Override{From: "--" + f.Name, Key: v.setting.Key, Value: v.text})
		}
	})
	return over
}

// configError returns an error for a configuration that is not valid, with one line for each problem in a format that editors parse. If all
// problems come from flags, it is a usage error.
func configError(err error) error {
	problems := config.ProblemsOf(err)
	if len(problems) == 0 {
		return exitCause(exitConfig, err)
	}
	code := exitUsage
	lines := make([]string, len(problems))
	for i, p := range problems {
		if strings.HasPrefix(p.File, "--") {
			p.Key = "" // the flag names the key
		} else {
			code = exitConfig
		}
		lines[i] = p.String()
	}
	if len(lines) == 1 {
		return &exitError{code, errors.New(lines[0])}
	}
	return &exitError{code, fmt.Errorf("%d problems:\n%s", len(lines), strings.Join(lines, "\n"))}
}
