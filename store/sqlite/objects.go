package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkSchema appends a fault for each table, index, trigger and view in which the file differs from a store of its version: an additional
// one could change later data, and without a missing one rows could contradict each other.
func (c *Contents) checkSchema(ctx context.Context, tx *sql.Tx) error {
	want, err := objectsOf(ctx, c.Schema)
	if err != nil {
		return err
	}
	has, err := readObjects(ctx, tx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		switch text, known := want[name]; {
		case !known:
			c.addFault(fmt.Sprintf("the %.200s is no part of a store", name))
		case text != has[name]:
			c.addFault("the " + name + " is not that of a store")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, found := has[name]; !found {
			c.addFault("the " + name + " is missing")
		}
	}
	return nil
}

// objectsOf returns the objects of a new store of this version.
func objectsOf(ctx context.Context, version int) (map[string]string, error) {
	scripts, err := schema.Scripts()
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // each connection to :memory: has its own database
	if err := (migration{db}).Apply(ctx, 0, scripts[:version]); err != nil {
		return nil, err
	}
	return readObjects(ctx, db)
}

var spaceless = strings.NewReplacer("( ", "(", " )", ")")

// readObjects returns the SQL statements of the objects of a database, by kind and name, without comments and with normalized spaces,
// because ALTER TABLE and CREATE TABLE differ in these.
func readObjects(ctx context.Context, q querier) (map[string]string, error) {
	out := map[string]string{}
	err := each(ctx, q, func(scan scanner) error {
		var name, text string
		if err := scan(&name, &text); err != nil {
			return err
		}
		var words []string
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "--")
			words = append(words, strings.Fields(line)...)
		}
		out[name] = spaceless.Replace(strings.Join(words, " "))
		return nil
	}, `SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
	return out, err
}
