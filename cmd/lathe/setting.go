package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/lab/eval"
)

// The flags of settings and limits are made from the tables of package config. They are text here:
// config reads them, as it reads the file and the environment.

// A settingValue is the flag of one setting.
type settingValue struct {
	setting config.Setting
	text    string
	usual   string // the default of the command, if it is another than that of the setting
}

func (v *settingValue) Set(s string) error { v.text = s; return nil }
func (v *settingValue) String() string     { return v.text }
func (v *settingValue) Type() string       { return "value" }

// switches reports whether the setting is on or off: its flag needs no value.
func (v *settingValue) switches() bool {
	return v.setting.Default == "true" || v.setting.Default == "false"
}

// shown is the flag's value in help: the default.
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

// addEvalSettings adds the flags of settings with the defaults that evaluations have. run_timeout is --timeout there.
func addEvalSettings(fs *pflag.FlagSet) {
	addSettings(fs)
	fs.Lookup("run-timeout").Hidden = true
	for _, s := range (&eval.Suite{}).Required() {
		if v, ok := fs.Lookup(strings.ReplaceAll(s.Key, "_", "-")).Value.(*settingValue); ok {
			v.usual = s.Value
		}
	}
}

// flagText turns a sentence of the reference into the text of a flag.
func flagText(doc string) string {
	doc = strings.TrimSuffix(strings.ReplaceAll(doc, "`", ""), ".")
	if first, rest, _ := strings.Cut(doc, " "); first != strings.ToUpper(first) {
		doc = strings.ToLower(first) + " " + rest
	}
	return doc
}

// settingOverrides returns the settings that the command line changes.
func settingOverrides(cmd *cobra.Command) []config.Override {
	var over []config.Override
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(*settingValue); ok {
			over = append(over, config.Override{From: "--" + f.Name, Key: v.setting.Key, Value: v.text})
		}
	})
	return over
}

// configError says what is wrong with a configuration: one line for each problem, as editors read
// them. What only flags are to blame for is a mistake of usage.
func configError(err error) error {
	problems := config.ProblemsOf(err)
	if len(problems) == 0 {
		return &exitError{exitConfig, app.Cause(err)}
	}
	code := exitUsage
	lines := make([]string, len(problems))
	for i, p := range problems {
		if strings.HasPrefix(p.File, "--") {
			p.Key = "" // the flag says it
		} else {
			code = exitConfig
		}
		lines[i] = p.String()
	}
	if len(lines) == 1 {
		return &exitError{code, fmt.Errorf("%s", lines[0])}
	}
	return &exitError{code, fmt.Errorf("%d problems:\n%s", len(lines), strings.Join(lines, "\n"))}
}
