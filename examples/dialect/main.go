// Command dialect reads the tool calls in the text of a model: in one call, and from a stream.
package main

import (
	"fmt"
	"log"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

const text = `Let me look. <tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>`

func main() {
	offered := []*lathe.ToolSpec{{Name: "weather"}}
	visible, calls, err := dialect.Parse(text, "hermes", offered)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q %s %s\n", visible, calls[0].Name, calls[0].Arguments)

	// From a stream, in pieces that may be cut anywhere.
	d, ok := dialect.Lookup("hermes")
	if !ok {
		log.Fatal("no such dialect")
	}
	parser := d.NewParser(&dialect.Options{Tools: offered})
	var message dialect.Collector
	for _, piece := range []string{text[:20], text[20:47], text[47:]} {
		message.AddAll(parser.Append(nil, piece))
	}
	rest, err := parser.Flush(nil)
	if err != nil {
		log.Fatal(err) // the text ended inside a call
	}
	message.AddAll(rest)
	m := message.Message()
	fmt.Printf("%q %s %s\n", m.Text(), m.Calls()[0].Name, m.Calls()[0].Arguments)
}
