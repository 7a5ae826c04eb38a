package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/report"
)

// dialectBytes is about the length of each text that the parsers of dialects read.
const dialectBytes = 64 << 10

// dialectPieces are the lengths of the pieces in which the texts come, in bytes.
var dialectPieces = []int{8, 64}

var dialectTools = []*lathe.ToolSpec{{Name: toolName, Schema: json.RawMessage(
	`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}`)}}

// dialectAnswer returns an answer without calls, as the dialect writes one: lines with marks of Markdown, of code and of HTML.
func dialectAnswer(d *dialect.Dialect) string {
	text := strings.Repeat("If a < b and b < c, then it's so: the \"cell\" of `code` holds a number x with 0 <= x < 10, as the plan said it would be.\n", dialectBytes/119)
	switch d.Name() {
	case "harmony":
		return "<|channel|>final<|message|>" + text + "<|return|>"
	case "glimmer":
		return "<|message|>" + text + "<|eot|>"
	case "functionary-v3.2":
		return "all\n" + text
	}
	return text
}

// dialectCall returns one call that writes a file, in the dialect.
func dialectCall(d *dialect.Dialect) string {
	file := strings.Repeat(`<p class=\"x\">Some text of a page, a < b && c > d, that it's to write.</p>\n`, dialectBytes/76)
	text := string(d.AppendCall(nil, lathe.ToolCall{Name: toolName, Arguments: `{"path":"index.html","text":"` + file + `"}`}))
	switch d.Name() {
	case "functionary-v3.2":
		return "all\n" + text
	case "glimmer":
		return " to=" + toolName + "<|message|>" + text + "<|eot|>"
	}
	return text
}

// readDialect returns the operation of one lane: a parser reads the text in pieces. It fails if not as many calls come out as went in.
func readDialect(d *dialect.Dialect, text string, piece, calls int) func() error {
	opts := &dialect.Options{Tools: dialectTools, MaxPayloadBytes: 2 * len(text)}
	var deltas []lathe.Delta
	return func() error {
		p, ended := d.NewParser(opts), 0
		count := func() {
			for i := range deltas {
				if deltas[i].Kind == lathe.DeltaCallEnd && !deltas[i].Incomplete {
					ended++
				}
			}
		}
		for at := 0; at < len(text); at += piece {
			deltas = p.Append(deltas[:0], text[at:min(at+piece, len(text))])
			count()
		}
		var err error
		deltas, err = p.Flush(deltas[:0])
		if count(); err == nil && ended != calls {
			err = errWrong
		}
		return err
	}
}

// dialectLanes returns the lanes of all dialects, four each in the order of the table's columns, and the lengths of their texts.
func dialectLanes() (lanes []*lane, sizes []int, err error) {
	for _, name := range dialect.Names() {
		d, ok := dialect.Lookup(name)
		if !ok {
			return nil, nil, fmt.Errorf("dialect %s is not found", name)
		}
		for _, piece := range dialectPieces {
			answer, call := dialectAnswer(d), dialectCall(d)
			lanes = append(lanes, &lane{name: name, op: readDialect(d, answer, piece, 0)}, &lane{name: name, op: readDialect(d, call, piece, 1)})
			sizes = append(sizes, len(answer), len(call))
		}
	}
	return lanes, sizes, nil
}

// dialectTable prints how fast the parser of each dialect reads an answer without calls and the arguments of one call.
func dialectTable(rounds int, budget time.Duration) error {
	lanes, sizes, err := dialectLanes()
	if err != nil {
		return err
	}
	// The globals of all peers make a collection dearer than it is in a program that uses the parsers.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	race(lanes, rounds, budget)
	var t report.Table
	t.Row("dialect", "text, 8-byte pieces", "arguments, 8-byte pieces", "text, 64-byte pieces", "arguments, 64-byte pieces")
	for four := range slices.Chunk(lanes, 4) {
		cells := []any{four[0].name}
		for _, l := range four {
			if l.err != nil {
				return fmt.Errorf("dialect %s: %w", l.name, l.err)
			}
			cells = append(cells, fmt.Sprintf("%.0f", float64(sizes[0])/l.median().cpu))
			sizes = sizes[1:]
		}
		t.Row(cells...)
	}
	fmt.Print("\n**dialects, MB a second of CPU time**\n\n")
	return t.WriteMarkdown(os.Stdout, "lrrrr")
}
