package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Sources returns the folder of the repository. It works in the folder of the bench module and in those below it.
func Sources(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/lathe-run/lathe").Output()
	if err != nil {
		return "", fmt.Errorf("finding the sources of lathe (run this in bench/): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// BuildLathe builds the program of this repository into the file path.
func BuildLathe(ctx context.Context, path string) error {
	dir, err := Sources(ctx)
	if err != nil {
		return err
	}
	return Build(ctx, dir, path)
}

// Build builds lathe from the sources in dir into the file path.
func Build(ctx context.Context, dir, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/lathe")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off") // else as tests build it, so that packages are compiled once
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building lathe: %w", err)
	}
	return nil
}
