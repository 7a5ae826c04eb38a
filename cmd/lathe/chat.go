package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/jsonlines"
	"github.com/lathe-run/lathe/internal/markdown"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
)

type chatFlags struct {
	runFlags
	server  serverFlags
	history string
}

func chatCommand() *cobra.Command {
	var f chatFlags
	cmd := withFlags(&cobra.Command{
		Use:   "chat [flags]",
		Short: "Chat with a model and its tools in the terminal",
		Long: `Reads a line, shows the answer as it comes, and keeps the conversation. Tools and approvals are those of
` + "`lathe run`" + `; with --server those of a gateway, which then has the runs. /help lists the commands of the chat.

Ctrl-C stops the answer; at the prompt it ends the chat, as Ctrl-D and /quit do. Lines are kept for the arrow keys in
--history, a file of its owner, at most ` + fmt.Sprint(maxHistoryLines) + ` of them. Answers are shown with lists, tables, code and emphasis, and as they were
written with --plain or where stdout is no terminal. Where standard input is no terminal, each line of it is a message.`,
		Example: `  lathe chat
  lathe chat --base-url http://127.0.0.1:11434/v1 --model qwen3
  lathe chat --server http://127.0.0.1:8700`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              f.run,
	}, &f.modelFlags)
	fl := cmd.Flags()
	fl.Lookup("model").Usage = "`name` of a configured model, of a model at --base-url, of the gateway, or sim/…"
	f.server.beside(cmd)
	withFlags(cmd, &f.prompt)
	fl.Lookup("tools").Usage = "`names` of the tools that the chat may use, \"\" for none; default: all that are configured"
	fl.StringVar(&f.history, "history", defaultHistory(), "`file` of the lines that were typed, \"\" for none")
	fl.BoolVarP(&f.Quiet, "quiet", "q", false, "no tool activity on stderr")
	withFlags(cmd, &f.logFlags, &f.simFlags)
	group(cmd, "Settings and limits, with their defaults (tool_calling in lathe.yaml; see docs/config.md):", addSettings)
	return cmd
}

// defaultHistory returns the path of the history in the user's configuration folder, or "" if there is no such folder.
func defaultHistory() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "lathe", "chat_history")
}

// A chatBackend answers conversations: a session in this process, or a gateway.
type chatBackend interface {
	// answer shows the answer to the last message on the screen and returns the conversation with the answer appended. After an error it
	// returns the part of the conversation that can be sent again.
	answer(ctx context.Context, conversation []lathe.Message) ([]lathe.Message, error)
	model() string
	models(ctx context.Context) ([]string, error)
	use(ctx context.Context, model string) error
	tools(ctx context.Context) ([]chatTool, error)
	close(ctx context.Context) error
}

// A chatTool is a tool that the model may call.
type chatTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Effect      string `json:"effect"`
	Policy      string `json:"policy"`
}

// A chat is the state of a conversation at the terminal. After run has set it up, only conversation and stop change.
type chat struct {
	flags       *chatFlags
	cmd         *cobra.Command
	typed       *keys // standard input
	interactive bool  // a user types at a terminal
	backend     chatBackend
	lines       lineReader
	view        *screen           // of the backend, which calls useScreen once
	person      *terminalApprover // nil: no approvals are possible

	system       []lathe.Message
	conversation []lathe.Message

	stop atomic.Pointer[context.CancelCauseFunc] // stops the current answer; nil: none
}

var errStopped = errors.New("stopped")

// run opens the backend and the input, and runs the chat.
func (f *chatFlags) run(cmd *cobra.Command, _ []string) (err error) {
	ctx := cmd.Context()
	c := &chat{flags: f, cmd: cmd}
	if f.prompt.System != "" {
		c.system = []lathe.Message{lathe.System(f.prompt.System)}
	}
	defer onInterrupt(ctx, c.interrupt)()
	in := cmd.InOrStdin()
	c.typed = newKeys(in)
	c.interactive = isTerminal(in) && isTerminal(cmd.ErrOrStderr())
	if c.backend, err = f.open(cmd, c.useScreen); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.backend.close(context.WithoutCancel(ctx))) }()
	plain, _ := cmd.Flags().GetBool("plain") // every command has this flag
	if c.view.outTerm && !plain {
		c.view.markdown = markdown.New(c.view.out, c.view.colour)
	}
	c.lines = &plainLines{jsonlines.NewReader(interruptible(ctx, in), maxPrompt)}
	if c.interactive {
		history, err := openHistory(f.history)
		if err != nil {
			c.view.note("lines of earlier chats are not read, and none are kept: " + err.Error())
		}
		c.lines = &terminalLine{keys: c.typed, tty: in.(*os.File), prompt: cmd.ErrOrStderr(), history: history, complete: c.complete}
		c.say("%s; /help lists the commands, Ctrl-C stops an answer, Ctrl-D ends the chat\n", printable(c.backend.model()))
	}
	return c.loop()
}

// useScreen sets the screen of the chat, and returns the approver that asks the user on it; nil if there is no user.
func (c *chat) useScreen(view *screen) lathe.Approver {
	c.view = view
	if !c.interactive {
		return nil
	}
	c.person = newTerminalApprover(answerKeys{&keyReader{c.typed, c.cmd.Context()}}, view)
	return c.person
}

// answerKeys reads input while an answer is shown. Each question takes the input over from earlier readers.
type answerKeys struct{ *keyReader }

// Read implements io.Reader.
func (a answerKeys) Read(p []byte) (int, error) {
	a.keys.take(a.keyReader)
	return a.keyReader.Read(p[:1]) // input after the end of a line is for the prompt
}

func (c *chat) say(format string, args ...any) { c.view.ask(fmt.Sprintf(format, args...)) }

// interrupt stops the current answer, and reports whether there was one.
func (c *chat) interrupt() bool {
	stop := c.stop.Swap(nil) // a second Ctrl-C ends the chat
	if stop == nil {
		return false
	}
	(*stop)(errStopped)
	return true
}

// loop reads and processes lines until the input ends.
func (c *chat) loop() error {
	for {
		line, err := c.lines.readLine(c.cmd.Context())
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errStop):
			return nil
		case c.cmd.Context().Err() != nil:
			return errInterrupted
		case err != nil:
			return err
		}
		text := strings.TrimSpace(line)
		isCommand := strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//")
		switch {
		case isCommand:
			quit, err := c.command(text)
			if err != nil {
				c.say("lathe: %v\n", err)
			}
			if quit {
				return nil
			}
		case text != "":
			if err := c.send(strings.TrimPrefix(line, "/")); err != nil {
				return err
			}
		}
	}
}

// send adds a message to the conversation and shows the answer. A failed answer is not an error: the chat continues.
func (c *chat) send(text string) error {
	ctx, cancel := context.WithCancelCause(c.cmd.Context())
	defer cancel(nil)
	c.stop.Store(&cancel)
	defer c.stop.Store(nil)
	if c.person != nil {
		c.person.forget()
	}
	after, err := c.backend.answer(ctx, slices.Concat(c.system, c.conversation, []lathe.Message{lathe.User(text)}))
	if n := len(after); n > len(c.system) && after[n-1].Role != lathe.RoleUser {
		c.conversation = slices.Clone(after[len(c.system):])
	}
	switch {
	case c.cmd.Context().Err() != nil:
		return errInterrupted
	case errors.Is(context.Cause(ctx), errStopped):
		c.say("stopped\n")
	case err != nil:
		c.say("lathe: %v\n", err)
	}
	if c.view.outErr != nil {
		return failure("writing the answer: %w", c.view.outErr)
	}
	return nil
}

// chatCommands are the commands of the chat: name, argument and description.
var chatCommands = [][3]string{
	{"/help", "", "list these commands"},
	{"/model", "[NAME]", "show the models, or use another one from now on"},
	{"/tools", "", "list the tools, with what policy says of them"},
	{"/new", "", "begin a new conversation"},
	{"/save", "FILE", "write the conversation to a new file: JSON if its name ends with .json, else Markdown"},
	{"/quit", "", "end the chat"},
}

// command executes a command of chatCommands.
func (c *chat) command(line string) (quit bool, err error) {
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	ctx := c.cmd.Context()
	switch name {
	case "/quit", "/exit":
		return true, nil
	case "/help":
		var t report.Table
		for _, row := range chatCommands {
			t.Row(row[0]+" "+row[1], row[2])
		}
		t.Row("//", "a message that begins with /")
		return false, t.Write(c.cmd.ErrOrStderr())
	case "/new":
		c.conversation = nil
		c.say("a new conversation\n")
		return false, nil
	case "/model":
		return false, c.chooseModel(ctx, arg)
	case "/tools":
		return false, c.listTools(ctx)
	case "/save":
		return false, c.save(arg)
	}
	var names []string
	for _, row := range chatCommands {
		names = append(names, row[0])
	}
	return false, fmt.Errorf("unknown command %q: %s", printable(name), text.Suggest(name, names, "/help lists them"))
}

func (c *chat) chooseModel(ctx context.Context, name string) error {
	if name != "" {
		if err := c.backend.use(ctx, name); err != nil {
			return err
		}
		c.say("%s answers from now on\n", printable(c.backend.model()))
		return nil
	}
	names, err := c.backend.models(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		mark := " "
		if name == c.backend.model() {
			mark = "*"
		}
		c.say("%s %s\n", mark, printable(name))
	}
	return nil
}

func (c *chat) listTools(ctx context.Context) error {
	tools, err := c.backend.tools(ctx)
	if err != nil {
		return err
	}
	if len(tools) == 0 {
		c.say("the model has no tools\n")
	}
	var table report.Table
	for _, t := range tools {
		table.Row(printable(t.Name), t.Effect, t.Policy, printable(text.FirstSentence(t.Description)))
	}
	return table.Write(c.cmd.ErrOrStderr())
}

// save writes the conversation to a file, which must not exist.
func (c *chat) save(path string) error {
	if path == "" {
		return errors.New("/save wants a FILE, such as /save chat.md")
	}
	if len(c.conversation) == 0 {
		return errors.New("the conversation is empty: there is nothing to save")
	}
	var text []byte
	var err error
	all := slices.Concat(c.system, c.conversation)
	if strings.HasSuffix(path, ".json") {
		text, err = json.MarshalIndent(all, "", "  ")
		text = append(text, '\n')
	} else {
		text = []byte(transcript(all))
	}
	if err == nil {
		err = writeNew(path, text)
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("/save: %s is there already: name another file", printable(path))
	case err != nil:
		return fmt.Errorf("/save: %w", err)
	}
	c.say("wrote %s, %s\n", printable(path), count(len(c.conversation), "message"))
	return nil
}

// transcript returns a conversation as Markdown, without results of tools.
func transcript(messages []lathe.Message) string {
	var b strings.Builder
	for _, m := range messages {
		text := m.Text()
		if m.Role == lathe.RoleTool { // the JSON form contains tool results
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n", m.Role)
		if text != "" {
			fmt.Fprintf(&b, "%s\n\n", strings.TrimRight(text, "\n"))
		}
		for _, call := range m.Calls() {
			fmt.Fprintf(&b, "- called `%s`\n", call.Name)
		}
		if len(m.Calls()) > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// complete returns the completions of a line: commands, and models after /model.
func (c *chat) complete(line string) (out []string) {
	if rest, ok := strings.CutPrefix(line, "/model "); ok {
		names, err := c.backend.models(c.cmd.Context())
		if err != nil {
			return nil
		}
		for _, name := range names {
			if strings.HasPrefix(name, rest) && name == printable(name) {
				out = append(out, "/model "+name)
			}
		}
		return out
	}
	for _, row := range chatCommands {
		word := row[0]
		if row[1] != "" {
			word += " "
		}
		if strings.HasPrefix(word, line) {
			out = append(out, word)
		}
	}
	return out
}
