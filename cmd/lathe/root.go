package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/startgc"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topCommands returns the commands below `lathe`: their names and the functions that make them.
func topCommands() []topCommand {
	return []topCommand{
		{"run", runCommand}, {"chat", chatCommand}, {"serve", serveCommand}, {"init", initCommand}, {"open", openCommand},
		{"man", manCommand}, {"worker", workerCommand}, {"connect", connectCommand}, {"runs", runsCommand}, {"usage", usageCommand},
		{"store", storeCommand}, {"audit", auditCommand}, {"parse", parseCommand}, {"tools", toolsCommand}, {"mcp", mcpCommand},
		{"guest", guestCommand}, {"policy", policyCommand}, {"eval", evalCommand}, {"sim", simCommand}, {"doctor", doctorCommand},
		{"verify", verifyCommand}, {"config", configCommand}, {"keys", keysCommand}, {"version", versionCommand},
	}
}

type topCommand struct {
	name string
	make func() *cobra.Command
}

// commandOf returns the root with only the command that args name, or with all commands if the first argument is not a command: making all
// commands and their flags would double the time of a start. A command that needs the others calls [rootCommand].
func commandOf(in io.Reader, out, errw io.Writer, args []string) *cobra.Command {
	if len(args) > 0 {
		for _, top := range topCommands() {
			if top.name == args[0] {
				root := bareRoot(in, out, errw)
				root.AddCommand(top.make())
				root.CompletionOptions.DisableDefaultCmd = true
				requireSubcommand(root)
				return root
			}
		}
	}
	return rootCommand(in, out, errw, args)
}

// rootCommand returns the root with all commands. args is the command line, for shell completion.
func rootCommand(in io.Reader, out, errw io.Writer, args []string) *cobra.Command {
	root := bareRoot(in, out, errw)
	for _, top := range topCommands() {
		root.AddCommand(top.make())
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short, c.Long = "Print a script that completes commands in a shell", ""
		}
	}
	requireSubcommand(root)
	completeEnums(root)
	return root
}

// bareRoot returns the root without commands.
func bareRoot(in io.Reader, out, errw io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "lathe",
		Short: "Run models with tools",
		Long: `Lathe executes the tool calls of language models: it validates each call, applies limits, policy and approvals,
executes the tool, returns the result to the model, and stores each step. ` + "`lathe run` and `lathe chat`" + ` do this in the
terminal, ` + "`lathe serve`" + ` is a gateway with the APIs of OpenAI, Anthropic and Google.

Exit codes: 0 done, 1 failed, 2 usage, 3 config, 4 model server, 5 denied or waiting for an approval, 130 interrupted.`,
		Example: `  lathe run "What is 7 + 35, and what time is it in Tokyo?"
  lathe run --base-url http://127.0.0.1:11434/v1 --model qwen3 "What is 7 + 35?"
  lathe tools list
  lathe sim serve`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version, _ := cmd.Flags().GetBool("version"); version { // the flag is defined below
				_, err := fmt.Fprintln(cmd.OutOrStdout(), currentVersion())
				return err
			}
			return cmd.Help()
		},
	}
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	root.SetHelpCommand(helpCommand())
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(printUsage)
	root.PersistentFlags().String("config", "", "configuration `file`; default lathe.yaml where it exists")
	root.PersistentFlags().Bool("no-color", false, "no colours, as with NO_COLOR")
	root.PersistentFlags().Bool("plain", false, "no colours, no overwritten lines, and answers as the model wrote them")
	root.InitDefaultHelpFlag() // before --version, in the order of the help text
	// Cobra's own flag uses a template, and a program that executes templates contains the methods of all of its types.
	root.Flags().BoolP("version", "v", false, "version for lathe")
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		choosePlain(cmd)
		if cmd.Name() == "serve" && cmd.Parent() == cmd.Root() { // serve resumes after it has begun to listen
			startgc.ResumeAtCollection()
			return
		}
		startgc.Resume()
	}
	return root
}

// choosePlain sets the environment variables for --no-color and --plain, which apply to the whole program.
func choosePlain(cmd *cobra.Command) {
	for flag, variable := range map[string][2]string{"no-color": {"NO_COLOR", "1"}, "plain": {"TERM", "dumb"}} {
		if on, _ := cmd.Flags().GetBool(flag); on { // every command has this flag
			_ = os.Setenv(variable[0], variable[1]) // cannot fail: both names are valid
		}
	}
}

// wants accepts from least to most arguments. message is the format of the error, with a verb for the number of arguments.
func wants(least, most int, message string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return usageError(message, n)
		}
		return nil
	}
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageError("unknown command %q: `lathe help` lists them", strings.Join(args, " "))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// requireSubcommand makes each command that only groups subcommands return an error that lists them and suggests the closest name. It also
// adds exit codes to the errors of a command's work, to distinguish them from errors in the command line.
func requireSubcommand(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false // the help text lists flags in the order of definition
	if cmd.HasSubCommands() && !worksItself(cmd) {
		cmd.Args = missingSubcommand
		if cmd.RunE == nil && cmd.Run == nil {
			cmd.RunE = func(*cobra.Command, []string) error { return nil }
		}
	}
	if cmd.RunE != nil {
		cmd.RunE = withExitCode(cmd.RunE)
	}
	for _, c := range cmd.Commands() {
		requireSubcommand(c)
	}
}

// missingSubcommand returns the error for a command that only groups subcommands. The root without arguments prints the help text instead.
func missingSubcommand(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	switch {
	case len(args) > 0:
		return usageError("unknown command %q: %s", args[0], text.Suggest(args[0], names, cmd.CommandPath()+" has "+strings.Join(names, ", ")))
	case cmd.HasParent():
		return usageError("%s needs a command: %s", cmd.CommandPath(), strings.Join(names, ", "))
	}
	return nil
}

// withExitCode returns work with an exit code for each of its errors. Any error after an interruption is that of the interruption.
func withExitCode(work func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := work(cmd, args)
		var e *exitError
		hasCode := errors.As(err, &e)
		switch {
		case err == nil:
			return nil
		case hasCode && e.code == exitInterrupted:
			return err
		case cmd.Context().Err() != nil:
			return errInterrupted
		case hasCode:
			return err
		}
		return workError(err)
	}
}

// refuseFlags returns a usage error for the first of the flags that is given. message is a format with a verb for its name.
func refuseFlags(cmd *cobra.Command, message string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usageError(message, name)
		}
	}
	return nil
}

// workError adds an exit code to an error of a command's work that has none. For errors of package app the code of the error determines it;
// code and operation are removed from their text, because they are meant for programs.
func workError(err error) *exitError {
	var e *lathe.Error
	if !errors.As(err, &e) || e.Op != app.Op {
		return &exitError{exitFailed, err}
	}
	if err == error(e) { //nolint:errorlint // only the outermost error is shown by its cause
		err = app.Cause(err)
	}
	switch e.Code {
	case lathe.CodeInvalidConfig:
		return &exitError{exitConfig, err}
	case lathe.CodeInvalidRequest:
		return &exitError{exitUsage, err}
	case lathe.CodeUnavailable:
		return &exitError{exitUpstream, err}
	default:
		return &exitError{exitFailed, err}
	}
}

// worksItself reports whether a command with subcommands can also be called with arguments.
func worksItself(cmd *cobra.Command) bool { return strings.Contains(cmd.Use, " ") }

// otherFlags maps common flags of other programs to those of lathe.
var otherFlags = map[string]string{"port": "addr", "host": "addr", "listen": "addr", "bind": "addr", "timeout": "run-timeout", "api-key": "key-env", "url": "base-url",
	"max-turns": "max-iterations", "verbose": "log"}

// flagError returns the error for a flag that is unknown, or whose value is missing or not valid, with advice.
func flagError(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if errors.As(err, &missing) && len(missing.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := "--" + missing.GetSpecifiedName()
		other := otherFlags[missing.GetSpecifiedName()]
		switch {
		case name == "--preset":
			return usageError("unknown flag --preset: presets belong to models in lathe.yaml, as models.NAME.profile")
		case other != "" && slices.Contains(names, "--"+other):
			return usageError("unknown flag %s: it is called --%s here", name, other)
		}
		if suggestion := text.Suggest(name, names, ""); suggestion != "" {
			return usageError("unknown flag %s: %s", name, suggestion)
		}
	}
	if missing != nil && missing.GetSpecifiedShortnames() != "" {
		return usageError("%w; what begins with - and is no flag goes after --", err)
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag, value, kind := "--"+invalid.GetFlag().Name, invalid.GetValue(), invalid.GetFlag().Value.Type()
		_, notNumber := strconv.Atoi(value)
		switch {
		case kind == "duration" && notNumber == nil:
			return usageError("%s: %q has no unit: write %ss", flag, value, value)
		case kind == "duration":
			return usageError("%s: %q is not a time, such as 30s or 5m", flag, value)
		case strings.HasPrefix(kind, "int"):
			return usageError("%s: %q is not a whole number, such as 5", flag, value)
		}
	}
	var bare *pflag.ValueRequiredError
	if errors.As(err, &bare) {
		name, usage := pflag.UnquoteUsage(bare.GetFlag())
		return usageError("--%s needs a value: --%s %s (%s)", bare.GetFlag().Name, bare.GetFlag().Name, strings.ToUpper(name), usage)
	}
	return &exitError{exitUsage, err}
}
