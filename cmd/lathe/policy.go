package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/server"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Explain what policy decides about a call"}
	cmd.AddCommand(policyExplainCommand())
	return cmd
}

type explainFlags struct {
	Labels    map[string]string `flag:"label" usage:"label of the run, as *name=value*; may be repeated"`
	Principal string            `flag:"principal" usage:"who runs, such as the *name* of an API key"`
	Session   string            `flag:"session" usage:"*id* of the session"`
	Used      []string          `flag:"used" usage:"*tools* that the run has used before; a name counts as often as it stands there"`
	Turn      int               `flag:"turn" default:"1" usage:"*number* of the turn"`
	JSON      bool              `flag:"json" usage:"print one JSON object"`
}

func policyExplainCommand() *cobra.Command {
	var f explainFlags
	return withFlags(&cobra.Command{
		Use:   "explain TOOL [ARGUMENTS]",
		Short: "Show which rules match a call, and which one decides",
		Long: `Prints what policy decides about a call: the decision, the rule that makes it, and for every other rule why it
does not decide. No tool is called. ARGUMENTS is a JSON object, or - to read it from standard input. The exit code
is 0 if the call is allowed, and 5 if it is denied or requires an approval.`,
		Example: `  lathe policy explain send_mail '{"to":"ann@example.com"}'
  lathe policy explain --label env=prod --used web_fetch --json send_mail '{}'`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: first(completeTools),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := "{}"
			if len(args) == 2 {
				var err error
				if text, err = argumentText(cmd, args[1]); err != nil {
					return err
				}
			}
			return f.explain(cmd, args[0], text)
		},
	}, &f)
}

func (f *explainFlags) explain(cmd *cobra.Command, name, args string) error {
	cfg, set, err := configuredTools(cmd)
	if err != nil {
		return err
	}
	if _, ok := set.Lookup(name); !ok {
		return noTool("", name, set)
	}
	if err := rawjson.Check([]byte(args), rawjson.Limits{}); err != nil {
		return usageError("the arguments are not JSON: %w", err)
	}
	if strings.TrimSpace(args)[0] != '{' {
		return usageError("the arguments are not a JSON object")
	}
	pol, err := app.NewPolicy(cfg)
	if err != nil {
		return err
	}
	out, unknown := app.ExplainCall(set, pol, &server.PolicyCall{Tool: name, Arguments: json.RawMessage(args), Principal: f.Principal, Session: f.Session, Labels: f.Labels, Used: f.Used}, f.Turn)
	if unknown != "" {
		return noTool("--used: ", unknown, set)
	}
	idle := idleGuards(cfg, set.Specs())
	for i := range out.Rules {
		r := &out.Rules[i]
		if why := idle[r.Rule]; why != "" && !r.Matched {
			r.Why = why
		}
		r.Source = "" // not printed
	}
	if err := printExplanation(cmd, out, f.JSON); err != nil {
		return err
	}
	if out.Decision != lathe.Allow.String() {
		return &exitError{exitPolicy, nil}
	}
	return nil
}

func printExplanation(cmd *cobra.Command, out *server.Explanation, asJSON bool) error {
	if asJSON {
		return writeLines(cmd, out)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, by rule %s\n", out.Tool, out.Decision, out.Rule)
	width := 0
	for _, f := range out.Rules {
		width = max(width, len(f.Rule))
	}
	for _, f := range out.Rules {
		mark := " "
		switch {
		case f.Decides:
			mark = "*"
		case f.Matched:
			mark = "+"
		}
		fmt.Fprintf(&b, "%s %-*s  %-5s  %s\n", mark, width, f.Rule, f.Decision, visible(cmp.Or(f.Why, "it fits")))
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), b.String())
	return err
}
