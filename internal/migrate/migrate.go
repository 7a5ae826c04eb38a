// Package migrate updates the schema of a database with numbered scripts: migrations/0001_NAME.sql makes version 1 in an
// empty database, and each further script makes its version from the one before. A script that has been released never
// changes: a further version is a further file.
package migrate

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

// A Schema holds the scripts of one kind of database, such as SQLite.
type Schema struct {
	Files fs.FS // has the folder migrations
	// Newer is the message for a database of a newer version, a format of two %d: that version, and the newest known one.
	Newer string
}

// A Script changes the schema from the version before to its own.
type Script struct {
	Version int // from 1
	Text    string
}

// A Database is what [Schema.Update] changes.
type Database interface {
	// Version returns the version of the schema, 0 if the database is empty. It takes no lock.
	Version(ctx context.Context) (int, error)
	// Apply executes scripts and records their versions in one transaction that excludes the migrations of other processes. If
	// the version in that transaction is no longer has, it does nothing: another process was faster. If has is 0, the database
	// is empty, and no other process uses its tables.
	Apply(ctx context.Context, has int, scripts []Script) error
}

// Version returns the version to which Update brings a database.
func (s *Schema) Version() int { return len(s.names()) }

// names returns the paths of the scripts in their order.
func (s *Schema) names() []string {
	names, _ := fs.Glob(s.Files, "migrations/*.sql") // the pattern is well formed
	return names
}

// Check returns an error if has, the version of a database, is newer than that of the schema, or below 0.
func (s *Schema) Check(has int) error {
	if has < 0 {
		return fmt.Errorf("the database has %d as the version of its schema: it is damaged or of another program; restore a backup", has)
	}
	if known := s.Version(); has > known {
		return fmt.Errorf(s.Newer, has, known)
	}
	return nil
}

// Scripts returns the scripts in their order. The error names a file whose number is not one more than that of the file before it.
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

// Update executes the scripts that the database lacks, each in a transaction of its own, so that an update that was
// interrupted continues at the first version that was not committed. An empty database gets all of them in one transaction. If the
// database lacks none, Update only reads. A database of a newer version is an error, and is not changed.
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
