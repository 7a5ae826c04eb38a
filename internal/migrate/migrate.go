// Package migrate updates the schema of a database with numbered scripts: migrations/0001_NAME.sql creates version 1 in an empty database,
// and each further script creates its version from the previous one. A released script never changes: each new version is a new file.
package migrate

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

// A Schema has the scripts of one kind of database, such as SQLite.
type Schema struct {
	Files fs.FS // contains the directory migrations
	// Newer is the error format for a database of a newer version, with two %d: that version, and the newest known version.
	Newer string
}

// A Script changes the schema from the previous version to its own.
type Script struct {
	Version int // from 1
	Text    string
}

// A Database is the database that [Schema.Update] migrates.
type Database interface {
	// Version returns the version of the schema, or 0 if the database is empty. It takes no lock.
	Version(ctx context.Context) (int, error)
	// Apply executes scripts and records their versions in one transaction that excludes migrations by other processes. If the version is
	// not has in that transaction, another process has migrated the database, and Apply does nothing. If has is 0, the database is empty
	// and no other process uses its tables.
	Apply(ctx context.Context, has int, scripts []Script) error
}

// Version returns the newest version: the number of scripts.
func (s *Schema) Version() int { return len(s.names()) }

// names returns the paths of the scripts, ordered by number.
func (s *Schema) names() []string {
	names, _ := fs.Glob(s.Files, "migrations/*.sql") // the pattern is valid
	return names
}

// Check returns an error if has, the version of a database, is newer than the newest known version, or below 0.
func (s *Schema) Check(has int) error {
	if has < 0 {
		return fmt.Errorf("the database has %d as the version of its schema: it is damaged or of another program; restore a backup", has)
	}
	if known := s.Version(); has > known {
		return fmt.Errorf(s.Newer, has, known)
	}
	return nil
}

// Scripts returns the scripts, ordered by number. The error names the first script whose number is not one more than the previous number.
func (s *Schema) Scripts() ([]Script, error) {
	names := s.names()
	scripts := make([]Script, len(names))
	for i, name := range names {
		if want := fmt.Sprintf("migrations/%04d_", i+1); !strings.HasPrefix(name, want) {
			return nil, fmt.Errorf("the script %s is not in order: want %sNAME.sql", name, want)
		}
		text, err := fs.ReadFile(s.Files, name)
		if err != nil {
			return nil, err
		}
		scripts[i] = Script{Version: i + 1, Text: string(text)}
	}
	return scripts, nil
}

// Update executes the scripts that the database lacks, each in its own transaction, so that an interrupted update continues at the first
// version that was not committed. For an empty database it executes all scripts in one transaction. If no script is missing, Update only
// reads. For a database of a newer version it returns an error and changes nothing.
func (s *Schema) Update(ctx context.Context, db Database) error {
	scripts, err := s.Scripts()
	if err != nil {
		return err
	}
	for {
		has, err := db.Version(ctx)
		if err == nil {
			err = s.Check(has)
		}
		if err != nil || has == len(scripts) {
			return err
		}
		next := scripts[has:]
		if has > 0 {
			next = next[:1]
		}
		if err := db.Apply(ctx, has, next); err != nil {
			return err
		}
	}
}
