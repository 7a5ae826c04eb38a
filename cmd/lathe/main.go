// Command lathe runs models with tools. `lathe help` lists its commands; data goes to stdout,
// messages go to stderr.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // zones by name on machines that have none

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/stdlog"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3
	exitUpstream    = 4
	exitPolicy      = 5
	exitInterrupted = 130
)

// An exitError ends the program with an exit code. If err is nil, nothing more is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

var (
	errReported    = &exitError{code: exitFailed} // the output describes the failure
	errInterrupted = &exitError{exitInterrupted, errors.New("interrupted")}
)

// exit returns an error that ends the program with an exit code.
func exit(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// exitCause returns an error that ends the program with an exit code and the cause of err, without the parts that are for programs.
func exitCause(code int, err error) error { return &exitError{code, app.Cause(err)} }

func failure(format string, args ...any) error { return exit(exitFailed, format, args...) }

func usageError(format string, args ...any) error { return exit(exitUsage, format, args...) }

// joinClose closes c and adds its error to err, the error of a function that defers the call.
func joinClose(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }

func main() {
	log.SetOutput(stdlog.Writer(nil)) // libraries log texts of servers there
	ctx, cancel := context.WithCancel(context.Background())
	ctx, own := withInterrupts(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			if sig == os.Interrupt && own.handle() {
				continue
			}
			signal.Stop(signals) // a second Ctrl-C ends the program at once
			if isTerminal(os.Stderr) {
				fmt.Fprintln(os.Stderr) // a new line after the ^C that the terminal shows
			}
			cancel()
			return
		}
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code. It returns soon after ctx is done.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	root := commandOf(in, out, errw, args)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		// All other errors come from parsing the command line.
		e = &exitError{exitUsage, err}
	}
	if msg := e.Error(); msg != "" {
		msg += advice(e, msg)
		fmt.Fprintf(errw, "lathe: %s\n", msg)
		if e.code == exitUsage {
			fmt.Fprintf(errw, "see `%s --help`\n", cmd.CommandPath())
		}
	}
	return e.code
}

// advice returns the next step after an error of the operating system, or "" for other errors. msg is the text of the error.
func advice(err error, msg string) string {
	var locked *app.LockedError
	switch {
	case errors.As(err, &locked) && strings.HasSuffix(msg, locked.Error()):
		return "; end that process, or name another store; `lathe runs --server URL` reads the runs of a running `lathe serve`"
	case strings.HasSuffix(msg, "no such file or directory"), strings.HasSuffix(msg, "The system cannot find the file specified."):
		return ": check the path"
	case strings.HasSuffix(msg, "permission denied"):
		return ": check who may read and write it, and its folder"
	case errors.Is(err, lathe.ErrStoreFull), strings.HasSuffix(msg, "no space left on device"):
		return ": free space on that disk, and give the command again; `lathe runs resume` continues a run that the store has"
	case strings.HasSuffix(msg, "is a directory"):
		return ": name a file in that folder"
	}
	return ""
}
