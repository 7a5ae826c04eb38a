package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

// stdin returns the standard input of the command. Reads end when the command is interrupted. On a terminal it prints a note that the
// command waits for input.
func stdin(cmd *cobra.Command, what string) io.Reader {
	in := cmd.InOrStdin()
	if isTerminal(in) {
		cmd.PrintErrf("reading %s from standard input; Ctrl-D ends it\n", what)
	}
	return interruptible(cmd.Context(), in)
}

// interruptible returns a reader of r whose Read returns when ctx is done. A read in progress then continues until the process ends,
// because a read from a terminal cannot be cancelled.
func interruptible(ctx context.Context, r io.Reader) io.Reader { return newKeys(r).reader(ctx) }

// readAtMost reads all of r, which must have at most most bytes.
func readAtMost(r io.Reader, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(b) > most {
		err = fmt.Errorf("larger than %s", bytesText(most))
	}
	return b, err
}

// readNamedFile does the same as readFile, with errors that name the file.
func readNamedFile(path string, most int) ([]byte, error) {
	b, err := readFile(path, most)
	var named *fs.PathError
	if err != nil && (!errors.As(err, &named) || named.Op != "open") {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return b, err
}

// readFile reads a file of at most most bytes.
func readFile(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, most)
}
