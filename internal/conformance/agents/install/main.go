// Command install installs the npm packages of the coding agents into the user's cache and prints the folder.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"

	"github.com/lathe-run/lathe/internal/conformance/agents"
)

func main() {
	all := flag.Bool("all", false, "install every agent, 2.5 GB, and not only the fast subset")
	only := flag.String("only", "", "install only the agent of this `name`, of the fast subset")
	flag.Parse()
	set := cmp.Or(*only, agents.SetFast)
	if *all {
		set = agents.SetAll
	}
	dir, err := agents.Install(set, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
