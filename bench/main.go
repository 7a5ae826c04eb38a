package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"time"
)

func main() {
	all := flag.Bool("all", false, "every table")
	doLoop := flag.Bool("loop", false, "the agent loop, in process and over loopback")
	doAssembly := flag.Bool("assembly", false, "assembly of streamed calls and text")
	doDecode := flag.Bool("decode", false, "decoding of one chunk")
	doRunner := flag.Bool("runner", false, "the tool runner over the tool's bare function")
	doWires := flag.Bool("wires", false, "an event on each wire beside one of chat completions")
	doDialects := flag.Bool("dialects", false, "the parsers of calls in text")
	rounds := flag.Int("rounds", 5, "rounds of each contender")
	budget := flag.Duration("budget", 200*time.Millisecond, "time of one round of one contender")
	only := flag.String("variant", "", "one variant of the loop only, such as \"1call stream\"")
	flag.Parse()
	if !*all && !*doLoop && !*doAssembly && !*doDecode && !*doRunner && !*doWires && !*doDialects {
		flag.Usage()
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1)
	fmt.Printf("%s %s/%s, GOMAXPROCS=1, %d rounds of %s, medians\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, *rounds, *budget)
	if *all || *doLoop {
		err := loops("agent loop, in process", false, *only, *rounds, *budget)
		if err == nil {
			err = loops("agent loop, loopback HTTP (client and server in this process)", true, *only, *rounds, *budget)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
	if *all || *doRunner {
		if err := runnerTable(*rounds, *budget); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
	if *all || *doWires {
		if err := wires(*rounds, *budget); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
	if *all || *doDialects {
		if err := dialectTable(*rounds, *budget); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
	if *all || *doAssembly {
		assembly(*rounds, *budget)
	}
	if *all || *doDecode {
		decode(*rounds, *budget)
	}
}

var contenders = []contender{
	{name: "lathe", make: runLathe},
	{name: "floor: buffers reused", make: floorReuse},
	{name: "floor: net/http and encoding/json", make: floorStd},
	{name: "go-openai, bare loop", make: runGoOpenAI},
	{name: "langchaingo, bare loop", make: runLangchain},
	{name: "eino, react agent", make: runEino},
	{name: "openai-go, bare loop", make: runOpenAIGo},
}

func loops(title string, overHTTP bool, only string, rounds int, budget time.Duration) error {
	for _, v := range variants {
		if only != "" && v.name != only {
			continue
		}
		if err := loopTable(title+": "+v.name, overHTTP, v, rounds, budget); err != nil {
			return err
		}
	}
	return nil
}

func loopTable(title string, overHTTP bool, v variant, rounds int, budget time.Duration) error {
	var lanes []*lane
	for _, c := range contenders {
		l := &lane{name: c.name}
		lanes = append(lanes, l)
		r := newReplies(v)
		client := &http.Client{Transport: &inProcess{replies: r, scratch: make([]byte, 64<<10)}}
		base := nowhere
		if overHTTP {
			var stop func()
			var err error
			if base, stop, err = serve(r); err != nil {
				return err
			}
			defer stop()
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			client = &http.Client{Transport: tr}
		}
		l.op, l.err = c.make(v, client, base)
	}
	race(lanes, rounds, budget)
	printLanes(title, lanes, "lathe", 0)
	return nil
}
