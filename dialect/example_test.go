package dialect_test

import (
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// Text comes in the pieces of a model's stream; marks may be cut anywhere.
func Example() {
	d, _ := dialect.Lookup("harmony")
	p := d.NewParser(nil)
	var deltas []lathe.Delta
	for _, piece := range []string{
		"<|channel|>analysis<|mess", "age|>I need the weather.<|end|><|start|>assist", "ant to=functions.weather<|channel|>comm",
		"entary json<|message|>{\"city\":", "\"Oslo\"}", "<|call|>",
	} {
		deltas = p.Append(deltas[:0], piece)
		print(deltas)
	}
	deltas, err := p.Flush(deltas[:0])
	print(deltas)
	fmt.Println("error:", err)
	// Output:
	// reasoning "I need the weather."
	// call 0 weather
	// arguments 0 "{\"city\":"
	// arguments 0 "\"Oslo\"}"
	// end 0
	// error: <nil>
}

func print(deltas []lathe.Delta) {
	for _, d := range deltas {
		switch d.Kind {
		case lathe.DeltaText:
			fmt.Printf("text %q\n", d.Text)
		case lathe.DeltaReasoning:
			fmt.Printf("reasoning %q\n", d.Text)
		case lathe.DeltaCallStart:
			fmt.Println("call", d.Index, d.Name)
		case lathe.DeltaCallArgs:
			fmt.Printf("arguments %d %q\n", d.Index, d.Text)
		case lathe.DeltaCallEnd:
			fmt.Println("end", d.Index)
		case lathe.DeltaParseError:
			fmt.Println("error", d.Code, d.Bytes, "bytes")
		}
	}
}

// A call that cannot be read stays text, and an error says so.
func ExampleParser() {
	d, _ := dialect.Lookup("tags")
	p := d.NewParser(nil)
	deltas := p.Append(nil, `So: <tool name="add" args></tool> or <tool name="add" args>{"a":1,"b":2}</tool>`)
	deltas, _ = p.Flush(deltas)
	print(deltas)
	// Output:
	// text "So: "
	// text "<tool name=\"add\" args>"
	// text "</tool>"
	// error tool_payload_parse_error 29 bytes
	// text " or "
	// call 0 add
	// arguments 0 "{\"a\":1,\"b\":2}"
	// end 0
}

// The format is known by the first mark.
func ExampleNewAuto() {
	p := dialect.NewAuto(nil)
	deltas := p.Append(nil, `Let me add. <tool name="add" args>{"a":1}</tool>`)
	print(deltas)
	fmt.Println("dialect:", p.(dialect.Chooser).Chosen())
	// Output:
	// text "Let me add. "
	// call 0 add
	// arguments 0 "{\"a\":1}"
	// end 0
	// dialect: tags
}

func ExampleForModel() {
	fmt.Println(dialect.ForModel("openai/gpt-oss-120b"))
	// Output: harmony true
}

// Thinking that stands in the text of a model with native calls.
func ExampleNewThink() {
	p := dialect.NewThink(&dialect.Options{Prefix: "<think>"}) // the prompt opens it
	print(p.Append(nil, "Easy.</think>42"))
	// Output:
	// reasoning "Easy."
	// text "42"
}

// A Collector makes the message of which the deltas are steps.
func ExampleCollector() {
	d, _ := dialect.Lookup("tags")
	c := dialect.Collector{Dialect: d.Name()}
	p := d.NewParser(nil)
	for _, piece := range []string{"Adding. <tool na", `me="add" args>{"a"`, ":1}</tool>"} {
		c.AddAll(p.Append(nil, piece))
	}
	deltas, _ := p.Flush(nil)
	c.AddAll(deltas)
	m := c.Message()
	fmt.Printf("%q %+v\n", m.Text(), m.Calls()[0].Arguments)
	// Output: "Adding. " {"a":1}
}

// A server that knows no tools is sent text.
func ExampleDialect_Rewrite() {
	d, _ := dialect.Lookup("tags")
	req := d.Rewrite(&lathe.Request{
		Tools:    []*lathe.ToolSpec{{Name: "now", Description: "Tells the time."}},
		Messages: []lathe.Message{lathe.User("What time is it?")},
	})
	for _, m := range req.Messages {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	// Output:
	// system: TOOLS:
	// - name: now
	//   description: Tells the time.
	//   schema: {"type":"object","properties":{}}
	// END TOOLS
	// To call a tool, write: <tool name="NAME" args>{"argument":"value"}</tool>
	// user: What time is it?
}
