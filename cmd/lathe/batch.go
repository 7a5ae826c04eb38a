package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lathe-run/lathe/internal/jsonlines"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
)

// maxLine is the largest size of a line of a batch in bytes.
const maxLine = 16 << 20

// checkBatch writes one verdict for each line of in, as soon as it has been read.
func checkBatch(in io.Reader, out io.Writer) error {
	return eachLine(in, out, func(line []byte) []byte {
		v := checkLine(line)
		return v.appendJSON(nil)
	})
}

// checkLine checks one line of a batch, such as {"id":1,"schema":{"type":"object"},"arguments":{"a":1}}.
func checkLine(line []byte) verdict {
	members, lineErr := lineMembers(line, "id", "schema", "arguments")
	id, idErr := lineID(members)
	var v verdict
	switch {
	case idErr != nil:
		v = wrong("id", idErr.Error())
	case lineErr != nil:
		v = wrong("line", lineErr.Error())
	default:
		v = checkMembers(members)
	}
	v.id = id
	return v
}

// checkMembers checks the arguments of a line against its schema. Arguments in a string are checked as the text of arguments if they look
// like it.
func checkMembers(members map[string][]byte) verdict {
	for _, name := range []string{"schema", "arguments"} {
		if members[name] == nil {
			return wrong("line", "there is no "+name)
		}
	}
	s, err := schema.Compile(members["schema"])
	if err != nil {
		return wrong("schema", schemaProblem(err))
	}
	args := members["arguments"]
	text, ok := textOf(args)
	if !ok {
		return judge(s, args)
	}
	if v := judge(s, text); v.valid || v.errors[0].Keyword != "json" {
		return v
	}
	// Text that looks like arguments but is not valid JSON may still be a valid string.
	if v := judge(s, args); v.valid {
		return v
	}
	return judge(s, text)
}

// textOf returns the text in a JSON string if it looks like an object or an array.
func textOf(value []byte) ([]byte, bool) {
	if value[0] != '"' {
		return nil, false
	}
	text, err := rawjson.AppendUnquote(nil, value)
	if err != nil {
		return nil, false
	}
	i := rawjson.SkipSpace(text, 0)
	return text, i < len(text) && (text[i] == '{' || text[i] == '[')
}

// lineID returns the id of a line of a batch as JSON: null if the line has none. It returns null and an error for one that is not valid.
func lineID(members map[string][]byte) ([]byte, error) {
	id := members["id"]
	if id == nil {
		return []byte("null"), nil
	}
	if err := rawjson.Check(id, rawjson.Limits{}); err != nil {
		return []byte("null"), errors.New(jsonProblem(err))
	}
	return id, nil
}

// lineMembers returns the named members of the object at the beginning of a line, as far as they can be read, also with an error: the answer
// to a wrong line has its id. Other members are ignored; a repeated named member is an error, because parsers could use different ones. A nil
// line is one that was too long, which is an error.
func lineMembers(line []byte, names ...string) (map[string][]byte, error) {
	if line == nil {
		return nil, errors.New("larger than " + bytesText(maxLine))
	}
	end, err := rawjson.Scan(line, 0)
	if err != nil {
		return nil, errors.New(jsonProblem(err))
	}
	start := rawjson.SkipSpace(line, 0)
	if line[start] != '{' {
		return nil, errors.New("a line is one JSON object")
	}
	found := map[string][]byte{}
	if rawjson.SkipSpace(line, end) != len(line) {
		err = errors.New("a line is one JSON object, and something follows it")
	}
	for key, value := range rawjson.Members(line[start:end]) {
		name := rawjson.Text(key)
		if found[name] != nil {
			err = fmt.Errorf("%s stands twice", name)
		} else if slices.Contains(names, name) {
			found[name] = value
		}
	}
	return found, err
}

// eachLine calls fn for each line of in that is not blank, without its line end, and with nil for a line longer than maxLine. It writes each
// result as a line to out, before it blocks for further input.
func eachLine(in io.Reader, out io.Writer, fn func(line []byte) []byte) error {
	w := bufio.NewWriter(out)
	if err := errors.Join(readLines(in, w, fn), w.Flush()); err != nil {
		return failure("batch: %w", err)
	}
	return nil
}

// readLines does the reading and writing of eachLine. If w has failed, it returns nil.
func readLines(in io.Reader, w *bufio.Writer, fn func(line []byte) []byte) error {
	r := jsonlines.NewReader(in, maxLine)
	for {
		if r.Buffered() == 0 && w.Flush() != nil { // the next read may block
			return nil //nolint:nilerr // the last Flush returns the error again
		}
		line, err := r.Next()
		line = bytes.TrimSpace(line)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, jsonlines.ErrTooLong):
			line = nil
		case err != nil && !errors.Is(err, jsonlines.ErrNoLineEnd): // the last line may have no line end; the next read returns io.EOF
			return fmt.Errorf("reading standard input: %w", err)
		case len(line) == 0:
			continue
		}
		_, _ = w.Write(append(fn(line), '\n')) // Flush returns its error
	}
}
