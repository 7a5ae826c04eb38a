// Command install installs the npm packages of the coding agents into the user's cache and prints the folder.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/lathe-run/lathe/internal/conformance/agents"
)

func main() {
	all := flag.Bool("all", false, "install every agent, 2.5 GB, and not only the fast subset")
	flag.Parse()
	dir, err := agents.Install(*all, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
